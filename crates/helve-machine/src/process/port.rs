//! Detects whether a process that a command started listens on a port. A warden is the process that watches over the
//! program.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use helve_core::process::WaitOutcome;
use rustix::process::Pid;

use super::program::Program;
use super::{blocking, tree};

/// Poll interval, because nothing notifies this process of opened ports.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

pub(super) async fn wait_until_open(program: Arc<Program>, port: u16) -> WaitOutcome {
    let status = program.status();
    loop {
        let has_all_ended = status.borrow().killed_at_end.is_some();
        let program = program.clone();
        let is_open = move || program.with_warden(|warden| is_open(warden, port));
        if let Ok(Some(true)) = blocking(is_open).await {
            return WaitOutcome::Met;
        }
        if has_all_ended {
            return WaitOutcome::Impossible;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether a process beneath the warden listens on the port. Each process is checked, because it may be in another
/// network namespace.
pub(super) fn is_open(warden: Pid, port: u16) -> bool {
    tree::descendants(warden).into_iter().any(|pid| {
        let pid = pid.as_raw_nonzero();
        let sockets: HashSet<String> = ["tcp", "tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
            .flat_map(|table| {
                table.lines().filter_map(|line| listening_socket(line, port)).collect::<Vec<_>>()
            })
            .collect();
        !sockets.is_empty()
            && fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|mut handles| {
                handles.any(|handle| {
                    handle
                        .and_then(|handle| fs::read_link(handle.path()))
                        .is_ok_and(|target| sockets.contains(&*target.to_string_lossy()))
                })
            })
    })
}

/// Parses a line of `/proc/net/tcp`. Returns the socket's link name if it listens on this port and is reachable
/// on the loopback interface.
fn listening_socket(line: &str, port: u16) -> Option<String> {
    const LISTENING: &str = "0A";
    const REACHABLE_ON_LOOPBACK: [&str; 5] = [
        "00000000",
        "0100007F",
        "00000000000000000000000000000000",
        "00000000000000000000000001000000",
        "0000000000000000FFFF00000100007F",
    ];
    let mut fields = line.split_ascii_whitespace();
    let (address, number) = fields.nth(1)?.split_once(':')?;
    let is_match = REACHABLE_ON_LOOPBACK.contains(&address)
        && u16::from_str_radix(number, 16).ok()? == port
        && fields.nth(1)? == LISTENING;
    let inode = fields.nth(5)?;
    is_match.then(|| format!("socket:[{inode}]"))
}
