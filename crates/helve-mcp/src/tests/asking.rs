//! Questions that calls raise, and every way in which they end.

use expect_test::{Expect, expect};

use super::{check, lines, run};

/// Initializes a client that shows forms. [`check`] explains the prefix `+ `.
const INITIALIZE_WITH_FORMS: &str = r#"{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"tester","version":"1.0"}}}
+ {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"touch","arguments":{"times":1}}}"#;

/// The schema of the form, which has a test of its own.
const SCHEMA: &str = r#""requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"Allow","description":"Allow it this once, for this session, for this project, in all your projects, or not at all","enum":["once","session","project","everywhere","no","no, with a reason"],"default":"once"}},"required":["decision"]}"#;

/// Runs a script, as [`check`] explains, with a client that shows forms.
fn check_with_forms(script: &str, expected: Expect) {
    let seen = run(&lines(&format!("{INITIALIZE_WITH_FORMS}{script}")));
    let (_hello, rest) = seen.split_once('\n').unwrap();
    expected.assert_eq(&rest.replace(SCHEMA, "FORM"));
}

/// Runs a client of the newest protocol revision. An item that begins with `{` holds the parameters of a call of
/// `touch`; any other item is a line of the script.
fn check_newest(calls: &[&str], expected: Expect) {
    let mut script = String::new();
    for (id, call) in calls.iter().enumerate() {
        match call.strip_prefix('{') {
            Some(params) => script.push_str(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{META},"name":"touch",{params}}}
"#
            )),
            None => script.push_str(&format!("{call}\n")),
        }
    }
    expected.assert_eq(&run(&lines(&script)).replace(SCHEMA, "FORM"));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"new","version":"1"}}"#;

/// What a retry carries besides the arguments.
const YES: &str = r#""requestState":"STATE","inputResponses":{"approval":{"action":"accept","content":{"decision":"once"}}}"#;

