//! Tests of the three protocols: streams as providers send them, and bodies as they expect them.

use expect_test::{Expect, expect};
use serde_json::value::RawValue;

use super::*;
use crate::failure::FailureKind;
use crate::item::StopReason;
use crate::item::{Block, CallForm, ModelRef};
use crate::request::{
    AssistantPart, CallPart, InputPart, Message, ModelSettings, ResultPart, ToolChoice,
    ToolDefinition, ToolInput,
};

/// Shows the reply to these events, one line per block.
fn shown(protocol: Protocol, events: &[&str], max_output: Option<u64>) -> String {
    let mut decoder = ReplyDecoder::new(protocol, max_output);
    let mut deltas = Vec::new();
    for data in events {
        let event = SseEvent { name: String::new(), data: data.to_string() };
        if let Err(failure) = decoder.event(&event, &mut deltas) {
            return format!("{:?}: {}\n", failure.kind, failure.message);
        }
    }
    let reply = match decoder.finish() {
        Ok(reply) => reply,
        Err(failure) => return format!("{:?}: {}\n", failure.kind, failure.message),
    };
    let mut text = String::new();
    for block in &reply.blocks {
        text.push_str(&match block {
            Block::Text(text) => format!("text {text:?}\n"),
            Block::Reasoning { text, raw } => {
                format!("reasoning {text:?} {}\n", raw.as_deref().map_or("-", RawValue::get))
            }
            Block::Call(call) => {
                format!("{:?} call {} {} {}\n", call.form, call.id, call.name, call.arguments)
            }
            Block::Phase(phase) => format!("phase {phase}\n"),
            Block::Other(raw) => format!("other {}\n", raw.get()),
        });
    }
    text.push_str(&format!("{:?}\n", reply.stop));
    if let Some(usage) = reply.usage {
        text.push_str(&format!(
            "input {} read {} written {} output {} reasoning {}\n",
            usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning
        ));
    }
    text
}

#[track_caller]
fn check(protocol: Protocol, events: &[&str], expected: Expect) {
    expected.assert_eq(&shown(protocol, events, None));
}

