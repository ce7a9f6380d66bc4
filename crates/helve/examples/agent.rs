//! Lets a model at any OpenAI-compatible URL work in this folder, and prints what happens.
//!
//! `cargo run -p helve --example agent http://127.0.0.1:8080/v1 MODEL "what is this project about?"`
//!
//! The key is read from the variable `API_KEY`, if there is one.
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use helve::agent_loop::event::AgentEvent;
use helve::agent_loop::http::ApiKey;
use helve::agent_loop::item::{MessagePart, Protocol};
use helve::agent_loop::turn::TurnLimits;
use helve::{Toolbox, TurnOptions, model_at};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [base_url, model, prompt] = args.as_slice() else {
        return Err("usage: agent BASE_URL MODEL PROMPT".into());
    };
    let key = std::env::var("API_KEY").ok().map(ApiKey::new);
    let model = model_at(base_url, Protocol::Chat, model, key);

    // Nobody answers questions here, so the model can read and search, and change what `allow` names.
    let toolbox = Toolbox::builder().dir(".").allow("edit:docs/*").build().await?;
    let mut agent = toolbox.agent(model).await?;

    // The events as a stream. A message for the model can be sent at any time with `inbox.steer`.
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let emit = move |event: AgentEvent| {
        sender.send(event).ok();
    };
    let watching = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            match event {
                AgentEvent::Text(text) => print!("{text}"),
                AgentEvent::Call { name, arguments, .. } => println!("\n→ {name} {arguments}"),
                AgentEvent::Result { title, took, .. } => println!("  {title} {took:.1?}"),
                _ => {}
            }
        }
    });
    let limits = TurnLimits { steps: Some(20), ..TurnLimits::default() };
    let options = TurnOptions { limits, ..TurnOptions::default() };
    let message = vec![MessagePart::Text(prompt.clone())];
    let report = agent.run(message, &options, &emit, CancellationToken::new()).await?;
    drop(emit);
    watching.await?;
    println!("\n{:?}, {} tokens", report.end, report.usage.total());
    drop(agent);
    toolbox.close().await;
    Ok(())
}
