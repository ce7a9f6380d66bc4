//! Tests of the rules that a refused call suggests: with the suggested rule, the same call is allowed.

use std::fs;

use helve::{Action, ErrorKind, Explanation, Toolbox};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Number of refused calls to check.
const CALLS: usize = 500;

/// Configurations under which a person must be asked about calls.
const CONFIGS: [&str; 6] = [
    "{}",
    r#"{"permission": {"bash": {"*": "ask", "git *": "allow", "rm *": "allow"}, "edit": "ask"}}"#,
    r#"{"permission": {"bash": {"*": "allow", "git push*": "ask", "rm *": "ask"}, "write": "ask"}}"#,
    r#"{"permission": {"*": "ask", "read": "allow"}}"#,
    r#"{"permission": {"edit": {"*": "allow", "*.md": "ask"}, "read": {"docs/*": "ask"}}}"#,
    r#"{"permission": {"write": "ask", "edit": {"src/*": "ask"}, "bash": {"sudo *": "deny"}}}"#,
];

const NAMES: [&str; 16] = [
    "a.md",
    "src/b.rs",
    "docs/c d.md",
    "it's.md",
    "\"q\".md",
    "*.md",
    "src/?",
    "~x",
    "$HOME.md",
    "é\u{202e}.md",
    "two\nlines.md",
    ".env",
    ".git/config",
    "/opt/data/x",
    "{env:HOME}.md",
    "-rf",
];

const COMMANDS: [&str; 22] = [
    "git push origin main",
    "git commit -m \"it's done\"",
    "git reset --hard HEAD~1",
    "rm -rf NAME",
    "make test",
    "FOO=1 make",
    "LD_PRELOAD=x make",
    "npm run build && npm test",
    "echo 'a' > NAME",
    "cat NAME",
    "python3 -c 'print(\"x\")'",
    "printf 'a\nb\n' | tee NAME",
    "cp NAME other.txt",
    "cat /etc/hosts",
    "find . -name '*.rs' -exec wc -l {} +",
    "$TOOL --version",
    "ls $(cat NAME)",
    "sed -i s/a/b/ NAME",
    "cargo build --release 2>&1 | tail -5",
    "for f in *.md; do wc -l \"$f\"; done",
    "sudo make install",
    "eval \"$X\"",
];

#[tokio::test(flavor = "multi_thread")]
async fn suggested_rules_let_the_call_pass() {
    let stage = Stage::new();
    stage.put("a.md", "x\n", 0o644);
    stage.put("src/b.rs", "x\n", 0o644);
    stage.put(".env", "x\n", 0o644);
    let config = stage.path("base.json");
    let mut random = fastrand::Rng::with_seed(20);
    let (mut refused, mut advised) = (0, 0);
    while refused < CALLS {
        let base = random.choice(CONFIGS).unwrap();
        fs::write(&config, base).unwrap();
        let (tool, input) = random_call(&mut random);
        let shown = format!("{tool} {input} under {base}");
        let toolbox = start(&stage, None, &[]).await;
        let before = toolbox.why(tool, input.clone()).await;
        let outcome = match before.decision {
            Action::Ask => toolbox.call(tool, input.clone()).await.outcome,
            Action::Allow | Action::Deny => {
                toolbox.close().await;
                continue;
            }
        };
        toolbox.close().await;
        let error = outcome.expect_err(&shown);
        // A call can fail for another reason before it asks.
        if error.kind != ErrorKind::Unanswered {
            continue;
        }
        refused += 1;
        let text = |key: &str| error.metadata.get(key).and_then(Value::as_str).map(String::from);
        let (snippet, flags) = (text("allowConfig"), text("allowFlags"));
        assert_eq!(
            snippet.is_none() && flags.is_none(),
            error.full_message().contains("No rule can allow it")
        );
        if may_be_allowed(&before) {
            assert!(snippet.is_some() && flags.is_some(), "no advice for {shown}: {error:?}");
        }
        advised += usize::from(snippet.is_some());
        if let Some(snippet) = snippet {
            assert_allowed(&stage, tool, &input, Some(&snippet), &[], &shown).await;
        }
        if let Some(flags) = flags {
            assert_allowed(&stage, tool, &input, None, &split(&flags), &shown).await;
        }
    }
    assert!(advised > CALLS / 2, "only {advised} of {CALLS} refusals had advice");
}

