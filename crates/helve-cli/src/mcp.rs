//! `helve mcp`: an MCP server at standard input and output.

use tokio_util::sync::CancellationToken;

use crate::args::{Common, Speaking};
use crate::call::on_ctrl_c;
use crate::{End, paint};

pub(crate) async fn run(common: &Common, speaking: &Speaking) -> anyhow::Result<End> {
    // One session per process, unless one is named; who answers is the client's affair.
    let builder = match common.session {
        Some(_) => common.builder(),
        None => common.builder().new_session(),
    };
    let toolbox = builder.build().await?;
    paint::problems(&toolbox);
    let stop = CancellationToken::new();
    let interrupted = tokio::spawn(on_ctrl_c(stop.clone()));
    let served = toolbox.serve_stdio(speaking.metadata(), stop.clone()).await;
    interrupted.abort();
    served?;
    Ok(if stop.is_cancelled() { End::Interrupted } else { End::Done })
}
