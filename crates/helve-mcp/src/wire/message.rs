//! From a line to a message, within limits, or to the error that answers it. Pure.

use std::borrow::Cow;

use helve_core::BadInput;
use helve_core::input::parse;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, ErrorData,
    GetExtensions, JsonRpcMessage, RequestId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The arguments of a tool call, unread: the engine reads them, within its limits and in its words.
#[derive(Clone)]
pub(crate) struct Arguments(pub(crate) String);

/// What a line says.
#[derive(Debug)]
pub(crate) enum Heard {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer.
    Nothing,
    Wrong {
        /// `None` where the line does not say which request it is.
        id: Option<RequestId>,
        error: ErrorData,
    },
}

/// The longest id that is read.
const MOST_ID: usize = 256;
/// Methods that exist: a request for one that does not read as such has wrong parameters.
const METHODS: [&str; 9] = [
    "initialize",
    "ping",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

pub(crate) fn read(line: &[u8]) -> Heard {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return wrong(None, ErrorData::parse_error("The message is not UTF-8.", None));
    };
    if text.starts_with('[') {
        let words = "Batches are not supported: send each message on a line of its own.";
        return wrong(None, ErrorData::invalid_request(words, None));
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => envelope.open(),
        Err(err) if err.is_data() => {
            wrong(None, ErrorData::invalid_request("The message is no JSON-RPC object.", None))
        }
        Err(err) => {
            wrong(None, ErrorData::parse_error(format!("The message is not JSON: {err}."), None))
        }
    }
}

/// A message whose parts are not read yet, so that however deep they are the id is known.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A null that is there is not the same as nothing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Envelope<'a> {
    fn open(self) -> Heard {
        let id = match self.id {
            Some(raw) if raw.get().len() <= MOST_ID => match serde_json::from_str(raw.get()) {
                Ok(id) => Some(id),
                Err(_) => return wrong(None, bad_id()),
            },
            Some(_) => return wrong(None, bad_id()),
            None => None,
        };
        if self.jsonrpc.as_deref() != Some("2.0") {
            return wrong(id, ErrorData::invalid_request("`jsonrpc` must be \"2.0\".", None));
        }
        match (self.method, id, self.result, self.error) {
            (Some(method), Some(id), None, None) => request(&method, self.params, id),
            (Some(method), None, None, None) => notification(&method, self.params),
            (None, Some(id), Some(result), None) => answer(result, id),
            (None, id, None, Some(error)) => refusal(error, id),
            (_, id, _, _) => {
                let words = "The message is no request, no notification and no response.";
                wrong(id, ErrorData::invalid_request(words, None))
            }
        }
    }
}

fn request(method: &str, params: Option<&RawValue>, id: RequestId) -> Heard {
    let (arguments, params) = match (method, params) {
        ("tools/call", Some(params)) => match without_arguments(params.get()) {
            Ok((arguments, rest)) => (arguments, Some(Cow::Owned(rest))),
            Err(error) => return wrong(Some(id), error),
        },
        (_, params) => (None, params.map(|params| Cow::Borrowed(params.get()))),
    };
    let read = match typed::<ClientRequest>(method, params.as_deref()) {
        Ok(request) => request,
        Err(error) => return wrong(Some(id), error),
    };
    let mut request = match read {
        ClientRequest::CustomRequest(_) if METHODS.contains(&method) => {
            let words = format!("The parameters of `{method}` are wrong or missing.");
            return wrong(Some(id), ErrorData::invalid_params(words, None));
        }
        request => request,
    };
    if let Some(arguments) = arguments {
        request.extensions_mut().insert(arguments);
    }
    heard(JsonRpcMessage::request(request, id))
}

/// The parameters of a tool call in two pieces: the arguments, and the rest with null in their place.
fn without_arguments(params: &str) -> Result<(Option<Arguments>, String), ErrorData> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    let call: Call<'_> = serde_json::from_str(params).map_err(|_| {
        let words = "The parameters must be an object that names `arguments` at most once.";
        ErrorData::invalid_params(words, None)
    })?;
    let Some(arguments) = call.arguments.map(RawValue::get) else {
        return Ok((None, params.into()));
    };
    // The arguments are a piece of the parameters' text, so their distance is where they begin.
    let start = arguments.as_ptr().addr() - params.as_ptr().addr();
    let rest = [&params[..start], "null", &params[start + arguments.len()..]].concat();
    Ok((Some(Arguments(arguments.into())), rest))
}

