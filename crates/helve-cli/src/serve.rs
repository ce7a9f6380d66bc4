//! `helve serve`: serves MCP to many clients over HTTP.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use helve::{HttpServer, TOKEN_VARIABLE, Token, TokenOrigin, visible};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{GlobalArgs, ServeArgs};
use crate::call::exit_on_next_ctrl_c;
use crate::{Exit, output};

pub(crate) async fn run(common: &GlobalArgs, args: &ServeArgs) -> anyhow::Result<Exit> {
    if common.session.is_some() {
        bail!(
            "`helve serve` gives every client its own session, so --session and HELVE_SESSION cannot be used; use `helve mcp --session` instead"
        );
    }
    let address = SocketAddr::new(host(&args.host)?, args.port);
    let toolbox = common.builder().new_session().build().await?;
    output::summarize_problems(&toolbox);
    let token = load_token(args.token_file.as_deref(), toolbox.data())?;
    let http = HttpServer::bind(address).await?;
    let stop = CancellationToken::new();
    // Installed before the address is announced, so that a signal right afterwards shuts the server down properly.
    let signal_task = on_signals(stop.clone())?;
    announce(common, http.address(), toolbox.root(), &token)?;
    toolbox.serve_http(http, token.token, args.mcp.metadata(), stop).await;
    signal_task.abort();
    Ok(Exit::Done)
}

/// Cancels `stop` on Ctrl-C or SIGTERM, which service managers send.
#[cfg(unix)]
fn on_signals(stop: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
        exit_on_next_ctrl_c().await;
    }))
}

#[cfg(not(unix))]
fn on_signals(stop: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    Ok(tokio::spawn(crate::call::on_ctrl_c(stop)))
}

fn host(name: &str) -> anyhow::Result<IpAddr> {
    match name {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        address => address.parse().with_context(|| {
            format!("`{address}` is not an IP address such as 127.0.0.1, ::1 or 0.0.0.0")
        }),
    }
}

struct ServerToken {
    token: Token,
    /// The file that contains the token.
    file: Option<PathBuf>,
    /// The text of a new token, shown only once.
    new_text: Option<String>,
}

fn load_token(file: Option<&Path>, data: &Path) -> anyhow::Result<ServerToken> {
    if let Some(file) = file {
        let text = helve::read_token(file).with_context(|| file.display().to_string())?;
        let token = Token::new(&text).with_context(|| file.display().to_string())?;
        return Ok(ServerToken { token, file: Some(file.into()), new_text: None });
    }
    // There is no command-line option for the token, because other users could see it in the process list.
    match std::env::var(TOKEN_VARIABLE) {
        Ok(text) => {
            let token = Token::new(&text).context(TOKEN_VARIABLE)?;
            return Ok(ServerToken { token, file: None, new_text: None });
        }
        Err(std::env::VarError::NotUnicode(_)) => bail!("{TOKEN_VARIABLE} is not valid UTF-8"),
        Err(std::env::VarError::NotPresent) => {}
    }
    let path = data.join("token");
    let saved = helve::load_or_create_token(data).with_context(|| path.display().to_string())?;
    let token = Token::new(&saved.secret).with_context(|| path.display().to_string())?;
    let new_text = (saved.origin == TokenOrigin::Created).then_some(saved.secret);
    Ok(ServerToken { token, file: Some(saved.path), new_text })
}

fn announce(
    common: &GlobalArgs,
    address: SocketAddr,
    root: &Path,
    token: &ServerToken,
) -> anyhow::Result<()> {
    let url = format!("http://{address}/mcp");
    if common.json {
        let file = token.file.as_ref().map(|file| file.display().to_string());
        return output::print_json(&json!({"url": url, "port": address.port(), "tokenFile": file}));
    }
    let root = visible::escape_line(&root.display().to_string()).into_owned();
    output::note(&format!("Serving {root} at {url} (Ctrl-C to stop)"));
    match (&token.file, &token.new_text) {
        // Others may read a log, so the token is shown only on a terminal.
        (Some(_), Some(text)) if std::io::stderr().is_terminal() => {
            output::note(&format!("Token (shown only once): {text}"));
        }
        (_, _) => {}
    }
    match &token.file {
        Some(file) => output::note(&format!("The token is stored in {}.", file.display())),
        None => output::note(&format!("The token is taken from {TOKEN_VARIABLE}.")),
    }
    if !address.ip().is_loopback() {
        output::note("Other machines can reach this port, and the connection is not encrypted.");
    }
    Ok(())
}
