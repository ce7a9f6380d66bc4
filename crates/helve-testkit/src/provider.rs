//! A model provider that plays a script over HTTP on loopback: one answer per request.
#![expect(
    clippy::disallowed_methods,
    reason = "a real server: the client under test opens real connections"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

/// Path suffixes of model requests.
const MODEL_PATHS: [&str; 3] = ["/chat/completions", "/responses", "/messages"];

/// Returns the answer to a request, given its number and its body.
type AnswerFn = dyn Fn(usize, &Value) -> Option<ScriptedAnswer> + Send + Sync;

/// One answer of the script.
#[derive(Clone, Debug)]
pub struct ScriptedAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    ending: Ending,
}

/// What follows the chunks of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The response ends properly.
    Complete,
    /// The connection is closed in the middle of the response.
    Cut,
    /// Not even a header is sent, and the connection stays open until the client closes it.
    Silence,
    /// Nothing follows, and the connection stays open until the client closes it.
    Hang,
    /// The last chunk is sent again and again, until the client closes the connection.
    Flood,
    /// The response ends, but its header names this length.
    WrongLength(usize),
}

impl ScriptedAnswer {
    /// A stream of events, one `data:` line each.
    pub fn events(events: &[&str]) -> Self {
        let bytes: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
        Self::stream(&[bytes.as_bytes()])
    }

    /// A stream that is sent in exactly these chunks.
    pub fn stream(chunks: &[&[u8]]) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            chunks: chunks.iter().map(|chunk| chunk.to_vec()).collect(),
            ending: Ending::Complete,
        }
    }

    /// A response that is not a stream.
    pub fn document(status: u16, content_type: &str, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            chunks: vec![body.into()],
            ending: Ending::Complete,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// All bytes of the body.
    pub fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    /// Closes the connection before the response has ended.
    pub fn cut(mut self) -> Self {
        self.ending = Ending::Cut;
        self
    }

    /// An answer that never begins.
    pub fn silence() -> Self {
        Self { ending: Ending::Silence, ..Self::stream(&[]) }
    }

    /// Sends nothing more, and keeps the connection open.
    pub fn hang(mut self) -> Self {
        self.ending = Ending::Hang;
        self
    }

    /// Sends the last chunk again and again.
    pub fn flood(mut self) -> Self {
        self.ending = Ending::Flood;
        self
    }

    /// Names a wrong length in the header.
    pub fn wrong_length(mut self, length: usize) -> Self {
        self.ending = Ending::WrongLength(length);
        self
    }
}

/// A provider that answers each request with the next answer of its script, and repeats the last one.
pub struct ScriptedProvider {
    /// Base URL, without the path of a protocol.
    pub url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    /// Bytes of all flooding answers.
    flooded: Arc<AtomicUsize>,
}

impl ScriptedProvider {
    /// Starts a provider. Its threads end with the process.
    pub fn start(script: Vec<ScriptedAnswer>) -> std::io::Result<Self> {
        Self::start_with_documents(script, &[])
    }

    /// Starts a provider that also has documents, given by path and JSON. Any other path
    /// gets 404. Only the paths of the protocols count as requests.
    pub fn start_with_documents(
        script: Vec<ScriptedAnswer>,
        documents: &[(&str, &str)],
    ) -> std::io::Result<Self> {
        Self::serve(documents, move |number, _request| {
            script.get(number).or(script.last()).cloned()
        })
    }

    /// Starts a provider that computes each answer from the number of the request, from 0, and its body. The function
    /// may block; requests are served in parallel.
    pub fn start_answering(
        answer: impl Fn(usize, &Value) -> ScriptedAnswer + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::serve(&[], move |number, request| Some(answer(number, request)))
    }

    fn serve(
        documents: &[(&str, &str)],
        answer: impl Fn(usize, &Value) -> Option<ScriptedAnswer> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let answer: Arc<AnswerFn> = Arc::new(answer);
        let to_owned_pair = |(path, json): &(&str, &str)| (path.to_string(), json.to_string());
        let documents: Vec<(String, String)> = documents.iter().map(to_owned_pair).collect();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let flooded: Arc<AtomicUsize> = Arc::default();
        let recorded = (requests.clone(), flooded.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (answer, documents) = (answer.clone(), documents.clone());
                let (received, flooded) = recorded.clone();
                // A client that goes away ends only its own connection.
                std::thread::spawn(move || {
                    answer_connection(connection, &*answer, &documents, (&received, &flooded)).ok();
                });
            }
        });
        Ok(Self { url: format!("http://{address}"), requests, flooded })
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().clone()
    }

    /// How many bytes of flooding answers the client has accepted, including those in buffers.
    pub fn flooded_bytes(&self) -> usize {
        self.flooded.load(Ordering::Relaxed)
    }
}

/// Answers one request, and closes the connection after the response.
fn answer_connection(
    connection: TcpStream,
    answer: &AnswerFn,
    documents: &[(String, String)],
    (received, flooded): (&Mutex<Vec<Value>>, &AtomicUsize),
) -> std::io::Result<()> {
    let (path, body) = read_request(&connection)?;
    if !MODEL_PATHS.iter().any(|known| path.ends_with(known)) {
        let document = documents.iter().find(|(known, _)| *known == path);
        let (status, json) = document.map_or((404, "{}"), |(_, json)| (200, json));
        let head = "connection: close\r\ncontent-type: application/json\r\n";
        let length = json.len();
        let mut out = &connection;
        return write!(
            out,
            "HTTP/1.1 {status} Scripted\r\n{head}content-length: {length}\r\n\r\n{json}"
        );
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let number = {
        let mut received = received.lock();
        received.push(request.clone());
        received.len() - 1
    };
    let Some(answer) = answer(number, &request) else { return Ok(()) };
    let mut out = &connection;
    if answer.ending == Ending::Silence {
        return out.read(&mut [0]).map(drop);
    }
    write!(out, "HTTP/1.1 {} Scripted\r\nconnection: close\r\n", answer.status)?;
    for (name, value) in &answer.headers {
        write!(out, "{name}: {value}\r\n")?;
    }
    if let Ending::WrongLength(length) = answer.ending {
        write!(out, "content-length: {length}\r\n\r\n")?;
        out.write_all(&answer.body())?;
        return out.flush();
    }
    write!(out, "transfer-encoding: chunked\r\n\r\n")?;
    let chunks = || answer.chunks.iter().filter(|chunk| !chunk.is_empty());
    for chunk in chunks() {
        write_chunk(out, chunk)?;
    }
    match (answer.ending, chunks().next_back()) {
        (Ending::Complete, _) => write!(out, "0\r\n\r\n")?,
        (Ending::Flood, Some(last)) => loop {
            write_chunk(out, last)?;
            flooded.fetch_add(last.len(), Ordering::Relaxed);
        },
        (Ending::Hang, _) => {
            // Returns when the client closes the connection.
            let _end = out.read(&mut [0])?;
        }
        (Ending::Flood | Ending::Cut | Ending::Silence | Ending::WrongLength(_), _) => {}
    }
    out.flush()
}

fn write_chunk(mut out: &TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    write!(out, "{:x}\r\n", chunk.len())?;
    out.write_all(chunk)?;
    write!(out, "\r\n")?;
    out.flush()
}

/// The path and the body of a request.
fn read_request(connection: &TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split_whitespace().nth(1).unwrap_or_default().to_string();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, body))
}
