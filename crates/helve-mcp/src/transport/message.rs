//! Parses a message within limits, or returns the error that answers it. Does no I/O.

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

/// Unparsed arguments of a tool call. The engine parses them, with its own limits and error messages.
#[derive(Clone)]
pub(crate) struct RawArguments(pub(crate) String);

/// The result of parsing a message.
#[derive(Debug)]
pub(crate) enum ParsedMessage {
    Message(Box<ClientJsonRpcMessage>),
    /// Needs no answer: an empty message, or a notification or response that is not understood.
    Ignored,
    Invalid {
        /// `None` if the message does not have a valid id.
        id: Option<RequestId>,
        error: ErrorData,
    },
}

/// Maximum length of an id in bytes.
const MAX_ID: usize = 256;
/// Known methods. If the parameters of one are invalid, rmcp parses the request as a custom one.
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

pub(crate) fn parse_message(line: &[u8]) -> ParsedMessage {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return ParsedMessage::Ignored;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return invalid(None, ErrorData::parse_error("The message is not UTF-8.", None));
    };
    if text.starts_with('[') {
        let text = "Batches are not supported: send each message on a line of its own.";
        return invalid(None, ErrorData::invalid_request(text, None));
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => envelope.into_message(),
        Err(err) if err.is_data() => {
            invalid(None, ErrorData::invalid_request("The message is not a JSON-RPC object.", None))
        }
        Err(err) => {
            invalid(None, ErrorData::parse_error(format!("The message is not JSON: {err}."), None))
        }
    }
}

/// A message with unparsed members, so that the id is known even if another member is nested too deeply to be parsed.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present_or_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present_or_null")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Distinguishes `null` from a missing member.
fn present_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> ParsedMessage {
        let id = match self.id {
            Some(raw) if raw.get().len() <= MAX_ID => match serde_json::from_str(raw.get()) {
                Ok(id) => Some(id),
                Err(_) => return invalid(None, bad_id()),
            },
            Some(_) => return invalid(None, bad_id()),
            None => None,
        };
        if self.jsonrpc.as_deref() != Some("2.0") {
            return invalid(id, ErrorData::invalid_request("`jsonrpc` must be \"2.0\".", None));
        }
        match (self.method, id, self.result, self.error) {
            (Some(method), Some(id), None, None) => request(&method, self.params, id),
            (Some(method), None, None, None) => notification(&method, self.params),
            (None, Some(id), Some(result), None) => response(result, id),
            (None, id, None, Some(error)) => error_response(error, id),
            (_, id, _, _) => {
                let text = "The message is not a request, a notification or a response.";
                invalid(id, ErrorData::invalid_request(text, None))
            }
        }
    }
}

fn request(method: &str, params: Option<&RawValue>, id: RequestId) -> ParsedMessage {
    let (arguments, params) = match (method, params) {
        ("tools/call", Some(params)) => match split_off_arguments(params.get()) {
            Ok((arguments, rest)) => (arguments, Some(Cow::Owned(rest))),
            Err(error) => return invalid(Some(id), error),
        },
        (_, params) => (None, params.map(|params| Cow::Borrowed(params.get()))),
    };
    let parsed = match parse_typed::<ClientRequest>(method, params.as_deref()) {
        Ok(request) => request,
        Err(error) => return invalid(Some(id), error),
    };
    let mut request = match parsed {
        ClientRequest::CustomRequest(_) if METHODS.contains(&method) => {
            let text = format!("The parameters of `{method}` are invalid or missing.");
            return invalid(Some(id), ErrorData::invalid_params(text, None));
        }
        request => request,
    };
    if let Some(arguments) = arguments {
        request.extensions_mut().insert(arguments);
    }
    valid(JsonRpcMessage::request(request, id))
}

/// Splits the parameters of a tool call into the arguments and the rest, in which `null` replaces the arguments.
fn split_off_arguments(params: &str) -> Result<(Option<RawArguments>, String), ErrorData> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    let call: Call<'_> = serde_json::from_str(params).map_err(|_| {
        let text = "The parameters must be an object that names `arguments` at most once.";
        ErrorData::invalid_params(text, None)
    })?;
    let Some(arguments) = call.arguments.map(RawValue::get) else {
        return Ok((None, params.into()));
    };
    // The arguments are a slice of the parameters' text, so the distance of the pointers is their offset.
    let start = arguments.as_ptr().addr() - params.as_ptr().addr();
    let rest = [&params[..start], "null", &params[start + arguments.len()..]].concat();
    Ok((Some(RawArguments(arguments.into())), rest))
}

