//! Which certificates are trusted.

use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

/// The trusted certificate authorities: the system's, and additional ones.
#[derive(Debug, Default)]
pub struct TrustedRoots {
    extra: Vec<CertificateDer<'static>>,
    /// Built on the first request, because that reads the system's certificates.
    config: OnceLock<Result<ClientConfig, String>>,
}

/// Why a file with certificates is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("it contains no certificate; expected text with -----BEGIN CERTIFICATE-----")]
    Empty,
    #[error("it is not a valid PEM file: {0}")]
    Invalid(String),
}

impl TrustedRoots {
    pub fn system() -> Self {
        Self::default()
    }

    /// Also trusts the certificates of a PEM file.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), CertificateError> {
        let before = self.extra.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|err| CertificateError::Invalid(err.to_string()))?;
            self.extra.push(certificate);
        }
        if self.extra.len() == before {
            return Err(CertificateError::Empty);
        }
        Ok(())
    }

    pub(crate) fn config(&self) -> Result<ClientConfig, String> {
        self.config.get_or_init(|| self.build()).clone()
    }

    fn build(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(self.extra.iter().cloned(), provider.clone())
            .map_err(|err| err.to_string())?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|err| err.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
