//! Several tracers at once: each is a process with one thread, because it forks and changes what it is.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::event::Traced;

struct Tracer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Tracer {
    fn start(files: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("the tracer: {error}");
        let own = std::env::current_exe().map_err(told)?;
        let mut child = Command::new(own)
            .arg("tracer")
            .arg(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the tracer has no pipes".into());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn trace(&mut self, script: &str) -> Result<Traced, String> {
        let told = |error: std::io::Error| format!("the tracer: {error}");
        writeln!(self.input, "{}", serde_json::Value::from(script)).map_err(told)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(told)?;
        serde_json::from_str(&line).map_err(|error| format!("the tracer ended: {error}"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs every script for real and hands what it did to `look`; stops at the first that cannot be traced.
pub(crate) fn trace_all<T: Sync>(
    files: &Path,
    all: &[T],
    script: impl Fn(&T) -> &str + Sync,
    look: impl Fn(&T, &Traced) + Sync,
) -> Result<(), String> {
    let workers = thread::available_parallelism().map_or(2, usize::from).min(8);
    let next = AtomicUsize::new(0);
    let fault: Mutex<Option<String>> = Mutex::new(None);
    let work = || -> Result<(), String> {
        let mut tracer = Tracer::start(files)?;
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let traced = tracer.trace(script(one))?;
            if let Some(why) = &traced.fault {
                return Err(format!("commands cannot be traced here: {why}"));
            }
            look(one, &traced);
        }
        Ok(())
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                if let Err(why) = work() {
                    next.store(all.len(), Ordering::Relaxed);
                    if let Ok(mut fault) = fault.lock() {
                        *fault = Some(why);
                    }
                }
            });
        }
    });
    match fault.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(_) => Err("a tracer panicked".into()),
    }
}
