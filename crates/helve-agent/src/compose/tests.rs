//! Tests of requests built from interrupted, undone and summarized transcripts.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::item::NoteKind;
use crate::request::{ModelRequest, ModelSettings, ToolChoice};
use crate::wire;

fn model(protocol: Protocol) -> ModelRef {
    ModelRef { provider: "p".into(), name: "m".into(), protocol }
}

fn call(id: &str, arguments: &str) -> Block {
    Block::Call(CallBlock {
        id: id.into(),
        name: "read".into(),
        arguments: arguments.into(),
        form: CallForm::Json,
    })
}

fn assistant(blocks: Vec<Block>, protocol: Protocol) -> Item {
    let stop = StopReason::ToolUse;
    Item::Assistant(AssistantMessage { blocks, origin: model(protocol), stop, is_partial: false })
}

fn result(call: &str, text: &str) -> Item {
    Item::Result(CallResult {
        call: call.into(),
        title: "a.txt".into(),
        content: vec![MessagePart::Text(text.into())],
        is_error: false,
        saved: None,
    })
}

fn user(text: &str) -> Item {
    Item::User { content: vec![MessagePart::Text(text.into())] }
}

fn entries(items: Vec<Item>) -> Vec<Entry> {
    (1..).zip(items).map(|(seq, item)| Entry { seq, item }).collect()
}

fn body(entries: &[Entry], protocol: Protocol) -> Value {
    let (model, settings) = (model(protocol), ModelSettings::default());
    let target = Target { model: &model, quirks: &settings.quirks, tools: &[] };
    let request = ModelRequest {
        model: &model,
        system: &[],
        tools: &[],
        messages: messages(entries, &target),
        tool_choice: ToolChoice::Auto,
        settings: &settings,
        output_schema: None,
        cache_key: "s",
    };
    serde_json::from_slice(&wire::body(&request)).unwrap()
}

/// Shows the messages of a chat request, one line each.
#[track_caller]
fn check(items: Vec<Item>, expected: expect_test::Expect) {
    let body = body(&entries(items), Protocol::Chat);
    let mut text = String::new();
    for message in body["messages"].as_array().unwrap() {
        text.push_str(&message.to_string());
        text.push('\n');
    }
    expected.assert_eq(&text);
}

