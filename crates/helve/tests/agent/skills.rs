//! Tests of skills that appear, change and disappear while a model works.

use std::path::{Path, PathBuf};

use helve::agent_loop::item::{MessagePart, Protocol};
use helve::{Toolbox, TurnOptions};
use helve_testkit::ScriptedProvider;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::PROTOCOLS;
use super::compaction::fixed_part;
use super::script::{Part, call, model, reply, text};

/// A project and the user's configuration, both without skills.
struct Folders {
    project: TempDir,
    user: TempDir,
    data: TempDir,
}

impl Folders {
    fn new() -> Self {
        let new = || tempfile::tempdir().unwrap();
        let folders = Self { project: new(), user: new(), data: new() };
        std::fs::write(folders.project.path().join("a.txt"), "alpha\n").unwrap();
        std::fs::write(folders.user.path().join("helve.json"), "{}").unwrap();
        folders
    }

    async fn toolbox(&self) -> Toolbox {
        let builder = Toolbox::builder().dir(self.project.path()).data(self.data.path());
        builder.config(self.user.path()).yes().build().await.unwrap()
    }
}

fn write_skill(folder: &Path, name: &str, description: &str) {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nText of {description}");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// Runs a turn. Before each reply, `change` does what another program might do meanwhile. Returns the requests.
async fn run(
    protocol: Protocol,
    toolbox: Toolbox,
    replies: Vec<Vec<Part>>,
    change: impl Fn(usize) + Send + Sync + 'static,
) -> Vec<Value> {
    let answer = move |number: usize, _: &Value| {
        change(number);
        reply(protocol, &replies[number.min(replies.len() - 1)])
    };
    let provider = ScriptedProvider::start_answering(answer).unwrap();
    let mut agent = toolbox.agent(model(protocol, &provider.url)).await.unwrap();
    let (prompt, options) = (vec![MessagePart::Text("go".into())], TurnOptions::default());
    agent.run(prompt, &options, &|_| {}, CancellationToken::new()).await.unwrap();
    drop(agent);
    toolbox.close().await;
    let requests = provider.requests();
    for request in &requests {
        assert_eq!(fixed_part(request), fixed_part(&requests[0]), "the prefix has changed");
    }
    requests
}

fn read(id: &str) -> Vec<Part> {
    vec![call(id, "read", json!({"filePath": "a.txt", "limit": id.len()}))]
}

#[tokio::test]
async fn changed_skills_are_announced_once() {
    for protocol in PROTOCOLS {
        let folders = Folders::new();
        let skills = folders.user.path().join("skills");
        write_skill(&skills, "tables", "first");
        write_skill(&skills, "old", "gone soon");
        let toolbox = folders.toolbox().await;
        let load = |id, name| vec![call(id, "skill", json!({"name": name}))];
        let replies = vec![read("a"), load("b", "tables"), load("c", "new"), vec![text("done")]];
        let requests = run(protocol, toolbox, replies, move |number| match number {
            0 => {
                write_skill(&skills, "tables", "second");
                write_skill(&skills, "new", "just added");
            }
            1 => std::fs::remove_dir_all(skills.join("old")).unwrap(),
            _ => {}
        })
        .await;
        let bodies: Vec<String> = requests.iter().map(Value::to_string).collect();
        assert!(!bodies[0].contains("skills have changed"), "{}", bodies[0]);
        let note = "The available skills have changed:\\n- added: new: just added\\n- changed: tables: second";
        assert!(bodies[1].contains(note), "{}", bodies[1]);
        assert!(bodies[2].contains("Text of second"), "{}", bodies[2]);
        assert!(bodies[2].contains("- removed: old"), "{}", bodies[2]);
        assert!(bodies[3].contains("Text of just added"), "{}", bodies[3]);
        assert_eq!(bodies[3].matches("The available skills have changed").count(), 2);
    }
}

#[tokio::test]
async fn without_the_tool_a_new_skill_can_be_read() {
    let folders = Folders::new();
    let skills = folders.user.path().join("skills");
    let file: PathBuf = skills.join("new/SKILL.md");
    let toolbox = folders.toolbox().await;
    let replies = vec![read("a"), vec![text("done")]];
    let requests = run(Protocol::Chat, toolbox, replies, move |number| {
        if number == 0 {
            write_skill(&skills, "new", "just added");
        }
    })
    .await;
    let expected = format!("added: new: just added (to use it, read {})", file.display());
    assert!(requests[1].to_string().contains(&expected), "{}", requests[1]);
}

#[tokio::test]
async fn changed_skills_of_a_project_need_trust_again() {
    let folders = Folders::new();
    let skills = folders.project.path().join(".helve/skills");
    write_skill(&skills, "ours", "first");
    write_skill(&skills, "gone", "other");
    folders.toolbox().await.give_trust().await.unwrap();
    let toolbox = folders.toolbox().await;
    let load = vec![call("b", "skill", json!({"name": "ours"}))];
    let replies = vec![read("a"), load, vec![text("done")]];
    let requests = run(Protocol::Chat, toolbox, replies, move |number| {
        if number == 0 {
            write_skill(&skills, "ours", "OTHER");
            write_skill(&skills, "new", "just added");
            std::fs::remove_dir_all(skills.join("gone")).unwrap();
        }
    })
    .await;
    let bodies: Vec<String> = requests.iter().map(Value::to_string).collect();
    let note = "- removed: gone\\n\
                - .helve/skills/new/SKILL.md: added or changed; it cannot be loaded until a person trusts this folder again\\n\
                - .helve/skills/ours/SKILL.md: added or changed";
    assert!(bodies[1].contains(note), "{}", bodies[1]);
    assert!(bodies[2].contains("has changed since a person trusted"), "{}", bodies[2]);
    assert!(!bodies[2].contains("just added") && !bodies[2].contains("OTHER"), "{}", bodies[2]);
}

#[tokio::test]
async fn skills_of_an_untrusted_project_are_not_mentioned() {
    let folders = Folders::new();
    let skills = folders.project.path().join(".helve/skills");
    write_skill(&skills, "ours", "first");
    let toolbox = folders.toolbox().await;
    let requests =
        run(Protocol::Chat, toolbox, vec![read("a"), vec![text("done")]], move |number| {
            if number == 0 {
                write_skill(&skills, "ours", "second");
            }
        })
        .await;
    assert!(!requests[1].to_string().contains("skills have changed"), "{}", requests[1]);
}
