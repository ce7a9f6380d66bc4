//! The registry of all tools of a workspace. It decides which of them a caller is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use helve_text::{near, wildcard};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::session::Session;
use crate::spec::{Caller, ToolProperties, ToolSpec, ToolSwitch};
use crate::tool::AnyTool;

/// Where a tool comes from. A higher layer shadows a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Tools of MCP servers. The lowest layer, so that they never shadow another tool.
    Server,
    /// Tools of Helve itself.
    Builtin,
    /// Custom tools of the user or the project.
    Config,
    /// Tools of plugins.
    Plugin,
    /// Tools that an embedding program adds.
    Runtime,
}

/// All tools of a workspace.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<Vec<RegistryEntry>>,
    /// See [`Registry::watch_changes`].
    version: watch::Sender<u64>,
    /// Descriptions by tool name, which replace the tools' own descriptions.
    descriptions: Mutex<BTreeMap<String, String>>,
    /// Number of [`PendingTools`] guards alive.
    pending_sources: watch::Sender<usize>,
}

#[derive(Clone)]
struct RegistryEntry {
    id: u64,
    layer: Layer,
    /// The dialect that the tool belongs to; `None` if it is for every dialect.
    dialect: Option<&'static str>,
    tool: Arc<dyn AnyTool>,
}

/// A tool's registration. Dropping it removes the tool, and any tool that it shadowed is offered again.
#[must_use = "dropping a registration removes the tool"]
pub struct Registration {
    registry: Arc<Registry>,
    id: u64,
}

impl Registration {
    /// Keeps the tool registered for as long as the registry lives.
    pub fn permanent(self) {
        std::mem::forget(self);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.entries.lock().retain(|entry| entry.id != self.id);
        self.registry.version.send_modify(|version| *version += 1);
    }
}

/// A guard that exists while a source is about to register tools. It is dropped when they are registered, or when the
/// source has failed.
#[must_use = "dropping the guard means that the tools are registered"]
pub struct PendingTools(Arc<Registry>);

impl Drop for PendingTools {
    fn drop(&mut self) {
        self.0.pending_sources.send_modify(|count| *count -= 1);
    }
}

impl Registry {
    /// Registers a tool for callers of every dialect.
    pub fn register(self: &Arc<Self>, layer: Layer, tool: Arc<dyn AnyTool>) -> Registration {
        self.add(layer, None, tool)
    }

    /// Registers a built-in tool of one dialect.
    pub fn register_for_dialect(
        self: &Arc<Self>,
        dialect: &'static str,
        tool: Arc<dyn AnyTool>,
    ) -> Registration {
        self.add(Layer::Builtin, Some(dialect), tool)
    }

    fn add(
        self: &Arc<Self>,
        layer: Layer,
        dialect: Option<&'static str>,
        tool: Arc<dyn AnyTool>,
    ) -> Registration {
        let mut entries = self.entries.lock();
        let id = entries.iter().map(|entry| entry.id + 1).max().unwrap_or(0);
        entries.push(RegistryEntry { id, layer, dialect, tool });
        drop(entries);
        self.version.send_modify(|version| *version += 1);
        Registration { registry: self.clone(), id }
    }

    /// Announces that tools will be registered, until the returned guard is dropped. [`Registry::wait_for_announced`]
    /// waits for them.
    pub fn announce_tools(self: &Arc<Self>) -> PendingTools {
        self.pending_sources.send_modify(|count| *count += 1);
        PendingTools(self.clone())
    }

    /// Waits until all announced tools are registered, for at most `timeout`.
    pub async fn wait_for_announced(&self, timeout: Duration) {
        let mut pending = self.pending_sources.subscribe();
        if *pending.borrow_and_update() == 0 {
            return;
        }
        // Tools that come later are noticed through `watch_changes`.
        tokio::time::timeout(timeout, pending.wait_for(|count| *count == 0)).await.ok();
    }

    /// Returns the names that MCP servers' tools must not use: those of all tools in higher layers.
    pub fn reserved_names(&self) -> BTreeSet<String> {
        let entries = self.entries.lock().clone();
        let higher = entries.iter().filter(|entry| entry.layer > Layer::Server);
        higher.map(|entry| entry.tool.spec(&Caller::default()).name).collect()
    }

    /// Replaces the descriptions of some tools.
    pub fn set_descriptions(&self, descriptions: BTreeMap<String, String>) {
        *self.descriptions.lock() = descriptions;
        self.version.send_modify(|version| *version += 1);
    }

