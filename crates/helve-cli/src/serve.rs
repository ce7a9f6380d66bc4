//! `helve serve`: an MCP server for many clients, at a port.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use helve::{HttpServer, TOKEN_VARIABLE, Token, TokenOrigin, visible};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{Common, Serving};
use crate::call::asked_again;
use crate::{End, paint};

pub(crate) async fn run(common: &Common, serving: &Serving) -> anyhow::Result<End> {
    if common.session.is_some() {
        bail!(
            "`helve serve` gives every client a session of its own, so --session (or HELVE_SESSION) names none here; leave it out, or use `helve mcp --session`"
        );
    }
    let address = SocketAddr::new(host(&serving.host)?, serving.port);
    let toolbox = common.builder().new_session().build().await?;
    paint::problems(&toolbox);
    let secret = secret(serving.token_file.as_deref(), toolbox.data())?;
    let http = HttpServer::bind(address).await?;
    let stop = CancellationToken::new();
    // Before anybody knows that it runs, so that it can be ended in order as soon as somebody does.
    let asked = on_signals(stop.clone())?;
    announce(common, http.address(), toolbox.root(), &secret)?;
    toolbox.serve_http(http, secret.token, serving.speaking.metadata(), stop).await;
    asked.abort();
    // There is no other way to end it.
    Ok(End::Done)
}

/// Ctrl-C, and what a service manager sends.
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
        asked_again().await;
    }))
}

#[cfg(not(unix))]
fn on_signals(stop: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    Ok(tokio::spawn(crate::call::on_ctrl_c(stop)))
}

fn host(named: &str) -> anyhow::Result<IpAddr> {
    match named {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        address => address.parse().with_context(|| {
            format!("`{address}` is not an address, such as 127.0.0.1, ::1 or 0.0.0.0")
        }),
    }
}

struct Secret {
    token: Token,
    /// The file that holds it.
    file: Option<PathBuf>,
    /// The text itself, to be shown this once.
    fresh: Option<String>,
}

fn secret(file: Option<&Path>, data: &Path) -> anyhow::Result<Secret> {
    if let Some(file) = file {
        let text = helve::read_token(file).with_context(|| file.display().to_string())?;
        let token = Token::new(&text).with_context(|| file.display().to_string())?;
        return Ok(Secret { token, file: Some(file.into()), fresh: None });
    }
    // Not an option of the command line, which others could read off the list of processes.
    match std::env::var(TOKEN_VARIABLE) {
        Ok(text) => {
            let token = Token::new(&text).context(TOKEN_VARIABLE)?;
            return Ok(Secret { token, file: None, fresh: None });
        }
        Err(std::env::VarError::NotUnicode(_)) => bail!("{TOKEN_VARIABLE} is not text"),
        Err(std::env::VarError::NotPresent) => {}
    }
    let path = data.join("token");
    let kept = helve::load_or_create_token(data).with_context(|| path.display().to_string())?;
    let token = Token::new(&kept.secret).with_context(|| path.display().to_string())?;
    let fresh = (kept.origin == TokenOrigin::Created).then_some(kept.secret);
    Ok(Secret { token, file: Some(kept.path), fresh })
}

fn announce(
    common: &Common,
    address: SocketAddr,
    root: &Path,
    secret: &Secret,
) -> anyhow::Result<()> {
    let url = format!("http://{address}/mcp");
    if common.json {
        let file = secret.file.as_ref().map(|file| file.display().to_string());
        return paint::json(&json!({"url": url, "port": address.port(), "tokenFile": file}));
    }
    let root = visible::escape_line(&root.display().to_string()).into_owned();
    paint::note(&format!("Serving {root} at {url}; Ctrl-C ends it."));
    match (&secret.file, &secret.fresh) {
        // A log is read by others than a terminal is.
        (Some(_), Some(text)) if std::io::stderr().is_terminal() => {
            paint::note(&format!("The token, shown this once: {text}"));
        }
        (_, _) => {}
    }
    match &secret.file {
        Some(file) => paint::note(&format!("The token is in {}.", file.display())),
        None => paint::note(&format!("The token is that of {TOKEN_VARIABLE}.")),
    }
    if !address.ip().is_loopback() {
        paint::note("Other machines can reach this port, and nothing on it is encrypted.");
    }
    Ok(())
}