#[test]
fn missing_results_are_inserted_and_orphaned_ones_dropped() {
    use expect_test::expect;
    check(
        vec![
            user("go"),
            assistant(vec![call("a", "{}"), call("b", r#"{"x":1}"#)], Protocol::Chat),
            result("b", "two"),
            result("nobody", "lost"),
            user("next"),
        ],
        expect![[r#"
            {"role":"user","content":"go"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{\"x\":1}"}}]}
            {"role":"tool","tool_call_id":"a","content":"interrupted: the program ended before this call finished"}
            {"role":"tool","tool_call_id":"b","content":"two"}
            {"role":"user","content":"next"}
        "#]],
    );
    check(
        vec![
            result("a", "before its call"),
            assistant(vec![call("a", "not json"), call("+|", "")], Protocol::Chat),
            result("a", ""),
            Item::Note { note: NoteKind::Aborted, text: "aborted".into() },
            user("next"),
        ],
        expect![[r#"
            {"role":"user","content":"(The conversation continues.)"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"_raw\":\"not json\"}"}},{"id":"_f1c320fb65ce4336","type":"function","function":{"name":"read","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"a","content":"(no output)"}
            {"role":"tool","tool_call_id":"_f1c320fb65ce4336","content":"interrupted: the program ended before this call finished"}
            {"role":"user","content":[{"type":"text","text":"aborted"},{"type":"text","text":"next"}]}
        "#]],
    );
}

#[test]
fn undone_items_and_summarized_items_are_left_out() {
    use expect_test::expect;
    let undone = || {
        vec![
            user("one"),
            assistant(vec![call("a", "{}")], Protocol::Chat),
            result("a", "out"),
            user("two"),
            Item::Undone { from: 2, call: None },
        ]
    };
    check(
        [undone(), vec![user("three")]].concat(),
        expect![[r#"
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"three"}]}
    "#]],
    );
    check(
        [undone(), vec![Item::Redone { undone: 5 }]].concat(),
        expect![[r#"
        {"role":"user","content":"one"}
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"a","content":"out"}
        {"role":"user","content":"two"}
    "#]],
    );
    check(
        vec![
            user("old"),
            user("kept"),
            assistant(vec![call("a", "{}")], Protocol::Chat),
            result("a", "out"),
            assistant(vec![call("b", "{}")], Protocol::Chat),
            result("b", "x\ny"),
            Item::OutputsCleared { before: 7 },
            user("during"),
            // Keeps the second item, and all items from the fifth on.
            Item::Summary { text: "so far".into(), kept: vec![2], tail: 5 },
            user("after"),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"so far"},{"type":"text","text":"kept"}]}
            {"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"b","content":"[a.txt: 2 lines, left out]"}
            {"role":"user","content":[{"type":"text","text":"during"},{"type":"text","text":"after"}]}
        "#]],
    );
}

const PROTOCOLS: [Protocol; 3] = [Protocol::Chat, Protocol::Responses, Protocol::Messages];

#[test]
fn unusual_ids_are_converted_alike_in_calls_and_results() {
    for protocol in PROTOCOLS {
        for id in ["a|b+c".to_string(), format!("call|{}", "x".repeat(450)), "é".into()] {
            let mut items = vec![
                user("go"),
                assistant(vec![call(&id, "{}")], Protocol::Responses),
                result(&id, "out"),
            ];
            let ids = |items: &[Item]| -> Vec<String> {
                let body = body(&entries(items.to_vec()), protocol).to_string();
                let fields = ["\"id\":\"", "\"call_id\":\"", "_call_id\":\"", "tool_use_id\":\""];
                let found = fields.iter().flat_map(|field| body.split(field).skip(1));
                found.map(|rest| rest.split('"').next().unwrap_or_default().to_string()).collect()
            };
            let first = ids(&items);
            assert!(first.len() >= 2, "{protocol:?} {first:?}");
            assert!(first.iter().all(|id| *id == first[0]), "{protocol:?} {first:?}");
            assert!(first[0].len() <= 64 && first[0].bytes().all(is_plain), "{first:?}");
            items.push(user("next"));
            assert_eq!(ids(&items), first, "later requests have the same id");
        }
    }
}

#[test]
fn reasoning_is_sent_to_the_same_model_only() {
    let raw = |protocol: Protocol| {
        let raw = match protocol {
            Protocol::Chat => r#"{"reasoning_content":"SIGNED"}"#,
            Protocol::Responses => {
                r#"{"type":"reasoning","summary":[],"encrypted_content":"SIGNED"}"#
            }
            Protocol::Messages => r#"{"type":"thinking","thinking":"","signature":"SIGNED"}"#,
        };
        serde_json::value::RawValue::from_string(raw.into()).unwrap()
    };
    let thought = |raw| Block::Reasoning { text: "HIDDEN".into(), raw };
    for from in PROTOCOLS {
        for to in PROTOCOLS {
            let blocks = vec![thought(Some(raw(from))), call("a", "{}"), thought(None)];
            let items = vec![user("go"), assistant(blocks, from), result("a", "out")];
            let body = body(&entries(items), to);
            assert_paired(&body, to);
            let text = body.to_string();
            assert_eq!(text.contains("SIGNED"), from == to, "{text}");
            assert!(!text.contains("HIDDEN") && text.contains("out"), "{text}");
        }
        // Nothing follows the reasoning, or a person stopped the reply.
        let alone = assistant(vec![thought(Some(raw(from)))], from);
        let blocks = vec![thought(Some(raw(from))), Block::Text("so".into()), call("a", "{}")];
        let Item::Assistant(message) = assistant(blocks, from) else { panic!("not a message") };
        let stopped = Item::Assistant(AssistantMessage { is_partial: true, ..message });
        for (item, has_text) in [(alone, false), (stopped, true)] {
            let body = body(&entries(vec![user("go"), item, user("next")]), from);
            assert_paired(&body, from);
            let text = body.to_string();
            assert!(!text.contains("SIGNED"), "{text}");
            assert_eq!(text.contains("\"so\""), has_text, "{text}");
        }
    }
}

#[test]
fn some_models_want_reasoning_and_content_with_every_call() {
    for (url, name, expected) in [
        ("https://api.deepseek.com", "deepseek-reasoner", r#""reasoning_content":"""#),
        ("https://proxy.example", "Kimi-K2", r#""content":"""#),
        ("https://api.openai.com/v1", "gpt-5", r#""content":null"#),
    ] {
        let quirks = Quirks::known(url, name);
        let (model, settings) =
            (model(Protocol::Chat), ModelSettings { quirks, ..ModelSettings::default() });
        let target = Target { model: &model, quirks: &settings.quirks, tools: &[] };
        let entries = entries(vec![user("go"), assistant(vec![call("a", "{}")], Protocol::Chat)]);
        let request = ModelRequest {
            model: &model,
            system: &[],
            tools: &[],
            messages: messages(&entries, &target),
            tool_choice: ToolChoice::Auto,
            settings: &settings,
            output_schema: None,
            cache_key: "s",
        };
        let body = String::from_utf8(wire::body(&request)).unwrap();
        assert!(body.contains(expected), "{name}: {body}");
    }
}

#[test]
fn images_are_limited_and_left_out_for_models_without_vision() {
    let image = |data: String| MessagePart::Media { mime: "image/png".into(), data, name: None };
    let images = (0..21).map(|number| image(format!("IMAGE{number:02}"))).collect();
    let entries = entries(vec![Item::User { content: images }]);
    for protocol in PROTOCOLS {
        for (reads_images, shown) in [(true, 20), (false, 0)] {
            let (model, quirks) = (model(protocol), Quirks { reads_images, ..Quirks::default() });
            let target = Target { model: &model, quirks: &quirks, tools: &[] };
            let messages = format!("{:?}", messages(&entries, &target));
            assert_eq!(messages.matches("IMAGE").count(), shown, "{messages}");
            assert!(!messages.contains("IMAGE00"), "the oldest one is left out: {messages}");
        }
    }
}

/// Checks what each protocol requires of calls and results, as a provider would.
fn assert_paired(body: &Value, protocol: Protocol) {
    let mut open: Vec<String> = Vec::new();
    let mut answered = 0;
    let mut step = |kind: &str, id: &str| match kind {
        "call" => {
            assert_eq!(answered, 0, "a call between results: {body}");
            assert!(!open.contains(&id.to_string()), "an id twice: {body}");
            open.push(id.into());
        }
        "result" => {
            assert_eq!(open.get(answered).map(String::as_str), Some(id), "out of order: {body}");
            answered += 1;
            if answered == open.len() {
                open.clear();
                answered = 0;
            }
        }
        _ => assert!(open.is_empty(), "unanswered calls before {kind}: {body}"),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    match protocol {
        Protocol::Chat => {
            for message in body["messages"].as_array().unwrap() {
                match message["role"].as_str().unwrap() {
                    "tool" => step("result", &text(&message["tool_call_id"])),
                    "assistant" => {
                        step("message", "");
                        for call in message["tool_calls"].as_array().into_iter().flatten() {
                            step("call", &text(&call["id"]));
                            let arguments = text(&call["function"]["arguments"]);
                            let arguments: Value = serde_json::from_str(&arguments).unwrap();
                            assert!(arguments.is_object());
                        }
                    }
                    _ => step("message", ""),
                }
            }
        }
        Protocol::Responses => {
            for item in body["input"].as_array().unwrap() {
                match item["type"].as_str().unwrap() {
                    "function_call" => step("call", &text(&item["call_id"])),
                    "function_call_output" => step("result", &text(&item["call_id"])),
                    "message" if item["role"] == "user" => step("message", ""),
                    // Text and reasoning may stand between the calls of one response.
                    _ => {}
                }
            }
        }
        Protocol::Messages => {
            let mut last_role = "assistant".to_string();
            for message in body["messages"].as_array().unwrap() {
                let role = text(&message["role"]);
                assert_ne!(role, last_role, "roles must alternate: {body}");
                last_role = role;
                let content = message["content"].as_array().unwrap();
                assert!(!content.is_empty());
                for block in content {
                    match block["type"].as_str().unwrap() {
                        "tool_use" => step("call", &text(&block["id"])),
                        "tool_result" => step("result", &text(&block["tool_use_id"])),
                        "text" => assert!(!text(&block["text"]).trim().is_empty()),
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(open.is_empty(), "unanswered calls at the end: {body}");
}

fn any_item() -> impl Strategy<Value = Item> {
    let id = "[ab+]{1,2}";
    let protocol =
        prop::sample::select(vec![Protocol::Chat, Protocol::Responses, Protocol::Messages]);
    let block = prop_oneof![
        "[ x]{0,2}".prop_map(Block::Text),
        (id, prop::sample::select(vec!["{}", "", "{\"a\":1}", "[1]", "{cut"]))
            .prop_map(|(id, arguments)| call(&id, arguments)),
        any::<bool>().prop_map(|has_raw| Block::Reasoning {
            text: "hm".into(),
            raw: has_raw.then(|| serde_json::value::to_raw_value(
                &serde_json::json!({"type": "reasoning"})
            )
            .unwrap()),
        }),
    ];
    let message = (prop::collection::vec(block, 0..4), protocol, any::<bool>()).prop_map(
        |(mut blocks, protocol, is_partial)| {
            // Ids that occur twice are renamed before a message is stored.
            let mut ids = BTreeSet::new();
            blocks.retain(|block| match block {
                Block::Call(call) => ids.insert(call.id.clone()),
                Block::Text(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => {
                    true
                }
            });
            let stop = StopReason::ToolUse;
            let origin = model(protocol);
            Item::Assistant(AssistantMessage { blocks, origin, stop, is_partial })
        },
    );
    prop_oneof![
        3 => message,
        2 => (id, "[ x]{0,2}").prop_map(|(id, text)| result(&id, &text)),
        1 => "[ x]{0,2}".prop_map(|text| user(&text)),
        1 => (0u64..12, 0u64..12)
            .prop_map(|(kept, tail)| Item::Summary { text: "so far".into(), kept: vec![kept], tail }),
        1 => (0u64..12).prop_map(|from| Item::Undone { from, call: None }),
        1 => (0u64..12).prop_map(|undone| Item::Redone { undone }),
        1 => (0u64..12).prop_map(|before| Item::OutputsCleared { before }),
    ]
}

/// The number of random transcripts. `cargo xtask torture` sets a larger one.
fn cases() -> u32 {
    std::env::var("HELVE_TRANSCRIPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn every_request_is_accepted(items in prop::collection::vec(any_item(), 0..12)) {
        let entries = entries(items);
        for protocol in PROTOCOLS {
            assert_paired(&body(&entries, protocol), protocol);
        }
    }
}

/// One step of a run: what is appended between two requests.
#[derive(Clone, Debug)]
enum RunStep {
    /// A reply with text and calls, and the results of the calls.
    Calls { text: String, calls: u8, interrupted: bool },
    /// An answer, and the next message of the user.
    Answer { text: String, prompt: String },
    /// A reply that was cut, and a note about it.
    Cut { text: String, note: String },
}

fn any_step() -> impl Strategy<Value = RunStep> {
    let text = "[ a-zé\"\\n]{0,8}";
    prop_oneof![
        4 => (text, 1u8..4, any::<bool>())
            .prop_map(|(text, calls, interrupted)| RunStep::Calls { text, calls, interrupted }),
        2 => ("[a-z]{1,8}", "[a-z ]{1,8}x")
            .prop_map(|(text, prompt)| RunStep::Answer { text, prompt }),
        1 => ("[a-z]{1,8}", "[a-z]{1,8}").prop_map(|(text, note)| RunStep::Cut { text, note }),
    ]
}

/// The items of a step.
fn items_of(step: &RunStep, number: usize, protocol: Protocol) -> Vec<Item> {
    match step {
        RunStep::Calls { text, calls, interrupted } => {
            let id = |index: u8| format!("call+{number}.{index}");
            let mut blocks = vec![Block::Text(text.clone())];
            blocks.extend((0..*calls).map(|index| call(&id(index), "{\"a\": 1}")));
            let mut items = vec![assistant(blocks, protocol)];
            let answered = if *interrupted { calls - 1 } else { *calls };
            items.extend((0..answered).map(|index| result(&id(index), text)));
            items
        }
        RunStep::Answer { text, prompt } => {
            vec![assistant(vec![Block::Text(text.clone())], protocol), user(prompt)]
        }
        RunStep::Cut { text, note } => {
            let note = Item::Note { note: NoteKind::Correction, text: note.clone() };
            vec![assistant(vec![Block::Text(text.clone())], protocol), note]
        }
    }
}

/// The conversation of a request as bytes, without cache marks and without the brackets that close it.
fn conversation(entries: &[Entry], protocol: Protocol) -> String {
    fn without_marks(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("cache_control");
                members.values_mut().for_each(without_marks);
            }
            Value::Array(items) => items.iter_mut().for_each(without_marks),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut body = body(entries, protocol);
    without_marks(&mut body);
    let field = if protocol == Protocol::Responses { "input" } else { "messages" };
    body[field].to_string().trim_end_matches([']', '}']).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 10))]
    #[test]
    fn every_request_begins_with_the_previous_one(
        steps in prop::collection::vec(any_step(), 1..10)
    ) {
        for protocol in [Protocol::Chat, Protocol::Responses, Protocol::Messages] {
            let mut items = vec![
                Item::Note { note: NoteKind::Environment, text: "environment".into() },
                user("begin"),
            ];
            let mut previous = conversation(&entries(items.clone()), protocol);
            for (number, step) in steps.iter().enumerate() {
                items.extend(items_of(step, number, protocol));
                let next = conversation(&entries(items.clone()), protocol);
                prop_assert!(next.starts_with(&previous), "{previous}\n{next}");
                previous = next;
            }
        }
    }
}
