//! Very large files and outputs, with many lines or one: the memory that calls use stays bounded.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::stage::Stage;

const MAX_KIB: u64 = 64 << 10;

fn fill(path: &Path, block: &[u8], times: usize) {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    for _ in 0..times {
        file.write_all(block).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn reads_the_end_of_ten_million_lines() {
    let stage = Stage::new();
    // 100 bytes a line, 10,000 lines a block: 10,000,000 lines in 1 GB.
    let line = format!("{}\n", "x".repeat(99));
    fill(&stage.path("app/big.txt"), line.repeat(10_000).as_bytes(), 1_000);
    let (output, peak) =
        stage.run_measured(&["call", "read", "filePath=big.txt", "offset=9999990", "limit=10"]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("9999990| x"), "{}", output.out);
    assert!(output.out.contains("9999999| x"), "{}", output.out);
    assert!(peak < MAX_KIB, "peak {peak} KiB");
}

#[test]
fn reads_a_line_of_one_gigabyte() {
    let stage = Stage::new();
    fill(&stage.path("app/line.txt"), "y".repeat(1 << 20).as_bytes(), 1 << 10);
    let (output, peak) = stage.run_measured(&["call", "read", "filePath=line.txt"]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("(line cut at 2000 characters)"), "{:.200}", output.out);
    assert!(output.out.contains("(End of file, 1 line)"), "{:.200}", output.out);
    assert!(peak < MAX_KIB, "peak {peak} KiB");
}

#[test]
fn a_command_may_print_more_than_fits_into_memory() {
    let stage = Stage::new();
    let group = MemoryCgroup::new("256M");
    let args = ["--yes", "call", "bash", "command=yes | head -c 300M"];
    let (output, peak) = match &group {
        Some(group) => stage.run_measured_in(&group.folder, &args),
        // No cgroup can be created here, but the peak of the largest process is known.
        None => stage.run_measured(&args),
    };
    assert!(output.out.contains("[exit code 0"), "{:.500}", output.transcript());
    let saved = "the saved file holds the first 104857600 of 314572800 bytes";
    assert!(output.out.contains(saved), "{}", output.out.len());
    assert!(peak < MAX_KIB, "peak {peak} KiB");
    assert_eq!(group.as_ref().map_or(0, MemoryCgroup::oom_kills), 0);
}

/// A cgroup (v1 or v2) with a memory limit.
struct MemoryCgroup {
    folder: PathBuf,
}

impl MemoryCgroup {
    /// Returns `None` if this process may not create one.
    fn new(limit: &str) -> Option<MemoryCgroup> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |controller: &str| {
            groups.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(controller))
        };
        let candidates = [
            path_of("memory:/").map(|path| Path::new("/sys/fs/cgroup/memory").join(path)),
            path_of(":/").map(|path| Path::new("/sys/fs/cgroup").join(path)),
        ];
        for parent in candidates.into_iter().flatten() {
            let folder = parent.join(format!("helve-test-{}", std::process::id()));
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = MemoryCgroup { folder };
            for file in ["memory.limit_in_bytes", "memory.max"] {
                let file = group.folder.join(file);
                if file.exists() && fs::write(file, limit).is_ok() {
                    return Some(group);
                }
            }
        }
        None
    }

    /// Returns how many processes of the group the kernel killed for lack of memory.
    fn oom_kills(&self) -> u64 {
        let files = ["memory.oom_control", "memory.events"]
            .map(|file| fs::read_to_string(self.folder.join(file)).unwrap_or_default());
        let count = files
            .iter()
            .flat_map(|text| text.lines())
            .find_map(|line| line.strip_prefix("oom_kill "));
        count.expect("the cgroup counts killed processes").parse().unwrap()
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        fs::remove_dir(&self.folder).ok();
    }
}