    /// Returns a version number to watch. It changes whenever a tool is registered or removed, or descriptions are
    /// replaced.
    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Returns the tools that a session is offered now.
    pub fn offer_to(&self, session: &Session) -> ToolSet {
        let allowed = |spec: &ToolSpec| {
            !session.gate.forbids(&spec.part_for_any_arguments())
                && session.ancestors().all(|outer| is_on(&outer.switches, &spec.name))
        };
        let (mut tools, denied) = self.select_tools(&session.caller, &session.switches, allowed);
        if !session.gate.takes_questions() {
            // Tools that ask questions are hidden. They can still be called, and then say why they do not work.
            let asking = tools.values_mut().filter(|tool| tool.spec.audience.needs_person);
            asking.for_each(|tool| tool.spec.audience.hidden = true);
        }
        ToolSet { tools: Arc::new(tools), denied: Arc::new(denied) }
    }

    /// Returns the tools for one caller: those of its dialect and audience that are switched on and pass `filter`.
    ///
    /// Tools for other callers are left out first, so that they shadow nothing.
    pub fn offer(
        &self,
        caller: &Caller,
        switches: &[ToolSwitch],
        filter: impl Fn(&ToolSpec) -> bool,
    ) -> ToolSet {
        let (tools, denied) = self.select_tools(caller, switches, filter);
        ToolSet { tools: Arc::new(tools), denied: Arc::new(denied) }
    }

    /// Returns the offered tools, and the names of those that are switched off or do not pass `filter`.
    fn select_tools(
        &self,
        caller: &Caller,
        switches: &[ToolSwitch],
        filter: impl Fn(&ToolSpec) -> bool,
    ) -> (BTreeMap<String, OfferedTool>, BTreeSet<String>) {
        let mut entries = self.entries.lock().clone();
        entries.retain(|entry| entry.dialect.is_none_or(|dialect| dialect == caller.dialect));
        entries.sort_by_key(|entry| (entry.layer, entry.id));
        let mut tools = BTreeMap::new();
        let descriptions = self.descriptions.lock().clone();
        for entry in entries {
            let mut spec = entry.tool.spec(caller);
            if let Some(description) = descriptions.get(&spec.name) {
                spec.about.clone_from(description);
            }
            if spec.audience.hidden || spec.audience.admits(caller) {
                tools.insert(spec.name.clone(), OfferedTool { spec, tool: entry.tool });
            }
        }
        let mut denied = BTreeSet::new();
        tools.retain(|name, OfferedTool { spec, .. }| {
            let is_offered = spec.audience.hidden || (is_on(switches, name) && filter(spec));
            if !is_offered {
                denied.insert(name.clone());
            }
            is_offered
        });
        (tools, denied)
    }
}

fn is_on(switches: &[ToolSwitch], name: &str) -> bool {
    let last_match = switches.iter().rev().find(|switch| wildcard::matches(&switch.pattern, name));
    last_match.is_none_or(|switch| switch.on)
}

struct OfferedTool {
    spec: ToolSpec,
    tool: Arc<dyn AnyTool>,
}

/// An immutable snapshot of the offered tools. They stay alive while a call uses them, even if they are removed from
/// the registry.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Arc<BTreeMap<String, OfferedTool>>,
    /// Names of tools that exist but are switched off or always denied.
    denied: Arc<BTreeSet<String>>,
}

impl ToolSet {
    /// Returns the specs of all tools that are not hidden, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|offered| &offered.spec).filter(|spec| !spec.audience.hidden)
    }

    pub fn names(&self) -> Vec<&str> {
        self.specs().map(|spec| spec.name.as_str()).collect()
    }

    /// Finds the tool of this name or, if there is none, the one tool whose name differs only in letter case.
    pub fn find(&self, name: &str) -> Option<(&ToolSpec, &Arc<dyn AnyTool>)> {
        let offered = self.tools.get(name).or_else(|| {
            let mut ignoring_case =
                self.tools.values().filter(|offered| offered.spec.name.eq_ignore_ascii_case(name));
            ignoring_case.next().filter(|_| ignoring_case.next().is_none())
        })?;
        Some((&offered.spec, &offered.tool))
    }

    /// Whether a tool of this name exists but is switched off or always denied.
    pub(crate) fn is_denied(&self, name: &str) -> bool {
        self.denied.iter().any(|denied| denied.eq_ignore_ascii_case(name))
    }

    /// Returns up to three names that resemble this one, most similar first.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        near::nearest(name, self.names(), 3)
    }

    pub(crate) fn properties(&self, name: &str) -> Option<ToolProperties> {
        self.find(name).map(|(spec, _)| spec.properties)
    }
}

#[cfg(test)]
mod tests;