#[test]
fn a_call_waits_for_its_answer_between_requests() {
    check_newest(
        &[
            r#"{"arguments":{"times":2}}"#,
            &format!(r#"{{"arguments":{{"times":2}},{YES}}}"#),
            &format!(r#"{{"arguments":{{"times":2}},{YES}}}"#),
        ],
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a2 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"touched"}],"isError":false,"_meta":{"helve/metadata":{"times":2,"truncated":false}}}}
            opened for new 1
            touch Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_answer_counts_only_for_its_question() {
    check_newest(
        &[
            r#"{"arguments":{"times":1}}"#,
            // The additional space does not make it another call, so the answer counts.
            &format!(r#"{{"arguments":{{ "times":1}},{YES}}}"#),
            r#"{"arguments":{"times":1}}"#,
            &format!(
                r#"{{"arguments":{{"times":1}},{}}}"#,
                YES.replace("STATE", "gone.0123456789abcdef0123456789abcdef")
            ),
            &format!(r#"{{"arguments":{{"times":1}},{}}}"#, YES.replace("STATE", "nonsense")),
            r#"{"arguments":{"times":1},"requestState":"STATE"}"#,
        ],
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"touched"}],"isError":false,"_meta":{"helve/metadata":{"times":1,"truncated":false}}}}
            {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            opened for new 1
            touch Error; touch Completed; touch Error; touch Error; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_answer_counts_only_once() {
    let yes = format!(r#"{{"arguments":{{"times":1}},{YES}}}"#);
    check_newest(
        &[r#"{"arguments":{"times":1}}"#, &yes, &yes],
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"touched"}],"isError":false,"_meta":{"helve/metadata":{"times":1,"truncated":false}}}}
            {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            opened for new 1
            touch Completed; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_question_that_nobody_answers_ends_the_call() {
    check_newest(
        &[
            r#"{"arguments":{"times":1}}"#,
            "wait 700",
            &format!(r#"{{"arguments":{{"times":1}},{YES}}}"#),
            r#"{"arguments":{"times":1}}"#,
            "wait 2000",
            r#"{"arguments":{"times":1},"requestState":"x.y"}"#,
        ],
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            opened for new 1
            touch Error; touch Error; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn too_many_questions_end_in_a_refusal() {
    let again = format!(r#"{{"arguments":{{"times":12}},{YES}}}"#);
    let mut calls = vec![r#"{"arguments":{"times":12}}"#];
    calls.extend([&*again; 9]);
    check_newest(
        &calls,
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a2 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a3 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a4 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a5 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a6 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":6,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a7 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a8 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":8,"result":{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Allow this?\nedit a9 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}},"requestState":"STATE"}}
            {"jsonrpc":"2.0","id":9,"result":{"resultType":"complete","content":[{"type":"text","text":"nobody answered the question about edit a10"}],"isError":true}}
            opened for new 1
            touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_without_forms_gets_a_refusal() {
    check(
        CALL,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            opened for tester 1.0
            touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_yes_lets_the_call_continue() {
    check_with_forms(
        &format!(
            r#"+ {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"accept","content":{{"decision":"once"}}}}}}
            ? 1"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"touched"}],"isError":false,"_meta":{"helve/metadata":{"times":1,"truncated":false}}}}
            opened for tester 1.0
            touch Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_lasting_yes_is_remembered() {
    check_with_forms(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"touch","arguments":{"times":2}}}
        ? 1
        + {"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"session"}}}
        ? 1"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"touched"}],"isError":false,"_meta":{"helve/metadata":{"times":2,"truncated":false}}}}
            opened for tester 1.0
            touch Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_no_refuses_and_its_note_reaches_the_model() {
    check_with_forms(
        &format!(
            r#"+ {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"decline"}}}}
            ? 1
            + {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":1,"result":{{"action":"cancel"}}}}
            ? 1
            + {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":2,"result":{{"action":"accept","content":{{"decision":"no","note":"not today"}}}}}}
            ? 1"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the client declined"}],"isError":true}}
            {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"progressToken":1},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"_meta":{"progressToken":2},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rejected { note: Some(\"not today\") }"}],"isError":true}}
            opened for tester 1.0
            touch Error; touch Error; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_no_can_have_a_reason() {
    check_with_forms(
        &format!(
            r#"+ {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"accept","content":{{"decision":"no, with a reason"}}}}}}
            ? 1
            + {{"jsonrpc":"2.0","id":1,"result":{{"action":"accept","content":{{"note":" not that file "}}}}}}
            ? 1"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"progressToken":1},"mode":"form","message":"Why not?","requestedSchema":{"type":"object","properties":{"note":{"type":"string","title":"Reason","description":"A message for the model"}},"required":["note"]}}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rejected { note: Some(\"not that file\") }"}],"isError":true}}
            opened for tester 1.0
            touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_invalid_answer_is_a_refusal() {
    check_with_forms(
        &format!(
            r#"+ {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"accept"}}}}
            ? 1
            + {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"no such method"}}}}
            ? 1
            + {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":2,"result":{{"something":"else"}}}}
            ? 1"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"progressToken":1},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"_meta":{"progressToken":2},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"nobody answered the question about edit a1"}],"isError":true}}
            opened for tester 1.0
            touch Error; touch Error; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_cancelled_call_withdraws_its_question_and_ignores_a_late_answer() {
    check_with_forms(
        &format!(
            r#"+ {CALL}
            ? 1
            + {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
            ? 1
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"accept","content":{{"decision":"everywhere"}}}}}}
            + {{"jsonrpc":"2.0","id":0,"result":{{"action":"accept","content":{{"decision":"everywhere"}}}}}}
            + {{"jsonrpc":"2.0","id":99,"result":{{"action":"accept","content":{{"decision":"everywhere"}}}}}}
            + {CALL}
            ? 1
            + {{"jsonrpc":"2.0","id":1,"result":{{"action":"decline"}}}}
            ? 1"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"The question is no longer open."}}
            {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"progressToken":1},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the client declined"}],"isError":true}}
            opened for tester 1.0
            touch Error; touch Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_that_vanishes_ends_its_question() {
    check_with_forms(
        &format!("+ {CALL}\n? 1"),
        expect![[r#"
            {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":0},"mode":"form","message":"Allow this?\nedit a1 (no rule allows it)\n  a lasting approval would add the rule: *\n\n-a\n+\\u{202e}b",FORM}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for tester 1.0
            touch Error; Ok(()) 250 ms after the input ended
        "#]],
    );
}

#[test]
fn saved_outputs_are_resources() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","arguments":{}}}
        {"jsonrpc":"2.0","id":2,"method":"resources/list"}
        {"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}
        {"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"helve://output/2"}}
        {"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"helve://output/../s/1"}}
        {"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2000 lines"},{"type":"resource_link","uri":"helve://output/1","name":"1.txt","title":"Full output","mimeType":"text/plain","size":15000}],"isError":false,"_meta":{"helve/metadata":{"truncated":true,"outputBytes":15000,"outputPath":"/data/outputs/s/1.txt"}}}}
            {"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"helve://output/1","name":"1.txt","title":"Full output","mimeType":"text/plain","size":15000}]}}
            {"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[{"uriTemplate":"helve://output/{id}","name":"output","title":"Saved output","description":"Full output of a call that was too long to show; kept for 7 days","mimeType":"text/plain"}]}}
            {"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"No such saved output."}}
            {"jsonrpc":"2.0","id":5,"error":{"code":-32002,"message":"No such saved output."}}
            {"jsonrpc":"2.0","id":6,"error":{"code":-32002,"message":"No such saved output."}}
            opened for tester 1.0
            flood Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}
