//! Fault injection for tests: makes file operations fail on demand.

use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

/// A function that is called with the name of each file operation. If it returns an error, the operation fails with it.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "exported for tests only"))]
pub struct InjectedFaults(Option<Arc<FaultFn>>);

type FaultFn = dyn Fn(&'static str) -> Option<Errno> + Send + Sync;

impl InjectedFaults {
    pub(crate) fn new(
        fault: impl Fn(&'static str) -> Option<Errno> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(fault)))
    }

    /// Like `new`, for a function that returns raw error numbers.
    #[cfg(feature = "faults")]
    pub fn from_fn(fault: impl Fn(&'static str) -> Option<i32> + Send + Sync + 'static) -> Self {
        Self::new(move |name| fault(name).map(Errno::from_raw_os_error))
    }

    pub(crate) fn fault_in(&self, name: &'static str) -> Option<Errno> {
        self.0.as_ref().and_then(|fault| fault(name))
    }
}

impl fmt::Debug for InjectedFaults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "InjectedFaults({})", self.0.is_some())
    }
}
