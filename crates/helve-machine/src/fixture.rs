//! Helpers shared by the tests of this crate.

use std::path::Path;

use helve_core::Place;

/// Runs a future to completion on the current thread.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("the runtime can be built")
        .block_on(future)
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

/// A temporary directory in memory where possible, so that thousands of syncs stay cheap.
pub(crate) fn folder_in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

/// A place below a temporary directory; the directory's own path may contain links.
pub(crate) fn place(anchor: &Path, beneath: impl AsRef<Path>) -> Place {
    Place {
        anchor: anchor.canonicalize().expect("the directory exists"),
        beneath: beneath.as_ref().to_owned(),
    }
}

/// Runs `work` on a thread of the user nobody, even if the tests run as root.
pub(crate) fn as_nobody<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        if rustix::process::geteuid().is_root() {
            let nobody = (rustix::fs::Gid::from_raw(65534), rustix::fs::Uid::from_raw(65534));
            rustix::thread::set_thread_groups(&[]).expect("root may change its ids");
            rustix::thread::set_thread_res_gid(nobody.0, nobody.0, nobody.0)
                .expect("root may change its ids");
            rustix::thread::set_thread_res_uid(nobody.1, nobody.1, nobody.1)
                .expect("root may change its ids");
        }
        work()
    });
    thread.join().expect("the work does not panic")
}
