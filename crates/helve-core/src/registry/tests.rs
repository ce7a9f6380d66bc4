//! Layers, shadowing, audiences and switches.

use expect_test::{Expect, expect};
use helve_policy::Source;
use serde_json::json;

use super::*;
use crate::output::{ToolError, ToolOutput};
use crate::spec::{Audience, InputSpec};
use crate::validate::ArgumentProblem;
use crate::{BoxFuture, Input, ToolContext};

struct Fake {
    name: &'static str,
    about: &'static str,
    audience: Audience,
}

impl AnyTool for Fake {
    fn spec(&self, _who: &Caller) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            group: self.name.into(),
            about: self.about.into(),
            input: InputSpec::Json(json!({})),
            traits: Traits::READ_ONLY,
            audience: self.audience,
        }
    }

    fn invalid(&self, _problems: &[ArgumentProblem]) -> Option<String> {
        None
    }

    fn call<'a>(
        &'a self,
        _input: Input,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("", self.about)) })
    }
}

fn fake(name: &'static str, about: &'static str) -> Arc<dyn AnyTool> {
    Arc::new(Fake { name, about, audience: Audience::EVERYONE })
}

fn check(offered: &ToolSet, expected: Expect) {
    let each = offered.specs().map(|spec| format!("{}: {}", spec.name, spec.about));
    expected.assert_eq(&each.collect::<Vec<_>>().join(", "));
}

fn offer(registry: &Registry) -> ToolSet {
    registry.offer(&Caller::default(), &[], |_| true)
}

#[test]
fn a_higher_layer_shadows_and_its_removal_reveals() {
    let registry = Arc::new(Registry::default());
    registry.register(Layer::Builtin, fake("read", "ours")).keep();
    let plugin = registry.register(Layer::Plugin, fake("read", "theirs"));
    // Registered later, but lower: a folder's tool does not shadow a plugin's.
    registry.register(Layer::Config, fake("read", "folder's")).keep();
    check(&offer(&registry), expect!["read: theirs"]);
    drop(plugin);
    check(&offer(&registry), expect!["read: folder's"]);
}

#[test]
fn tools_for_other_callers_shadow_nothing() {
    let registry = Arc::new(Registry::default());
    registry.register_dialect("one", fake("read", "of one")).keep();
    registry.register_dialect("two", fake("read", "of two")).keep();
    registry.register_dialect("two", fake("view", "of two")).keep();
    registry.register(Layer::Builtin, fake("undo", "for all")).keep();
    let audience = Audience { clients: &["app"], ..Audience::EVERYONE };
    let app = Fake { name: "read", about: "for app", audience };
    registry.register(Layer::Runtime, Arc::new(app)).keep();
    let offer = |dialect: &str, client: &str| {
        let caller = Caller { dialect: dialect.into(), client: client.into(), ..Caller::default() };
        registry.offer(&caller, &[], |_| true)
    };
    check(&offer("one", "cli"), expect!["read: of one, undo: for all"]);
    check(&offer("two", "cli"), expect!["read: of two, undo: for all, view: of two"]);
    check(&offer("two", "app"), expect!["read: for app, undo: for all, view: of two"]);
    check(&offer("three", "cli"), expect!["undo: for all"]);
}

#[test]
fn a_snapshot_outlives_a_removal() {
    let registry = Arc::new(Registry::default());
    let registration = registry.register(Layer::Runtime, fake("late", "here"));
    let (before, mut changed) = (offer(&registry), registry.changed());
    changed.mark_unchanged();
    drop(registration);
    assert!(changed.has_changed().unwrap());
    check(&before, expect!["late: here"]);
    check(&offer(&registry), expect![""]);
}

#[test]
fn switches_have_wildcards_and_the_last_one_decides() {
    let registry = Arc::new(Registry::default());
    for name in ["read", "todoread", "todowrite"] {
        registry.register(Layer::Builtin, fake(name, "")).keep();
    }
    let switch =
        |pattern: &str, on| ToolSwitch { pattern: pattern.into(), on, source: Source::Program };
    let switches = [switch("todo*", false), switch("todoread", true)];
    let offered = registry.offer(&Caller::default(), &switches, |_| true);
    check(&offered, expect!["read: , todoread: "]);
}

#[test]
fn an_audience_selects_by_model_provider_client_and_flag() {
    let caller = Caller {
        model: "gpt-5".into(),
        provider: "openai".into(),
        client: "cli".into(),
        flags: ["lsp".to_string()].into(),
        ..Caller::default()
    };
    let everyone = Audience::EVERYONE;
    assert!(everyone.admits(&caller));
    assert!(Audience { models: &["gpt-*"], ..everyone }.admits(&caller));
    assert!(!Audience { models: &["claude*"], ..everyone }.admits(&caller));
    assert!(!Audience { not_models: &["gpt-*"], ..everyone }.admits(&caller));
    assert!(!Audience { providers: &["anthropic"], ..everyone }.admits(&caller));
    assert!(!Audience { clients: &["app"], ..everyone }.admits(&caller));
    assert!(Audience { flag: Some("lsp"), ..everyone }.admits(&caller));
    assert!(!Audience { flag: Some("plan"), ..everyone }.admits(&caller));
}

#[test]
fn hidden_tools_are_found_and_not_listed() {
    let registry = Arc::new(Registry::default());
    let hidden = Fake { name: "invalid", about: "", audience: Audience::HIDDEN };
    registry.register(Layer::Builtin, Arc::new(hidden)).keep();
    let offered = registry.offer(&Caller::default(), &[], |_| false);
    assert!(offered.find("invalid").is_some());
    assert_eq!(offered.names(), Vec::<&str>::new());
}

#[test]
fn letter_case_is_repaired_where_it_is_unambiguous() {
    let registry = Arc::new(Registry::default());
    for name in ["read", "Grep", "grep"] {
        registry.register(Layer::Builtin, fake(name, name)).keep();
    }
    let offered = offer(&registry);
    let found = |name: &str| offered.find(name).map(|(spec, _)| spec.name.clone());
    assert_eq!(found("READ").as_deref(), Some("read"));
    assert_eq!(found("grep").as_deref(), Some("grep"));
    assert_eq!(found("GREP"), None);
}
