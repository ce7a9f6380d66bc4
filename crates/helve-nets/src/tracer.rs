//! The tracer as a process of its own: a script a line comes in as JSON, what it did goes out.

use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::event::Traced;
use crate::sandbox::{self, Source};

pub(crate) fn serve(files: &Path) -> io::Result<()> {
    let files = Source::open(files)?;
    for line in io::stdin().lock().lines() {
        let traced = match serde_json::from_str::<String>(&line?) {
            Ok(script) => sandbox::trace(&script, &files),
            Err(why) => Traced::fault(why.to_string()),
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &traced)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}
