//! Helve keeps working when the system clock is set back by an hour or forward by ten years.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::McpClient;
use crate::stage::Stage;

/// Overrides `clock_gettime`: adds an offset in seconds, read from a file, to the system clock.
const SHIM: &str = r#"
use std::ffi::{c_int, c_long};

#[repr(C)]
pub struct Time { seconds: i64, nanoseconds: c_long }

unsafe extern "C" { fn syscall(number: c_long, ...) -> c_long; }

#[cfg(target_arch = "x86_64")]
const CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const CLOCK_GETTIME: c_long = 113;
const CLOCK_REALTIME: c_int = 0;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Time) -> c_int {
    let failed = unsafe { syscall(CLOCK_GETTIME, clock as c_long, time) };
    if failed == 0 && clock == CLOCK_REALTIME {
        let offset = std::fs::read_to_string(env!("CLOCK_OFFSET_FILE")).unwrap_or_default();
        unsafe { (*time).seconds += offset.trim().parse::<i64>().unwrap_or(0) };
    }
    failed as c_int
}
"#;

fn build_shim(stage: &Stage, offset_file: &Path) -> PathBuf {
    stage.write("clock.rs", SHIM);
    let shim = stage.path("clock.so");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-o"])
        .args([&shim, &stage.path("clock.rs")])
        .env("CLOCK_OFFSET_FILE", offset_file)
        .status();
    assert!(status.unwrap().success());
    shim
}

#[test]
fn files_timeouts_and_history_do_not_depend_on_the_clock() {
    let stage = Stage::new();
    let offset = stage.path("app/off");
    let shim = build_shim(&stage, &offset);
    let mut command = stage.command();
    command.env("LD_PRELOAD", &shim);
    let mut client = McpClient::start_command(command, &["--yes"]);
    let path = stage.path("app/src/main.rs");
    let mut content = String::from("fn main() {}\n");
    for (turn, seconds) in ["0", "-3600", "315360000", "-315360000", "0"].iter().enumerate() {
        client.call("read", json!({"filePath": "src/main.rs"}));
        std::fs::write(&offset, seconds).unwrap();
        let next = format!("fn main() {{ work({turn}) }}\n");
        let edit = json!({"filePath": "src/main.rs", "oldString": content, "newString": next});
        let (failed, text) = client.call("edit", edit);
        assert!(!failed, "{seconds}: {text}");
        // A change by others is detected, whatever the clock says.
        content = format!("fn main() {{ play({turn}) }}\n");
        std::fs::write(&path, &content).unwrap();
        let write = json!({"filePath": "src/main.rs", "content": "gone"});
        let (failed, text) = client.call("write", write);
        assert!(failed && text.contains("changed"), "{seconds}: {text}");
        let command = "echo -7200 > off; sleep 300";
        let (_, text) = client.call("bash", json!({"command": command, "timeout": 300}));
        assert!(text.contains("not finished after the timeout of 300 ms"), "{seconds}: {text}");
    }
    // Calls are listed in order, and none was dropped as ten years old.
    let history = stage.run(&["history", "--json"]).out;
    let history: Value = serde_json::from_str(&history).unwrap();
    let calls: Vec<_> =
        history.as_array().unwrap().iter().map(|call| call["call"].as_str()).collect();
    assert!(calls.len() == 5 && calls.is_sorted_by(|newer, older| newer > older), "{history}");
    let at: Vec<_> = history.as_array().unwrap().iter().map(|call| call["at"].as_u64()).collect();
    assert!(!at.is_sorted(), "the clock was not moved: {history}");
}