/// Whether some rule must be able to allow the call, because it is fully understood, and only the user's rules ask
/// about it.
fn may_be_allowed(explanation: &Explanation) -> bool {
    use helve::Reason::{MayChange, MayOpen, MayRead, MayStart, Unclear};
    explanation.parts.iter().filter(|(_, verdict)| verdict.action == Action::Ask).all(
        |(part, verdict)| {
            let is_understood = !matches!(
                verdict.reason,
                MayChange(_) | MayOpen(_) | MayRead(_) | MayStart(_) | Unclear
            );
            // Protected files always need approval; texts that a configuration expands cannot be written there.
            let is_plain = |subject: &String| {
                !subject.starts_with(['~', '$'])
                    && !subject.contains("{env:")
                    && !subject.contains(".git/config")
            };
            is_understood && verdict.wall == "user" && part.subjects.iter().all(is_plain)
        },
    )
}

fn random_call(random: &mut fastrand::Rng) -> (&'static str, Value) {
    let name = random.choice(NAMES).unwrap();
    match random.u8(0..8) {
        0 => ("write", json!({"filePath": name, "content": "new\n"})),
        1 => ("edit", json!({"filePath": name, "oldString": "", "newString": "new\n"})),
        2 => ("read", json!({"filePath": name})),
        3 => ("edit", json!({"filePath": "src/b.rs", "oldString": "x", "newString": "y"})),
        _ => {
            let quoted = format!("'{}'", name.replace('\'', "'\\''"));
            let command = random.choice(COMMANDS).unwrap().replace("NAME", &quoted);
            let and_more = if random.bool() { "" } else { "\ntouch \"it's here\"" };
            ("bash", json!({"command": format!("{command}{and_more}")}))
        }
    }
}

async fn start(stage: &Stage, snippet: Option<&str>, flags: &[String]) -> Toolbox {
    let mut builder = Toolbox::builder().dir(stage.root.path()).data(stage.data.path());
    builder = builder.config(stage.path("base.json"));
    if let Some(snippet) = snippet {
        fs::write(stage.path("snippet.json"), snippet).unwrap();
        builder = builder.config(stage.path("snippet.json"));
    }
    let values = flags.iter().filter(|word| *word != "--allow");
    builder = values.fold(builder, |builder, value| builder.allow(value.as_str()));
    builder.inspect().build().await.unwrap()
}

async fn assert_allowed(
    stage: &Stage,
    tool: &str,
    input: &Value,
    snippet: Option<&str>,
    flags: &[String],
    shown: &str,
) {
    let toolbox = start(stage, snippet, flags).await;
    let after = toolbox.why(tool, input.clone()).await;
    toolbox.close().await;
    let asked: Vec<_> =
        after.parts.iter().filter(|(_, verdict)| verdict.action != Action::Allow).collect();
    assert_eq!(after.decision, Action::Allow, "{shown} with {snippet:?} {flags:?}: {asked:?}");
}

/// Splits a line into words as bash does. Knows `'…'`, `\'` between quotes, and `$'…'`.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let word = words.last_mut().unwrap();
        match c {
            ' ' => words.push(String::new()),
            '\\' => word.extend(characters.next()),
            '\'' => word.extend(characters.by_ref().take_while(|c| *c != '\'')),
            '$' => {
                assert_eq!(characters.next(), Some('\''), "{line}");
                unescape(&mut characters, word);
            }
            c => word.push(c),
        }
    }
    words
}

/// Reads the rest of a `$'…'` word.
fn unescape(characters: &mut std::str::Chars<'_>, word: &mut String) {
    while let Some(c) = characters.next().filter(|c| *c != '\'') {
        if c != '\\' {
            word.push(c);
            continue;
        }
        let escaped = characters.next().unwrap();
        let digits = match escaped {
            'x' => 2,
            'U' => 8,
            _ => 0,
        };
        let code: String = characters.by_ref().take(digits).collect();
        word.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'x' | 'U' => char::from_u32(u32::from_str_radix(&code, 16).unwrap()).unwrap(),
            other => other,
        });
    }
}