fn notification(method: &str, params: Option<&RawValue>) -> Heard {
    // Notifications are never answered, so one that makes no sense is passed over.
    match typed::<ClientNotification>(method, params.map(RawValue::get)) {
        Ok(ClientNotification::CustomNotification(_)) | Err(_) => Heard::Nothing,
        Ok(notification) => heard(JsonRpcMessage::notification(notification)),
    }
}

fn answer(result: &RawValue, id: RequestId) -> Heard {
    // What answers is never answered itself, or two ends could go on for ever.
    let result = parse(result.get())
        .ok()
        .and_then(|result| serde_json::from_value::<ClientResult>(result).ok());
    result.map_or(Heard::Nothing, |result| heard(JsonRpcMessage::response(result, id)))
}

fn refusal(error: &RawValue, id: Option<RequestId>) -> Heard {
    let error =
        parse(error.get()).ok().and_then(|error| serde_json::from_value::<ErrorData>(error).ok());
    error.map_or(Heard::Nothing, |error| heard(JsonRpcMessage::error(error, id)))
}

/// A request or notification read by its method.
fn typed<T: DeserializeOwned>(method: &str, params: Option<&str>) -> Result<T, ErrorData> {
    let mut message = Map::new();
    message.insert("method".into(), method.into());
    if let Some(params) = params {
        let params = parse(params).map_err(|bad| ErrorData::invalid_params(words(&bad), None))?;
        message.insert("params".into(), params);
    }
    serde_json::from_value(Value::Object(message))
        .map_err(|_| ErrorData::invalid_params("The parameters must be an object.", None))
}

/// Why the parameters were not read, for whoever writes the client.
fn words(bad: &BadInput) -> String {
    match bad {
        BadInput::TooLarge { bytes, most } => {
            format!("The parameters have {bytes} bytes; at most {most} are read.")
        }
        BadInput::TooDeep { most } => format!("The parameters nest deeper than {most} levels."),
        BadInput::TooMany { most } => format!("The parameters hold more than {most} values."),
        BadInput::CutOff { .. } => "The parameters stop in the middle.".into(),
        BadInput::NotJson { what, .. } => format!("The parameters cannot be read: {what}."),
        BadInput::Twice { .. } => "The parameters name a member twice.".into(),
    }
}

fn bad_id() -> ErrorData {
    ErrorData::invalid_request("`id` must be a string or a whole number.", None)
}

fn heard(message: ClientJsonRpcMessage) -> Heard {
    Heard::Message(Box::new(message))
}

fn wrong(id: Option<RequestId>, error: ErrorData) -> Heard {
    Heard::Wrong { id, error }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in proptest::collection::vec(any::<u8>(), 0..100)) {
            read(&line);
        }

        #[test]
        fn no_message_is_too_odd(
            members in proptest::collection::vec((
                "jsonrpc|id|method|params|result|error|[a-z]{1,3}",
                "\"2.0\"|\"tools/call\"|\"ping\"|\"notifications/cancelled\"|1|-1.5|null|\\{\\}|\\[1\\]|\\{\"name\":\"a\",\"arguments\":(\\{\\}|7|é)\\}",
            ), 0..6),
        ) {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            read(format!("{{{}}}", members.join(", ")).as_bytes());
        }

        #[test]
        fn arguments_come_as_they_were_written(text in "\\PC{0,20}", after in any::<bool>()) {
            let arguments = format!("{{ \"é\" : {} }}", Value::from(text));
            let params = match after {
                true => format!("{{\"name\":\"ü\", \"arguments\" : {arguments} }}"),
                false => format!("{{\"arguments\":{arguments},\"name\":\"ü\"}}"),
            };
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let Heard::Message(message) = read(line.as_bytes()) else { panic!("not heard") };
            let (request, _) = message.into_request().unwrap();
            let found = request.extensions().get::<Arguments>().map(|found| found.0.clone());
            prop_assert_eq!(found, Some(arguments));
            let ClientRequest::CallToolRequest(call) = request else { panic!("no call") };
            prop_assert_eq!(&*call.params.name, "ü");
        }
    }
}
