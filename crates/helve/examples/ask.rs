//! Lists the tools, calls one, prints what happens, and answers questions.
//!
//! `cargo run -p helve --example ask`
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use helve::{Ask, BoxFuture, CallRef, EventDelivery, EventKind, Person, Reply, Scope, Toolbox};
use serde_json::json;

/// Says yes to reading and no to anything else.
struct ReadOnlyPerson;

impl Person for ReadOnlyPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let only_reads = ask.parts.iter().all(|part| {
            println!("  asked: {} {}", part.permission, part.subject());
            ["read", "external_directory"].contains(&part.permission.as_ref())
        });
        let note = Some("only reading, please".into());
        let reply = if only_reads { Reply::Yes(Scope::Once) } else { Reply::No { note } };
        Box::pin(async { reply })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolbox = Toolbox::builder().dir(".").person(ReadOnlyPerson).build().await?;
    for tool in toolbox.tools().specs() {
        println!("{}: {}", tool.name, tool.about.lines().next().unwrap_or_default());
    }
    let mut events = toolbox.events();
    let watching = tokio::spawn(async move {
        while let Some(EventDelivery::Event(event)) = events.next().await {
            match event.kind {
                EventKind::Started { tool, .. } => println!("  started: {tool}"),
                EventKind::Finished(_) => println!("  finished"),
                _ => {}
            }
        }
    });
    for path in ["Cargo.toml", "/etc/hostname"] {
        println!("read {path}");
        let result = toolbox.call("read", json!({"filePath": path, "limit": 3})).await;
        match result.outcome {
            Ok(output) => println!("{}", output.joined_text()),
            Err(err) => println!("{}", err.full_message()),
        }
    }
    toolbox.close().await;
    watching.abort();
    Ok(())
}
