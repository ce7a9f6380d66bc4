//! Systems on which nothing can be confined yet.

use std::io;

use helve_core::process::{Confine, Confinement, Support};

const WHY: &str = "programs can be confined on Linux only";

pub fn probe() -> Confinement {
    let no = || Support::No(WHY.into());
    Confinement { writes: no(), protected: no(), network: no(), processes: no() }
}

#[derive(Debug, Default)]
pub struct Held;

impl Held {
    pub fn let_go(self, _: std::time::Duration) {}
}

pub fn hold(_: &Confine) -> io::Result<Held> {
    Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
}

/// Nobody is told anything.
#[derive(Debug)]
pub enum Listener {}

pub fn apply(_: &Confine, _: super::Telling) -> io::Result<Option<Listener>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
}
