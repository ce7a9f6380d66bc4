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

pub fn apply(_: &SandboxPlan, _: super::DenialReports) -> io::Result<Option<DenialListener>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
}
