//! Servers and resolvers for tests.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helve_core::BoxFuture;
use helve_core::Web;
use helve_core::web::{LocalTarget, WebError, WebRequest, WebResponse};
use helve_text::url::WebUrl;
use helve_web::{NameResolver, WebClient, WebSetup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers every request with the same bytes and keeps the requests.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl RawServer {
    pub(crate) async fn start(response: impl Into<Vec<u8>>) -> Self {
        let response = Arc::new(response.into());
        Self::start_with(move |mut stream| {
            let response = response.clone();
            async move {
                stream.write_all(&response).await.ok();
                stream.shutdown().await.ok();
            }
        })
        .await
    }

    /// Starts a server that answers with a function, after it has read the request.
    pub(crate) async fn start_with<F>(
        answer: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                tokio::spawn(answer(stream));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.address.port())
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

/// Reads the head of a request, and its body if it has one.
async fn read_request(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        text.extend_from_slice(&buffer[..read]);
        let request = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length = head
            .to_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            return request;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) fn response(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Answers each query with the next of several lists of addresses, and further queries with the last one.
#[derive(Default)]
pub(crate) struct ScriptedResolver {
    pub(crate) answers: HashMap<String, Vec<Vec<IpAddr>>>,
    pub(crate) queries: AtomicUsize,
}

impl ScriptedResolver {
    pub(crate) fn with(name: &str, answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|it| it.parse().unwrap()).collect();
        let answers = HashMap::from([(name.to_owned(), answers.iter().map(parse).collect())]);
        Arc::new(Self { answers, queries: AtomicUsize::new(0) })
    }
}

impl NameResolver for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let asked = self.queries.fetch_add(1, Ordering::SeqCst);
            let answers = self.answers.get(name).ok_or_else(|| io::Error::other("no such name"))?;
            Ok(answers[asked.min(answers.len() - 1)].clone())
        })
    }
}

pub(crate) fn client() -> WebClient {
    WebClient::new(WebSetup::default())
}

pub(crate) fn client_with(resolver: Arc<ScriptedResolver>) -> WebClient {
    WebClient::new(WebSetup { resolver, ..WebSetup::default() })
}

pub(crate) fn request(url: &str) -> WebRequest {
    WebRequest {
        url: WebUrl::parse(url).unwrap(),
        accept: "*/*",
        timeout: Duration::from_secs(30),
        max_bytes: 5 << 20,
        local: None,
    }
}

/// Fetches from a loopback server, as if a person had approved it.
pub(crate) async fn fetch(client: &WebClient, url: &str) -> Result<WebResponse, WebError> {
    let local = Some(LocalTarget::Address("127.0.0.1".parse().unwrap()));
    client.send(WebRequest { local, ..request(url) }).await
}
