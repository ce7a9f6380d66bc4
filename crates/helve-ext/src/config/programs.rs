//! How programs run: how long, how confined, with which environment.
//!
//! A project never loosens the sandbox, trusted or not. While it is untrusted it also adds nothing to the environment; it
//! may take away. A sandbox that is not understood is the strictest.

use helve_core::confine::Sandbox;
use helve_core::environment::{Inherit, Policy};
use helve_core::process::Network;

use super::explain::Listed;
use super::page::{Page, Reading, Standing};
use super::tree::{Entry, Node, What};
use super::{Given, Layer, keys, words};

/// The `bash` section, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bash {
    /// For a command that asks for none.
    pub timeout: Option<Given<u64>>,
    /// The longest that a command may ask for.
    pub max_timeout: Option<Given<u64>>,
}

/// The `sandbox` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSection {
    pub mode: Option<Given<Sandbox>>,
    pub network: Option<Given<Network>>,
}

impl SandboxSection {
    pub fn mode(&self) -> Sandbox {
        self.mode.as_ref().map_or(Sandbox::default(), |it| it.value)
    }

    /// Off unless it was switched on; means nothing without a sandbox.
    pub fn network(&self) -> Network {
        self.network.as_ref().map_or(Network::Off, |it| it.value)
    }
}

/// The `environment` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvironmentSection {
    pub inherit: Option<Given<Inherit>>,
    pub include: Vec<Given<String>>,
    pub exclude: Vec<Given<String>>,
    pub set: Vec<(String, Given<String>)>,
}

impl EnvironmentSection {
    fn inherit(&self) -> Inherit {
        self.inherit.as_ref().map_or(Inherit::default(), |it| it.value)
    }

    /// Something that could have kept variables back was not understood.
    fn shrink(&mut self, page: &Page<'_>, field: &Entry) {
        let least = self.inherit().max(Inherit::Core);
        self.inherit = Some(Given::new(least, page.source(field.value.at)));
    }

    pub fn policy(&self) -> Policy {
        let values = |all: &[Given<String>]| all.iter().map(|it| it.value.clone()).collect();
        Policy {
            inherit: self.inherit(),
            include: values(&self.include),
            exclude: values(&self.exclude),
            set: self.set.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect(),
        }
    }
}

/// A day.
const LONGEST_TIMEOUT: u64 = 24 * 60 * 60 * 1000;
/// Names and patterns of the environment, of all files together.
const MOST_VARIABLES: usize = 1_000;

/// A program with its arguments: a list, or a text that names the program alone.
pub(super) fn shell(page: &mut Page<'_>, node: &Node, shell: &mut Vec<Given<String>>) {
    let words = match node.what {
        What::List(_) => page.texts("shell", node, Reading::Usual),
        _ => page.text("shell", node, Reading::Usual).map(|program| vec![program]),
    };
    match words {
        Some(words) if words.iter().any(|it| it.value.is_empty()) || words.is_empty() => {
            page.error(node.at, words::empty_shell);
        }
        Some(words) => *shell = words,
        None => {}
    }
}

pub(super) fn bash(page: &mut Page<'_>, node: &Node, bash: &mut Bash) {
    let Some(fields) = page.map("bash", node) else { return };
    for field in fields {
        let slot = match field.key.as_str() {
            "timeout" => &mut bash.timeout,
            "max_timeout" => &mut bash.max_timeout,
            other => {
                let meant = keys::nearest(other, keys::BASH);
                page.warn(field.at, || words::unknown_key(other, meant));
                continue;
            }
        };
        let name = words::key_path(&["bash", &field.key]);
        if let Some(count) = page.count(&name, &field.value, LONGEST_TIMEOUT) {
            *slot = Some(count);
        }
    }
}

pub(super) fn sandbox(page: &mut Page<'_>, node: &Node, section: &mut SandboxSection) {
    if let What::Text(_) = node.what {
        return mode(page, ("sandbox", node), section);
    }
    let What::Map(_) = node.what else {
        let strictest = Given::new(Sandbox::ReadOnly, page.source(node.at));
        page.error(node.at, || words::unknown_sandbox(&node.what));
        section.mode = Some(strictest);
        return;
    };
    for field in page.map("sandbox", node).unwrap_or_default() {
        match field.key.as_str() {
            "mode" => mode(page, ("sandbox.mode", &field.value), section),
            "network" => network(page, &field.value, section),
            other => {
                let meant = keys::nearest(other, keys::SANDBOX);
                page.warn(field.at, || words::unknown_key(other, meant));
            }
        }
    }
}

