//! Runs the custom tools of `corpus/tools` on node, or on the program that `HELVE_TEST_JAVASCRIPT` names.
//!
//! The first lines of a file say what to expect: `// call: ARGUMENTS` or `// call ID: ARGUMENTS`, then `// => OUTPUT`; an
//! output that begins with `!` is an error. `// problem: START` is the beginning of the reason why a file is not used.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the tools are real files in a real folder")]

use std::fs;
use std::path::{Path, PathBuf};

use helve::config::ConfigLayer;
use helve::{EventDelivery, EventKind, Toolbox};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

struct Project {
    root: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Project {
    /// A project whose `.opencode` folder contains these files.
    fn new(files: &[(PathBuf, String)]) -> Self {
        let project =
            Self { root: tempfile::tempdir().unwrap(), data: tempfile::tempdir().unwrap() };
        let runtime = std::env::var("HELVE_TEST_JAVASCRIPT").unwrap_or_else(|_| "node".into());
        let config = serde_json::json!({"javascript": {"runtime": runtime}});
        project.write("opencode.json", &config.to_string());
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.root.path().join(".opencode").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn open(&self) -> Toolbox {
        Toolbox::builder()
            .dir(self.root.path())
            .data(self.data.path())
            .keeper(env!("CARGO_BIN_EXE_helve"))
            .yes()
            .build()
            .await
            .unwrap()
    }

    async fn open_trusted(&self) -> Toolbox {
        let toolbox = self.open().await;
        toolbox.give_trust().await.unwrap();
        toolbox.close().await;
        self.open().await
    }
}

async fn call(toolbox: &Toolbox, id: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    match toolbox.call(id, arguments).await.outcome {
        Ok(output) => output.joined_text(),
        Err(error) => format!("! {}", error.message),
    }
}

fn corpus(folder: &str) -> Vec<(PathBuf, String)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    let mut folders = vec![corpus.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read_to_string(path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

/// Returns the files of a corpus folder with the paths that they have in a project.
fn placed(corpus_folder: &str, to: &str) -> Vec<(PathBuf, String)> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(corpus_folder);
    let files = corpus(corpus_folder).into_iter();
    files
        .map(|(path, text)| (Path::new(to).join(path.strip_prefix(&from).unwrap()), text))
        .collect()
}

fn packages() -> Vec<(PathBuf, String)> {
    let files = [
        (
            "node_modules/some-package/package.json",
            r#"{"name": "some-package", "main": "main.js"}"#,
        ),
        (
            "node_modules/some-package/main.js",
            "module.exports = new Number(7); module.exports.name = 'installed'",
        ),
        (
            "node_modules/@scope/esm-only/package.json",
            r#"{"name": "@scope/esm-only", "type": "module", "exports": {".": {"import": "./x.js"}}}"#,
        ),
        ("node_modules/@scope/esm-only/x.js", "export const kind = 'esm'"),
        ("tsconfig.json", r#"{"compilerOptions": {"paths": {"~lib/*": ["./tool/lib/*"]}}}"#),
    ];
    files.map(|(path, text)| (path.into(), text.into())).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_the_corpus_behaves_as_it_says() {
    let mut files = placed("tools", "tool");
    files.extend(placed("shared", "shared"));
    files.extend(packages());
    let project = Project::new(&files);
    let toolbox = project.open_trusted().await;
    toolbox.load_scripts().await;
    let problems: Vec<String> =
        toolbox.scripts().problems().iter().map(ToString::to_string).collect();
    let root = format!("{}/", project.root.path().canonicalize().unwrap().display());
    let (mut failures, mut calls) = (Vec::new(), 0);
    for (path, text) in &files {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut called: Option<(String, String)> = None;
        for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
            if let Some(rest) = line.strip_prefix("call") {
                let (id, arguments) = rest.split_once(": ").unwrap();
                let id = if id.trim().is_empty() { stem.clone() } else { id.trim().to_owned() };
                called = Some((id, arguments.to_owned()));
            } else if let Some(expected) = line.strip_prefix("=>") {
                let expected = expected.trim().replace("\\n", "\n");
                let (id, arguments) = called.clone().unwrap();
                let found = call(&toolbox, &id, &arguments).await.trim().to_owned();
                calls += 1;
                if found != expected {
                    failures.push(format!(
                        "{id} {arguments}\n  expected {expected:?}\n  found    {found:?}"
                    ));
                }
            } else if let Some(start) = line.strip_prefix("problem: ") {
                let is_reported = |problem: &String| problem.replace(&root, "").starts_with(start);
                if !problems.iter().any(is_reported) {
                    failures.push(format!("{stem}: not reported: {start}"));
                }
            }
        }
    }
    toolbox.close().await;
    let problems = problems.join("\n");
    assert!(failures.is_empty(), "{}\nproblems:\n{problems}", failures.join("\n"));
    assert!(calls > 40, "only {calls} calls were made");
}

/// A tool that returns a text.
fn tool(text: &str) -> String {
    format!("export default {{ description: 'd', args: {{}}, execute: async () => {text} }}\n")
}

fn one(path: &str, text: String) -> Project {
    Project::new(&[(path.into(), text)])
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_loaded_before_trust_and_after_a_change() {
    let source = "import { a } from './lib/a'\n".to_owned() + &tool("a");
    let project = one("tool/mine.ts", source);
    project.write("tool/lib/a.ts", "export const a = 'one'");
    let toolbox = project.open().await;
    assert!(call(&toolbox, "mine", "{}").await.starts_with("! "));
    assert_eq!(toolbox.scripts().suspended().len(), 1);
    toolbox.close().await;
    let toolbox = project.open_trusted().await;
    assert_eq!(call(&toolbox, "mine", "{}").await, "one");
    // A file that a tool imports changes while Helve runs.
    project.write("tool/lib/a.ts", "export const a = 'two'");
    let refused = call(&toolbox, "mine", "{}").await;
    assert!(refused.contains("changed since it was trusted"), "{refused}");
    toolbox.close().await;
    let toolbox = project.open().await;
    assert!(!toolbox.scripts().suspended().is_empty());
    toolbox.close().await;
    let toolbox = project.open_trusted().await;
    assert_eq!(call(&toolbox, "mine", "{}").await, "two");
    assert!(toolbox.config().sources.iter().any(|file| file.layer == ConfigLayer::Project));
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_listed_by_an_earlier_process_need_no_program() {
    let project = one("tools/mine.js", tool("'x'"));
    let toolbox = project.open_trusted().await;
    assert!(!toolbox.tools().names().contains(&"mine"));
    toolbox.load_scripts().await;
    assert!(toolbox.tools().names().contains(&"mine"));
    toolbox.close().await;
    // The next process cannot start anything: the program does not exist.
    let config = Path::new("opencode.json");
    let text = fs::read_to_string(project.root.path().join(".opencode").join(config)).unwrap();
    project.write(config, &text.replace("\"runtime\":\"", "\"runtime\":\"/nowhere/"));
    let toolbox = project.open_trusted().await;
    assert!(toolbox.tools().names().contains(&"mine"));
    let refused = call(&toolbox, "mine", "{}").await;
    assert!(refused.contains("which was not found"), "{refused}");
    toolbox.close().await;
}

/// A tool that does harm: the body of `execute`, and a part of the error. Afterwards a harmless tool must work.
const FAULTS: &[(&str, &str)] = &[
    ("process.kill(process.pid, 'SIGKILL')", "the helper process ended: signal 9"),
    ("process.reallyExit(3)", "the helper process ended: exit code 3"),
    (
        "setTimeout(() => { throw new Error('later') }, 0); await new Promise(() => {})",
        "an uncaught error: later",
    ),
    ("throw 'text'", "text"),
    ("throw null", "null"),
    ("throw { message: 'object' }", "object"),
    ("const loop = {}; loop.loop = loop; return { output: loop }", "JSON"),
    ("return { output: 'x', metadata: { big: 1n } }", "BigInt"),
    ("Promise.reject(new Error('unhandled')); throw new Error('own')", "own"),
    (
        "JSON.stringify = () => 'broken'; JSON.parse = () => 'broken'; Object.prototype.extra = 1; throw new Error('prototypes')",
        "prototypes",
    ),
    ("Array.prototype.push = () => 0; throw new Error('push')", "push"),
    ("globalThis.Promise = undefined; throw new Error('no promise')", "no promise"),
    ("require('fs').writeSync(3, 'no json\\n{\"id\":1}\\n'); throw new Error('forged')", "forged"),
    ("require('fs').closeSync(3)", ""),
    (
        "for (let i = 0; i < 3e4; i++) console.log('x'.repeat(1000)); throw new Error('flood')",
        "flood",
    ),
    ("return { output: 'x', metadata: { big: 'x'.repeat(20 << 20) } }", "the answer has"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_tool_fails_alone() {
    let source: String = FAULTS
        .iter()
        .enumerate()
        .map(|(n, (body, _))| {
            format!("export const f{n} = {{ description: 'd', args: {{}}, execute: async () => {{ {body} }} }}\n")
        })
        .collect();
    let project =
        Project::new(&[("tool/bad.js".into(), source), ("tool/good.js".into(), tool("'good'"))]);
    let toolbox = project.open_trusted().await;
    toolbox.load_scripts().await;
    let mut failures = Vec::new();
    for (n, (body, expected)) in FAULTS.iter().enumerate() {
        let found = call(&toolbox, &format!("bad_f{n}"), "{}").await;
        if !found.starts_with('!') || !found.contains(expected) {
            failures.push(format!("{body}\n  expected {expected:?}\n  found    {found:?}"));
        }
        let good = call(&toolbox, "good", "{}").await;
        if good != "good" {
            failures.push(format!("after {body}\n  the other tool: {good:?}"));
        }
    }
    toolbox.close().await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_loop_ends_with_its_call() {
    let endless = "export default { description: 'd', args: {}, execute: async (_, ctx) => { ctx.metadata({ title: 'looping' }); for (;;) {} } }";
    let project = Project::new(&[
        ("tool/endless.js".into(), endless.into()),
        ("tool/good.js".into(), tool("'good'")),
    ]);
    let toolbox = project.open_trusted().await;
    toolbox.load_scripts().await;
    let (mut events, cancel) = (toolbox.events(), CancellationToken::new());
    let stopping = async {
        while let Some(EventDelivery::Event(event)) = events.next().await {
            if matches!(event.kind, EventKind::Progress(_)) {
                return cancel.cancel();
            }
        }
    };
    let calling = toolbox.call_with_cancellation("endless", serde_json::json!({}), cancel.clone());
    let (result, ()) = tokio::join!(calling, stopping);
    assert_eq!(result.outcome.unwrap_err().kind, helve::ErrorKind::Cancelled);
    assert_eq!(call(&toolbox, "good", "{}").await, "good");
    toolbox.close().await;
}

/// A plugin: its source, a call with its arguments, and the answer or a part of it.
const PLUGINS: &[(&str, &str, &str, &str)] = &[
    (
        "export const P = async () => ({ 'tool.execute.before': async (input, output) => { if (input.tool === 'echo') output.args.text = output.args.text + '!' } })",
        "echo",
        r#"{"text": "a"}"#,
        "a!",
    ),
    (
        "export const P = async () => ({ 'tool.execute.before': async (_i, output) => { output.args = { text: 'replaced' } } })",
        "echo",
        r#"{"text": "kept"}"#,
        "kept",
    ),
    (
        "export const P = async () => ({ 'tool.execute.before': async () => { throw new Error('not on my watch') } })",
        "echo",
        r#"{"text": "a"}"#,
        "! not on my watch",
    ),
    (
        "export const P = async () => ({ 'tool.execute.after': async (input, output) => { output.output += ` after ${input.args.text}` } })",
        "echo",
        r#"{"text": "a"}"#,
        "a after a",
    ),
    (
        "export const P = async () => ({ 'tool.execute.after': async () => { throw 'broken' } })",
        "echo",
        r#"{"text": "a"}"#,
        "a",
    ),
    (
        "export const P = async () => ({ 'shell.env': async (_i, output) => { output.env.FROM_PLUGIN = 'set' } })",
        "bash",
        r#"{"command": "echo $FROM_PLUGIN", "description": "d"}"#,
        "set",
    ),
    (
        "import { tool, type Plugin } from '@opencode-ai/plugin'\nexport const P: Plugin = async ({ directory }) => ({ tool: { given: tool({ description: 'd', args: { n: tool.schema.number().default(2) }, execute: async ({ n }) => `${n} ${directory === process.cwd()}` }) } })",
        "given",
        "{}",
        "2 true",
    ),
    (
        "export const helper = 3\nexport function broken() { throw new Error('x') }\nexport class NotAPlugin {}\nexport default { id: 'v1', server: async () => ({ tool: { v1: { description: 'd', args: {}, execute: async () => 'v1' } } }) }",
        "v1",
        "{}",
        "v1",
    ),
    (
        "export const P = async ({ client, $ }) => { await client.app.log({ body: { level: 'info', message: 'm' } }); const why = await client.tui.openHelp().catch((e) => e.message); const said = await $`echo shell`.text(); return { tool: { seen: { description: 'd', args: {}, execute: async () => `${why} ${said}` } } } }",
        "seen",
        "{}",
        "client.tui.openHelp is not available in Helve shell",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn hooks_and_tools_of_plugins_work() {
    let echo = "import { tool } from '@opencode-ai/plugin'\nexport default tool({ description: 'd', args: { text: tool.schema.string() }, execute: async ({ text }) => text })";
    let mut failures = Vec::new();
    for (source, tool, arguments, expected) in PLUGINS {
        let project = Project::new(&[
            ("tool/echo.ts".into(), echo.into()),
            ("plugin/it.ts".into(), (*source).into()),
        ]);
        let toolbox = project.open_trusted().await;
        let found = call(&toolbox, tool, arguments).await;
        toolbox.close().await;
        let is_expected = match expected.strip_prefix("! ") {
            Some(part) => found.starts_with('!') && found.contains(part),
            None => {
                found == *expected
                    || found.trim_end().starts_with(&format!("{expected}\n"))
                    || found.trim() == *expected
            }
        };
        if !is_expected {
            failures.push(format!("{source}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
