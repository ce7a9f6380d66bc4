//! The tracer process: reads one script per line, as a JSON string, runs it, and prints its trace as a line of JSON.

use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::sandbox::{self, FilesSnapshot};
use crate::trace::Trace;

/// Traces the scripts from standard input. Each runs in a copy of `sample_folder`.
pub(crate) fn serve(sample_folder: &Path) -> io::Result<()> {
    let files = FilesSnapshot::read(sample_folder)?;
    for line in io::stdin().lock().lines() {
        let trace = match serde_json::from_str::<String>(&line?) {
            Ok(script) => sandbox::trace(&script, &files),
            Err(why) => Trace::error(why.to_string()),
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &trace)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}
