//! Settings for the web: `web`.

use std::path::{Path, PathBuf};

use rustls_pki_types::pem::{self, PemObject, SectionKind};

use super::config_file::{ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::load::LinkPolicy;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue};
use super::{ConfigLayer, WithSource, keys, messages};

/// Settings for the web.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebSection {
    /// Files with further certificate authorities.
    pub ca: Vec<WithSource<CertificateFile>>,
    /// The service for `websearch`.
    pub search: SearchConfig,
    /// The service for `codesearch`.
    pub code_search: SearchConfig,
}

/// A file with certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    pub path: PathBuf,
    pub pem: Vec<u8>,
}

/// A search service. It is not configured if `provider` is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchConfig {
    /// `brave`, `exa`, `parallel`, `searxng` or `tavily`.
    pub provider: Option<WithSource<String>>,
    pub key: Option<WithSource<String>>,
    pub url: Option<WithSource<String>>,
}

/// The search services that are known.
const SEARCH_PROVIDERS: &[&str] = &["brave", "exa", "parallel", "searxng", "tavily"];
/// Those that can search code.
const CODE_SEARCH_PROVIDERS: &[&str] = &["exa"];

impl WebSection {
    pub(super) fn read(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for field in file.map("web", node).unwrap_or_default() {
            match field.key.as_str() {
                "ca" => self.read_ca(file, &field.value),
                "search" => self.search.read(file, field, SEARCH_PROVIDERS),
                "codesearch" => self.code_search.read(file, field, CODE_SEARCH_PROVIDERS),
                _ => warn_unknown_key(file, field, keys::WEB),
            }
        }
    }

    fn read_ca(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        // The digest that a person trusts does not cover certificate files, so a project cannot name one.
        if file.layer == ConfigLayer::Project {
            return file.error(node.at, messages::ca_of_project);
        }
        let paths = match &node.data {
            ConfigValue::List(_) => file.texts("web.ca", node, ExpandMode::Lenient),
            _ => file.text("web.ca", node, ExpandMode::Lenient).map(|path| vec![path]),
        };
        let mut certificates = Vec::new();
        for given in paths.into_iter().flatten() {
            let path = absolute(file, &given.value);
            match file.context.host.read(&path, LinkPolicy::Anywhere) {
                Ok(contents) => match check_certificates(&contents.bytes) {
                    Ok(()) => {
                        let certificate = CertificateFile { path, pem: contents.bytes };
                        certificates.push(WithSource::new(certificate, given.source));
                    }
                    Err(found) => {
                        file.error(node.at, || messages::ca_without_certificates(&path, &found));
                    }
                },
                Err(why) => file.error(node.at, || messages::unreadable_ca(&path, &why)),
            }
        }
        if !certificates.is_empty() {
            self.ca = certificates;
        }
    }

    pub(super) fn lines(&self) -> Vec<SettingLine> {
        let ca = self.ca.iter().map(|file| {
            SettingLine::new(&["web", "ca"], file.path.display().to_string(), &file.source)
        });
        let mut lines: Vec<SettingLine> = ca.collect();
        for (name, service) in [("search", &self.search), ("codesearch", &self.code_search)] {
            let texts = [("provider", &service.provider), ("url", &service.url)];
            for (key, text) in texts {
                let Some(text) = text else { continue };
                lines.push(SettingLine::new(&["web", name, key], text.as_written(), &text.source));
            }
            if let Some(key) = &service.key {
                let shown = key.raw.as_deref().unwrap_or(messages::HIDDEN);
                lines.push(SettingLine::new(&["web", name, "key"], shown, &key.source));
            }
        }
        lines
    }
}

impl SearchConfig {
    fn read(&mut self, file: &mut ConfigFile<'_>, field: &ConfigEntry, providers: &[&str]) {
        let section = messages::key_path(&["web", &field.key]);
        // A service is replaced as a whole, so that a key is never sent to another service.
        let mut service = SearchConfig::default();
        for entry in file.map(&section, &field.value).unwrap_or_default() {
            let name = messages::key_path(&["web", &field.key, &entry.key]);
            let text =
                |file: &mut ConfigFile<'_>| file.text(&name, &entry.value, ExpandMode::Lenient);
            match entry.key.as_str() {
                "provider" => match text(file) {
                    Some(given) if providers.contains(&given.value.as_str()) => {
                        service.provider = Some(given);
                    }
                    Some(given) => file.error(entry.value.at, || {
                        messages::not_a_choice(&name, providers, given.as_written())
                    }),
                    None => {}
                },
                "key" => service.key = text(file),
                "url" => {
                    service.url = text(file).filter(|given| check_url(file, &name, entry, given))
                }
                _ => warn_unknown_key(file, entry, keys::WEB_SEARCH),
            }
        }
        let needs_url = |it: &WithSource<String>| it.value == "searxng" && service.url.is_none();
        if service.provider.as_ref().is_some_and(needs_url) {
            return file.error(field.value.at, || messages::missing_search_url(&section));
        }
        *self = service;
    }
}

/// Checks that a file contains certificates in PEM format. Otherwise returns what it contains.
fn check_certificates(bytes: &[u8]) -> Result<(), String> {
    if bytes.trim_ascii().is_empty() {
        return Err("it is empty".into());
    }
    // The start of a long ASN.1 sequence.
    if bytes.starts_with(&[0x30, 0x82]) {
        return Err("it contains binary data (DER)".into());
    }
    let (mut others, mut has_certificate) = (Vec::new(), false);
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
        match section {
            Ok((SectionKind::Certificate, _)) => has_certificate = true,
            Ok((SectionKind::Crl, _)) => others.push("a revocation list"),
            Ok((SectionKind::Csr, _)) => others.push("a certificate request"),
            Ok((SectionKind::PublicKey, _)) => others.push("a public key"),
            Ok((_, _)) => others.push("a private key"),
            Err(pem::Error::MissingSectionEnd { .. }) => {
                return Err("a part has no -----END line".into());
            }
            Err(why) => return Err(format!("it is not a valid PEM file: {why}")),
        }
    }
    others.dedup();
    match others.as_slice() {
        _ if has_certificate => Ok(()),
        [] => Err("it contains no -----BEGIN CERTIFICATE-----".into()),
        others => Err(format!("it contains only {}", others.join(" and "))),
    }
}

fn check_url(
    file: &mut ConfigFile<'_>,
    name: &str,
    entry: &ConfigEntry,
    given: &WithSource<String>,
) -> bool {
    match helve_text::url::WebUrl::parse(&given.value) {
        Ok(_) => true,
        Err(why) => {
            file.error(entry.value.at, || messages::bad_url(name, given.as_written(), &why));
            false
        }
    }
}

/// Resolves a path against the folder of the configuration file. `~/` is the home folder.
fn absolute(file: &ConfigFile<'_>, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), file.context.home) {
        (Some(rest), Some(home)) => home.join(rest),
        (_, _) => file.path.parent().unwrap_or(Path::new("/")).join(path),
    }
}

fn warn_unknown_key(file: &mut ConfigFile<'_>, field: &ConfigEntry, known: &[&str]) {
    file.warn(field.at, || messages::unknown_key(&field.key, keys::nearest(&field.key, known)));
}
