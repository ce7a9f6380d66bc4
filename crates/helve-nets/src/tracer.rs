//! The tracer process: reads a script per line as JSON and writes its trace.

use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::sandbox::{self, FileImage};
use crate::trace::Trace;

pub(crate) fn serve(files: &Path) -> io::Result<()> {
    let files = FileImage::open(files)?;
    for line in io::stdin().lock().lines() {
        let traced = match serde_json::from_str::<String>(&line?) {
            Ok(script) => sandbox::trace(&script, &files),
            Err(why) => Trace::error(why.to_string()),
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &traced)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}
