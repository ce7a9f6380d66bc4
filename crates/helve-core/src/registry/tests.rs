//! Tests of layers, shadowing, audiences and switches.

use expect_test::{Expect, expect};
use helve_policy::Source;
use serde_json::json;

use super::*;
use crate::output::{ToolError, ToolOutput};
use crate::spec::{Audience, InputSpec};
use crate::validate::ArgumentProblem;
use crate::{BoxFuture, Input, ToolContext};

/// A tool that answers with its description.
struct FakeTool {
    name: &'static str,
    about: &'static str,
    audience: Audience,
}

impl AnyTool for FakeTool {
    fn spec(&self, _caller: &Caller) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            group: self.name.into(),
            about: self.about.into(),
            input: InputSpec::Json(json!({})),
            properties: ToolProperties::READ_ONLY,
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
    Arc::new(FakeTool { name, about, audience: Audience::EVERYONE })
}

/// Compares the names and descriptions of the offered tools.
fn check(offered: &ToolSet, expected: Expect) {
    let lines = offered.specs().map(|spec| format!("{}: {}", spec.name, spec.about));
    expected.assert_eq(&lines.collect::<Vec<_>>().join(", "));
}

fn offer(registry: &Registry) -> ToolSet {
    registry.offer(&Caller::default(), &[], |_| true)
}

#[test]
fn a_higher_layer_shadows_a_lower_one_until_removed() {
    let registry = Arc::new(Registry::default());
    registry.register(Layer::Builtin, fake("read", "built-in")).permanent();
    let plugin = registry.register(Layer::Plugin, fake("read", "plugin"));
    // Registered later, but in a lower layer.
    registry.register(Layer::Config, fake("read", "config")).permanent();
    check(&offer(&registry), expect!["read: plugin"]);
    drop(plugin);
    check(&offer(&registry), expect!["read: config"]);
}

#[test]
fn tools_for_other_callers_shadow_nothing() {
    let registry = Arc::new(Registry::default());
    registry.register_for_dialect("one", fake("read", "for one")).permanent();
    registry.register_for_dialect("two", fake("read", "for two")).permanent();
    registry.register_for_dialect("two", fake("view", "for two")).permanent();
    registry.register(Layer::Builtin, fake("undo", "for all")).permanent();
    let audience = Audience { clients: &["app"], ..Audience::EVERYONE };
    let app_tool = FakeTool { name: "read", about: "for app", audience };
    registry.register(Layer::Runtime, Arc::new(app_tool)).permanent();
    let offer = |dialect: &str, client: &str| {
        let caller = Caller { dialect: dialect.into(), client: client.into(), ..Caller::default() };
        registry.offer(&caller, &[], |_| true)
    };
    check(&offer("one", "cli"), expect!["read: for one, undo: for all"]);
    check(&offer("two", "cli"), expect!["read: for two, undo: for all, view: for two"]);
    check(&offer("two", "app"), expect!["read: for app, undo: for all, view: for two"]);
    check(&offer("three", "cli"), expect!["undo: for all"]);
}

#[test]
fn a_tool_set_keeps_a_removed_tool() {
    let registry = Arc::new(Registry::default());
    let registration = registry.register(Layer::Runtime, fake("late", "here"));
    let (before, mut changes) = (offer(&registry), registry.watch_changes());
    changes.mark_unchanged();
    drop(registration);
    assert!(changes.has_changed().unwrap());
    check(&before, expect!["late: here"]);
    check(&offer(&registry), expect![""]);
}

#[test]
fn the_last_matching_switch_decides() {
    let registry = Arc::new(Registry::default());
    for name in ["read", "todoread", "todowrite"] {
        registry.register(Layer::Builtin, fake(name, "")).permanent();
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
fn hidden_tools_can_be_called_but_are_not_listed() {
    let registry = Arc::new(Registry::default());
    let hidden = FakeTool { name: "invalid", about: "", audience: Audience::HIDDEN };
    registry.register(Layer::Builtin, Arc::new(hidden)).permanent();
    let offered = registry.offer(&Caller::default(), &[], |_| false);
    assert!(offered.find("invalid").is_some());
    assert_eq!(offered.names(), Vec::<&str>::new());
}

#[test]
fn letter_case_is_ignored_where_the_name_stays_unambiguous() {
    let registry = Arc::new(Registry::default());
    for name in ["read", "Grep", "grep"] {
        registry.register(Layer::Builtin, fake(name, name)).permanent();
    }
    let offered = offer(&registry);
    let found = |name: &str| offered.find(name).map(|(spec, _)| spec.name.clone());
    assert_eq!(found("READ").as_deref(), Some("read"));
    assert_eq!(found("grep").as_deref(), Some("grep"));
    assert_eq!(found("GREP"), None);
}
