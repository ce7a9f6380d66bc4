//! Runs several tracer processes. Each has a single thread, because it forks and changes its own privileges.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::trace::Trace;

/// A process of this program that runs [`crate::tracer::serve`].
struct TracerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl TracerProcess {
    fn start(sample_folder: &Path) -> Result<Self, String> {
        let describe = |error: std::io::Error| format!("the tracer: {error}");
        let this_program = std::env::current_exe().map_err(describe)?;
        let mut child = Command::new(this_program)
            .arg("tracer")
            .arg(sample_folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(describe)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the tracer has no pipes".into());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn trace(&mut self, script: &str) -> Result<Trace, String> {
        let describe = |error: std::io::Error| format!("the tracer: {error}");
        writeln!(self.input, "{}", serde_json::Value::from(script)).map_err(describe)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(describe)?;
        serde_json::from_str(&line).map_err(|error| format!("the tracer ended: {error}"))
    }
}

impl Drop for TracerProcess {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the script of every item, and passes the item and the trace to `inspect`. Stops at the first script that cannot
/// be traced.
pub(crate) fn trace_all<T: Sync>(
    sample_folder: &Path,
    items: &[T],
    script: impl Fn(&T) -> &str + Sync,
    inspect: impl Fn(&T, &Trace) + Sync,
) -> Result<(), String> {
    let workers = thread::available_parallelism().map_or(2, usize::from).min(8);
    let next = AtomicUsize::new(0);
    let failure: Mutex<Option<String>> = Mutex::new(None);
    let work = || -> Result<(), String> {
        let mut tracer = TracerProcess::start(sample_folder)?;
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let trace = tracer.trace(script(item))?;
            if let Some(error) = &trace.error {
                return Err(format!("commands cannot be traced here: {error}"));
            }
            inspect(item, &trace);
        }
        Ok(())
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                if let Err(error) = work() {
                    next.store(items.len(), Ordering::Relaxed);
                    if let Ok(mut failure) = failure.lock() {
                        *failure = Some(error);
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(_) => Err("a tracer panicked".into()),
    }
}
