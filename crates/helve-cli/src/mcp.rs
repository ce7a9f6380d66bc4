//! `helve mcp`: serves MCP on standard input and output.

use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;

use crate::args::{GlobalArgs, McpArgs};
use crate::call::on_ctrl_c;
use crate::{Exit, output};

pub(crate) async fn run(common: &GlobalArgs, mcp: &McpArgs) -> anyhow::Result<Exit> {
    // Each process is a new session unless one is named. Questions go to the person at the client.
    let builder = match common.session {
        Some(_) => common.builder(),
        None => common.builder().new_session(),
    };
    let toolbox = builder.build().await?;
    output::summarize_problems(&toolbox);
    if std::io::stdin().is_terminal() {
        output::note(
            "Waiting for an MCP client on standard input. Clients start this command themselves; `helve install` configures them. Ctrl-C ends it.",
        );
    }
    let stop = CancellationToken::new();
    let ctrl_c_task = tokio::spawn(on_ctrl_c(stop.clone()));
    let served = toolbox.serve_stdio(mcp.metadata(), stop.clone()).await;
    ctrl_c_task.abort();
    served?;
    Ok(if stop.is_cancelled() { Exit::Interrupted } else { Exit::Done })
}
