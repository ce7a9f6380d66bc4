//! Makes calls through the library and measures them, for `cargo xtask bench`.
//!
//! Each line of standard input is a call: `{"tool": "edit", "arguments": {…}}`. The answer is a line
//! `{"nanoseconds": …, "text": "…"}`, without the time for reading the line and for printing the answer. The folder is
//! the current one, and edits are allowed.
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::time::Instant;

use helve::Toolbox;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_some_and(|first| first == helve::KEEPER) {
        helve::keeper();
        return Ok(());
    }
    helve::keep_freed_memory();
    // The same runtime as that of `helve mcp`.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let toolbox = Toolbox::builder().dir(".").allow("edit").build().await?;
    for line in std::io::stdin().lines() {
        let mut call: Value = serde_json::from_str(&line?)?;
        let (tool, arguments) = (call["tool"].take(), call["arguments"].take());
        let start = Instant::now();
        let result = toolbox.call(tool.as_str().unwrap_or_default(), arguments).await;
        let took = start.elapsed();
        let text = match result.outcome {
            Ok(output) => output.joined_text(),
            Err(error) => error.full_message(),
        };
        println!("{}", json!({"nanoseconds": took.as_nanos() as u64, "text": text}));
    }
    toolbox.close().await;
    Ok(())
}
