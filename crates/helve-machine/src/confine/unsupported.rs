//! Stubs for systems on which processes cannot be confined yet.

use std::io;

use helve_core::process::{SandboxPlan, SandboxSupport, Support};

const REASON: &str = "programs can be confined on Linux only";

pub fn probe() -> SandboxSupport {
    let no = || Support::No(REASON.into());
    SandboxSupport { writes: no(), protected: no(), network: no(), processes: no(), memory: no() }
}

#[derive(Debug, Default)]
pub struct Placeholders;

impl Placeholders {
    pub fn remove_within(self, _: std::time::Duration) {}
}

pub fn create_placeholders(_: &SandboxPlan) -> io::Result<Placeholders> {
    Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
}

pub fn plan_without_watch(plan: &SandboxPlan) -> SandboxPlan {
    plan.clone()
}

/// Never constructed: nothing is reported.
#[derive(Debug)]
pub enum DenialListener {}

/// Never constructed: nothing can be confined.
pub enum EnteredNamespaces {}

/// Never constructed either.
pub enum BrokeredProcess {}

/// Never constructed either.
#[derive(Debug)]
pub enum Restricted {
    Watched(DenialListener),
    Unwatched,
}

pub fn enter_namespaces(_: &SandboxPlan, _: super::PidNamespace) -> io::Result<EnteredNamespaces> {
    Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
}

impl EnteredNamespaces {
    pub fn fork_with_helpers(self, _: &SandboxPlan) -> io::Result<BrokeredProcess> {
        match self {}
    }
}

impl BrokeredProcess {
    pub fn restrict(self, _: &SandboxPlan, _: super::CallWatch) -> io::Result<Restricted> {
        match self {}
    }
}

/// Process name of helper processes, which exist on Linux only.
pub const SANDBOX_HELPER: &std::ffi::CStr = c"helve-sandbox";