fn mode(page: &mut Page<'_>, (name, node): (&str, &Node), section: &mut SandboxSection) {
    let source = page.source(node.at);
    let text = match node.what {
        // What an unset variable leaves must not be taken for a mode.
        What::Text(_) => page.text(name, node, Reading::Strict),
        _ => {
            page.error(node.at, || words::unknown_sandbox(&node.what));
            None
        }
    };
    let wanted = text.as_ref().and_then(|text| {
        let mode = Sandbox::ALL.into_iter().find(|mode| mode.word() == text.value);
        if mode.is_none() {
            page.error(node.at, || words::unknown_sandbox(&What::Text(text.shown().to_owned())));
        }
        mode
    });
    let wanted = Given::new(wanted.unwrap_or(Sandbox::ReadOnly), source);
    let loosens = section.mode() > wanted.value;
    match page.layer {
        Layer::Project if loosens => page.warn(node.at, words::project_loosens_sandbox),
        Layer::User | Layer::Project => section.mode = Some(wanted),
    }
}

fn network(page: &mut Page<'_>, node: &Node, section: &mut SandboxSection) {
    let source = page.source(node.at);
    let wanted = match page.flag("sandbox.network", node).map(|flag| flag.value) {
        Some(true) => Network::On,
        Some(false) | None => Network::Off,
    };
    let loosens = section.network() == Network::Off && wanted == Network::On;
    match page.layer {
        Layer::Project if loosens => page.warn(node.at, words::project_loosens_sandbox),
        Layer::User | Layer::Project => section.network = Some(Given::new(wanted, source)),
    }
}

pub(super) fn environment(
    page: &mut Page<'_>,
    node: &Node,
    section: &mut EnvironmentSection,
    waiting: &mut Vec<Listed>,
) {
    let Some(fields) = page.map("environment", node) else { return };
    for field in fields {
        let name = words::key_path(&["environment", &field.key]);
        match (field.key.as_str(), page.standing) {
            ("inherit", _) => inherit(page, field, section, waiting),
            ("exclude", _) => {
                match page.texts(&name, &field.value, Reading::Strict) {
                    Some(wanted) => section.exclude.extend(wanted),
                    // It may have named secrets, so little is passed on.
                    None => section.shrink(page, field),
                }
            }
            ("include" | "set", Standing::Narrows) => {
                waiting.push(Listed::waiting(page, &["environment"], field));
            }
            ("include", Standing::Full) => {
                let wanted = page.texts(&name, &field.value, Reading::Strict);
                section.include.extend(wanted.unwrap_or_default());
            }
            ("set", Standing::Full) => {
                let wanted = page.named_texts(&name, &field.value, Reading::Usual);
                set(page, field, wanted.unwrap_or_default(), section);
            }
            (other, _) => {
                let meant = keys::nearest(other, keys::ENVIRONMENT);
                page.warn(field.at, || words::unknown_key(other, meant));
            }
        }
    }
    if section.include.len() + section.exclude.len() + section.set.len() > MOST_VARIABLES {
        page.error(node.at, || words::too_many_variables(MOST_VARIABLES));
        section.include.truncate(MOST_VARIABLES);
        section.set.truncate(MOST_VARIABLES);
    }
}

fn inherit(
    page: &mut Page<'_>,
    field: &Entry,
    section: &mut EnvironmentSection,
    waiting: &mut Vec<Listed>,
) {
    let node = &field.value;
    let Some(text) = page.text("environment.inherit", node, Reading::Strict) else {
        return section.shrink(page, field);
    };
    let Some(wanted) = Inherit::ALL.into_iter().find(|it| it.word() == text.value) else {
        page.error(node.at, || words::unknown_inherit(text.shown()));
        return section.shrink(page, field);
    };
    match page.standing {
        Standing::Narrows if wanted < section.inherit() => {
            waiting.push(Listed::waiting(page, &["environment"], field));
        }
        Standing::Narrows | Standing::Full => {
            section.inherit = Some(Given::new(wanted, text.source));
        }
    }
}

/// A later value of the same name replaces.
fn set(
    page: &mut Page<'_>,
    field: &Entry,
    wanted: Vec<(String, Given<String>)>,
    section: &mut EnvironmentSection,
) {
    for (name, value) in wanted {
        if name.is_empty() || name.contains(['=', '\0']) || value.value.contains('\0') {
            page.error(field.value.at, || words::not_a_variable(&name));
            continue;
        }
        section.set.retain(|(before, _)| *before != name);
        section.set.push((name, value));
    }
}