fn notification(method: &str, params: Option<&RawValue>) -> ParsedMessage {
    // Notifications are never answered, so an invalid one is ignored.
    match parse_typed::<ClientNotification>(method, params.map(RawValue::get)) {
        Ok(ClientNotification::CustomNotification(_)) | Err(_) => ParsedMessage::Ignored,
        Ok(notification) => valid(JsonRpcMessage::notification(notification)),
    }
}

fn response(result: &RawValue, id: RequestId) -> ParsedMessage {
    // An invalid response is ignored: answering it could make two peers answer each other forever.
    let result = parse(result.get())
        .ok()
        .and_then(|result| serde_json::from_value::<ClientResult>(result).ok());
    result.map_or(ParsedMessage::Ignored, |result| valid(JsonRpcMessage::response(result, id)))
}

fn error_response(error: &RawValue, id: Option<RequestId>) -> ParsedMessage {
    let error =
        parse(error.get()).ok().and_then(|error| serde_json::from_value::<ErrorData>(error).ok());
    error.map_or(ParsedMessage::Ignored, |error| valid(JsonRpcMessage::error(error, id)))
}

/// Parses a request or notification by its method.
fn parse_typed<T: DeserializeOwned>(method: &str, params: Option<&str>) -> Result<T, ErrorData> {
    let mut message = Map::new();
    message.insert("method".into(), method.into());
    if let Some(params) = params {
        let params =
            parse(params).map_err(|bad| ErrorData::invalid_params(describe(&bad), None))?;
        message.insert("params".into(), params);
    }
    serde_json::from_value(Value::Object(message))
        .map_err(|_| ErrorData::invalid_params("The parameters must be an object.", None))
}

/// Describes why the parameters could not be parsed.
fn describe(bad: &BadInput) -> String {
    match bad {
        BadInput::TooLarge { bytes, limit } => {
            format!("The parameters have {bytes} bytes; at most {limit} are read.")
        }
        BadInput::TooDeep { limit } => {
            format!("The parameters nest deeper than {limit} levels.")
        }
        BadInput::TooMany { limit } => {
            format!("The parameters hold more than {limit} values.")
        }
        BadInput::CutOff { .. } => "The parameters are incomplete.".into(),
        BadInput::NotJson { message, .. } => {
            format!("The parameters are not valid JSON: {message}.")
        }
        BadInput::DuplicateKey { .. } => "The parameters have a duplicate member.".into(),
    }
}

fn bad_id() -> ErrorData {
    ErrorData::invalid_request("`id` must be a string or a whole number.", None)
}

fn valid(message: ClientJsonRpcMessage) -> ParsedMessage {
    ParsedMessage::Message(Box::new(message))
}

fn invalid(id: Option<RequestId>, error: ErrorData) -> ParsedMessage {
    ParsedMessage::Invalid { id, error }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_can_be_parsed(line in proptest::collection::vec(any::<u8>(), 0..100)) {
            parse_message(&line);
        }

        #[test]
        fn any_members_can_be_parsed(
            members in proptest::collection::vec((
                "jsonrpc|id|method|params|result|error|[a-z]{1,3}",
                "\"2.0\"|\"tools/call\"|\"ping\"|\"notifications/cancelled\"|1|-1.5|null|\\{\\}|\\[1\\]|\\{\"name\":\"a\",\"arguments\":(\\{\\}|7|é)\\}",
            ), 0..6),
        ) {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            parse_message(format!("{{{}}}", members.join(", ")).as_bytes());
        }

        #[test]
        fn arguments_are_passed_on_verbatim(text in "\\PC{0,20}", after in any::<bool>()) {
            let arguments = format!("{{ \"é\" : {} }}", Value::from(text));
            let params = match after {
                true => format!("{{\"name\":\"ü\", \"arguments\" : {arguments} }}"),
                false => format!("{{\"arguments\":{arguments},\"name\":\"ü\"}}"),
            };
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let ParsedMessage::Message(message) = parse_message(line.as_bytes()) else { panic!("not a message") };
            let (request, _) = message.into_request().unwrap();
            let found = request.extensions().get::<RawArguments>().map(|found| found.0.clone());
            prop_assert_eq!(found, Some(arguments));
            let ClientRequest::CallToolRequest(call) = request else { panic!("no call") };
            prop_assert_eq!(&*call.params.name, "ü");
        }
    }
}