fn chunk(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

#[track_caller]
fn check_chat(deltas: &[&str], finish: &str, expected: Expect) {
    let mut events: Vec<String> = deltas.iter().map(|delta| chunk(delta)).collect();
    events.push(format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#));
    events.push("[DONE]".into());
    events.push("garbage".into());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    check(Protocol::Chat, &events, expected);
}

#[test]
fn chat_text_is_concatenated() {
    check_chat(
        &[r#"{"role":"assistant","content":""}"#, r#"{"content":"Hel"}"#, r#"{"content":"lo"}"#],
        "stop",
        expect![[r#"
            text "Hello"
            EndTurn
        "#]],
    );
}

#[test]
fn chat_calls_may_be_interleaved_split_and_repeated() {
    check_chat(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a"},{"index":1,"id":"b","function":{"name":"list"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"a\""}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"name":"list","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":":1}"}}]}"#,
        ],
        "tool_calls",
        expect![[r#"
            Json call a read {"a":1}
            Json call b list {}
            ToolUse
        "#]],
    );
    check_chat(
        &[
            r#"{"tool_calls":[{"function":{"name":"read","arguments":"{}"}},{"function":{"name":"list"}}]}"#,
        ],
        "stop",
        expect![[r#"
            Json call  read {}
            Json call  list 
            ToolUse
        "#]],
    );
}

#[test]
fn chat_reasoning_is_kept_in_its_field() {
    check_chat(
        &[
            r#"{"reasoning_content":"I ","reasoning":"I "}"#,
            r#"{"reasoning_content":"see","reasoning":"see"}"#,
            r#"{"content":"ok"}"#,
        ],
        "stop",
        expect![[r#"
            reasoning "I see" {"reasoning_content":"I see"}
            text "ok"
            EndTurn
        "#]],
    );
    check_chat(
        &[
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","n":1.0}],"content":"ok"}"#,
        ],
        "stop",
        expect![[r#"
            reasoning "" {"reasoning_details":[{"type":"reasoning.encrypted","data":"x","n":1.0}]}
            text "ok"
            EndTurn
        "#]],
    );
}

#[test]
fn chat_usage_is_found_wherever_it_is() {
    let end = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
    check(
        Protocol::Chat,
        &[
            end,
            r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
        ],
        expect![[r#"
            text "x"
            EndTurn
            input 60 read 40 written 0 output 4 reasoning 3
        "#]],
    );
    check(
        Protocol::Chat,
        &[
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_cache_hit_tokens":9}}],"usage":null}"#,
        ],
        expect![[r#"
            text "x"
            EndTurn
            input 0 read 5 written 0 output 1 reasoning 0
        "#]],
    );
}

#[test]
fn chat_replies_that_were_cut_are_recognised() {
    let call = chunk(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"a"}}]}"#,
    );
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":50}}"#;
    let cut = shown(Protocol::Chat, &[&call, end], Some(50));
    assert!(cut.contains("\nLength\n"), "{cut}");
    let whole = shown(Protocol::Chat, &[&call, end], Some(60));
    assert!(whole.contains("\nToolUse\n"), "{whole}");
    check(
        Protocol::Chat,
        &[&call],
        expect![[r#"
            Cut: the stream ended before the reply was complete
        "#]],
    );
    check_chat(
        &[r#"{"content":"half"}"#],
        "length",
        expect![[r#"
            text "half"
            Length
        "#]],
    );
}

#[test]
fn chat_errors_in_the_stream_are_classified() {
    check(
        Protocol::Chat,
        &[&chunk(r#"{"content":"x"}"#), r#"{"error":{"message":"Overloaded","code":529}}"#],
        expect![[r#"
            Overloaded: the provider reported an error: Overloaded
        "#]],
    );
    check(
        Protocol::Chat,
        &["{not json"],
        expect![[r#"
            Protocol: the provider sent an event that is not valid: key must be a string at line 1 column 2
        "#]],
    );
}

#[test]
fn messages_blocks_are_assembled() {
    check(
        Protocol::Messages,
        &[
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AB"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"C="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"zz"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"so"}}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"s","n":1.50}}"#,
            r#"{"type":"something_new"}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        expect![[r#"
            reasoning "hm" {"type":"thinking","thinking":"hm","signature":"ABC="}
            reasoning "" {"type":"redacted_thinking","data":"zz"}
            text "so"
            Json call t1 read {"p":1}
            other {"type":"server_tool_use","id":"s","n":1.50}
            ToolUse
            input 10 read 5 written 2 output 9 reasoning 0
        "#]],
    );
}

#[test]
fn messages_stop_reasons_are_mapped() {
    for (reason, stop) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::ContextFull),
        ("refusal", StopReason::Refused),
        ("pause_turn", StopReason::Paused),
        ("new_reason", StopReason::Other("new_reason".into())),
    ] {
        let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        let text = shown(Protocol::Messages, &[&end, r#"{"type":"message_stop"}"#], None);
        assert_eq!(text, format!("{stop:?}\n"));
    }
    check(
        Protocol::Messages,
        &[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#],
        expect![[r#"
            Overloaded: the provider reported an error: Overloaded
        "#]],
    );
    check(
        Protocol::Messages,
        &[r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#],
        expect![[r#"
            Cut: the stream ended before the reply was complete
        "#]],
    );
}

#[test]
fn responses_only_finished_items_are_used() {
    check(
        Protocol::Responses,
        &[
            r#"{"type":"response.created","response":{"id":"r"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"plan"}],"encrypted_content":"EEE"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_2","summary":[]}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c1","name":"read","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"i","delta":"{\"wrong"}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"right\":1}"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"web_search_call","id":"w"}}"#,
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2}}}}"#,
        ],
        expect![[r#"
            reasoning "plan" {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"plan"}],"encrypted_content":"EEE"}
            reasoning "" -
            Json call c1 read {"right":1}
            Text call c2 apply_patch *** Begin
            text "done"
            other {"type":"web_search_call","id":"w"}
            ToolUse
            input 5 read 4 written 0 output 4 reasoning 2
        "#]],
    );
}

#[test]
fn responses_that_fail_or_stop_are_recognised() {
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"incomplete_details":{{"reason":"{reason}"}}}}}}"#
        )
    };
    let stop = |reason: &str| shown(Protocol::Responses, &[&incomplete(reason)], None);
    assert_eq!(stop("max_output_tokens"), "Length\n");
    assert_eq!(stop("content_filter"), "Refused\n");
    assert_eq!(stop("other"), "Other(\"other\")\n");
    check(
        Protocol::Responses,
        &[
            r#"{"type":"response.failed","response":{"error":{"code":"server_is_overloaded","message":"busy"}}}"#,
        ],
        expect![[r#"
            Overloaded: the provider reported an error: busy
        "#]],
    );
    check(
        Protocol::Responses,
        &[r#"{"type":"response.output_text.delta","delta":"x"}"#],
        expect![[r#"
            Cut: the stream ended before the reply was complete
        "#]],
    );
}

#[test]
fn whole_documents_are_read() {
    let documents = [
        (Protocol::Chat, r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#),
        (
            Protocol::Responses,
            r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#,
        ),
        (
            Protocol::Messages,
            r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#,
        ),
    ];
    for (protocol, document) in documents {
        let mut decoder = ReplyDecoder::new(protocol, None);
        decoder.whole_reply(document).unwrap();
        let reply = decoder.finish().unwrap();
        assert!(matches!(&reply.blocks[..], [Block::Text(text)] if text == "hi"), "{reply:?}");
        assert_eq!(reply.stop, StopReason::EndTurn);
        let failed = ReplyDecoder::new(protocol, None).whole_reply("<html>").unwrap_err();
        assert_eq!(failed.kind, FailureKind::Protocol);
    }
}

/// A request with everything in it.
fn sample_body(protocol: Protocol) -> String {
    let model = ModelRef { provider: "p".into(), name: "m".into(), protocol };
    let mut settings = ModelSettings { max_output: Some(100), ..ModelSettings::default() };
    settings.effort = Some("low".into());
    let schema = RawValue::from_string(r#"{"type":"object"}"#.into()).unwrap();
    let tools = [
        ToolDefinition {
            name: "apply_patch".into(),
            about: "Patches".into(),
            input: ToolInput::Text {
                grammar: "start: x".into(),
                field: "patchText".into(),
                about: "The patch".into(),
            },
        },
        ToolDefinition {
            name: "read".into(),
            about: "Reads".into(),
            input: ToolInput::Json(schema),
        },
    ];
    let reasoning = match protocol {
        Protocol::Chat => r#"{"reasoning_content":"hm"}"#,
        Protocol::Responses => {
            r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"E"}"#
        }
        Protocol::Messages => r#"{"type":"thinking","thinking":"hm","signature":"S"}"#,
    };
    let reasoning = RawValue::from_string(reasoning.into()).unwrap();
    let call = |id: &'static str, name: &'static str, arguments: &'static str, form| {
        AssistantPart::Call(CallPart {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            form,
        })
    };
    let text_form = match protocol {
        Protocol::Responses => CallForm::Text,
        Protocol::Chat | Protocol::Messages => CallForm::Json,
    };
    let patch =
        if text_form == CallForm::Text { "*** Begin" } else { r#"{"patchText":"*** Begin"}"# };
    let image = InputPart::Media { mime: "image/png", data: "AAAA", name: None };
    let result = |call: &'static str, form, content, is_error| ResultPart {
        call: call.into(),
        form,
        content,
        is_error,
    };
    let messages = vec![
        Message::User(vec![InputPart::Text("look".into())]),
        Message::Assistant(vec![
            AssistantPart::Reasoning(&reasoning),
            AssistantPart::Text("I look"),
            call("c1", "read", r#"{"filePath":"a"}"#, CallForm::Json),
            call("c2", "apply_patch", patch, text_form),
        ]),
        Message::Results(vec![
            result("c1", CallForm::Json, vec![InputPart::Text("1: a".into()), image], false),
            result("c2", text_form, vec![InputPart::Text("refused".into())], true),
        ]),
        Message::User(vec![InputPart::Text("go on".into())]),
    ];
    let request = ModelRequest {
        model: &model,
        system: &["You are Helve.".to_string()],
        tools: &tools,
        messages,
        tool_choice: ToolChoice::Auto,
        settings: &settings,
        output_schema: None,
        cache_key: "session-1",
    };
    let value: serde_json::Value = serde_json::from_slice(&body(&request)).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn chat_body() {
    expect![[r#"
        {
          "model": "m",
          "stream": true,
          "stream_options": {
            "include_usage": true
          },
          "max_tokens": 100,
          "reasoning_effort": "low",
          "tool_choice": "auto",
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "apply_patch",
                "description": "Patches",
                "parameters": {
                  "type": "object",
                  "properties": {
                    "patchText": {
                      "type": "string",
                      "description": "The patch"
                    }
                  },
                  "required": [
                    "patchText"
                  ]
                }
              }
            },
            {
              "type": "function",
              "function": {
                "name": "read",
                "description": "Reads",
                "parameters": {
                  "type": "object"
                }
              }
            }
          ],
          "messages": [
            {
              "role": "system",
              "content": "You are Helve."
            },
            {
              "role": "user",
              "content": "look"
            },
            {
              "role": "assistant",
              "content": "I look",
              "tool_calls": [
                {
                  "id": "c1",
                  "type": "function",
                  "function": {
                    "name": "read",
                    "arguments": "{\"filePath\":\"a\"}"
                  }
                },
                {
                  "id": "c2",
                  "type": "function",
                  "function": {
                    "name": "apply_patch",
                    "arguments": "{\"patchText\":\"*** Begin\"}"
                  }
                }
              ],
              "reasoning_content": "hm"
            },
            {
              "role": "tool",
              "tool_call_id": "c1",
              "content": "1: a\n(see the attachment below)"
            },
            {
              "role": "tool",
              "tool_call_id": "c2",
              "content": "refused"
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "Attachments of the results above:"
                },
                {
                  "type": "image_url",
                  "image_url": {
                    "url": "data:image/png;base64,AAAA"
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": "go on"
            }
          ]
        }"#]]
    .assert_eq(&sample_body(Protocol::Chat));
}

#[test]
fn responses_body() {
    expect![[r#"
        {
          "model": "m",
          "stream": true,
          "store": false,
          "instructions": "You are Helve.",
          "include": [
            "reasoning.encrypted_content"
          ],
          "reasoning": {
            "effort": "low",
            "summary": "auto"
          },
          "max_output_tokens": 100,
          "prompt_cache_key": "session-1",
          "tool_choice": "auto",
          "parallel_tool_calls": true,
          "tools": [
            {
              "type": "custom",
              "name": "apply_patch",
              "description": "Patches",
              "format": {
                "type": "grammar",
                "syntax": "lark",
                "definition": "start: x"
              }
            },
            {
              "type": "function",
              "name": "read",
              "description": "Reads",
              "parameters": {
                "type": "object"
              },
              "strict": false
            }
          ],
          "input": [
            {
              "type": "message",
              "role": "user",
              "content": [
                {
                  "type": "input_text",
                  "text": "look"
                }
              ]
            },
            {
              "type": "reasoning",
              "summary": [],
              "encrypted_content": "E"
            },
            {
              "type": "message",
              "role": "assistant",
              "content": "I look"
            },
            {
              "type": "function_call",
              "call_id": "c1",
              "name": "read",
              "arguments": "{\"filePath\":\"a\"}"
            },
            {
              "type": "custom_tool_call",
              "call_id": "c2",
              "name": "apply_patch",
              "input": "*** Begin"
            },
            {
              "type": "function_call_output",
              "call_id": "c1",
              "output": [
                {
                  "type": "input_text",
                  "text": "1: a"
                },
                {
                  "type": "input_image",
                  "image_url": "data:image/png;base64,AAAA",
                  "detail": "auto"
                }
              ]
            },
            {
              "type": "custom_tool_call_output",
              "call_id": "c2",
              "output": "refused"
            },
            {
              "type": "message",
              "role": "user",
              "content": [
                {
                  "type": "input_text",
                  "text": "go on"
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&sample_body(Protocol::Responses));
}

#[test]
fn messages_body() {
    expect![[r#"
        {
          "model": "m",
          "max_tokens": 100,
          "stream": true,
          "thinking": {
            "type": "adaptive"
          },
          "output_config": {
            "effort": "low"
          },
          "tools": [
            {
              "name": "apply_patch",
              "description": "Patches",
              "input_schema": {
                "type": "object",
                "properties": {
                  "patchText": {
                    "type": "string",
                    "description": "The patch"
                  }
                },
                "required": [
                  "patchText"
                ]
              }
            },
            {
              "name": "read",
              "description": "Reads",
              "input_schema": {
                "type": "object"
              },
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "tool_choice": {
            "type": "auto"
          },
          "system": [
            {
              "type": "text",
              "text": "You are Helve.",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "look"
                }
              ]
            },
            {
              "role": "assistant",
              "content": [
                {
                  "type": "thinking",
                  "thinking": "hm",
                  "signature": "S"
                },
                {
                  "type": "text",
                  "text": "I look"
                },
                {
                  "type": "tool_use",
                  "id": "c1",
                  "name": "read",
                  "input": {
                    "filePath": "a"
                  }
                },
                {
                  "type": "tool_use",
                  "id": "c2",
                  "name": "apply_patch",
                  "input": {
                    "patchText": "*** Begin"
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "tool_result",
                  "tool_use_id": "c1",
                  "is_error": false,
                  "content": [
                    {
                      "type": "text",
                      "text": "1: a"
                    },
                    {
                      "type": "image",
                      "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "AAAA"
                      }
                    }
                  ]
                },
                {
                  "type": "tool_result",
                  "tool_use_id": "c2",
                  "is_error": true,
                  "content": [
                    {
                      "type": "text",
                      "text": "refused"
                    }
                  ]
                },
                {
                  "type": "text",
                  "text": "go on",
                  "cache_control": {
                    "type": "ephemeral"
                  }
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&sample_body(Protocol::Messages));
}
