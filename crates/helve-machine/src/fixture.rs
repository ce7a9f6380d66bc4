//! What the tests of this crate share.

use std::path::Path;

use helve_core::Place;

/// Runs a future as a door would, on one thread.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Where syncing costs nothing, for tests that do it thousands of times.
pub(crate) fn folder_in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

/// A place beneath a temporary folder, whose own path may lead through links.
pub(crate) fn place(anchor: &Path, beneath: impl AsRef<Path>) -> Place {
    Place {
        anchor: anchor.canonicalize().expect("the folder exists"),
        beneath: beneath.as_ref().to_owned(),
    }
}

/// Runs `work` on a thread that has no more rights than anybody, even where the tests run as root.
pub(crate) fn as_nobody<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        if rustix::process::geteuid().is_root() {
            let nobody = (rustix::fs::Gid::from_raw(65534), rustix::fs::Uid::from_raw(65534));
            rustix::thread::set_thread_groups(&[]).expect("root may");
            rustix::thread::set_thread_res_gid(nobody.0, nobody.0, nobody.0).expect("root may");
            rustix::thread::set_thread_res_uid(nobody.1, nobody.1, nobody.1).expect("root may");
        }
        work()
    });
    thread.join().expect("the work does not panic")
}
