//! Stubs for systems on which processes cannot be confined yet.

use std::io;

use helve_core::process::{SandboxPlan, SandboxSupport, Support};

const REASON: &str = "programs can be confined on Linux only";

pub fn probe() -> SandboxSupport {
    let no = || Support::No(REASON.into());
    SandboxSupport { writes: no(), protected: no(), network: no(), processes: no() }
}

#[derive(Debug, Default)]
pub struct Placeholders;

impl Placeholders {
    pub fn remove_within(self, _: std::time::Duration) {}
}

pub fn create_placeholders(_: &SandboxPlan) -> io::Result<Placeholders> {
    Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
}

/// Never constructed: nothing is reported.
#[derive(Debug)]
pub enum DenialListener {}

/// Never constructed: nothing can be confined.
pub enum EnteredNamespaces {}

pub fn enter_namespaces(_: &SandboxPlan, _: super::PidNamespace) -> io::Result<EnteredNamespaces> {
    Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
}

impl EnteredNamespaces {
    pub fn enter_pid_namespace(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn restrict(
        self,
        _: &SandboxPlan,
        _: super::DenialReports,
    ) -> io::Result<Option<DenialListener>> {
        match self {}
    }
}

/// Process name of helper processes, which exist on Linux only.
pub const SANDBOX_HELPER: &std::ffi::CStr = c"helve-sandbox";
