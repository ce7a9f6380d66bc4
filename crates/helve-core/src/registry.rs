//! The tools of a workspace, and which of them a caller is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use helve_policy::Part;
use helve_text::{near, wildcard};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::session::Session;
use crate::spec::{Caller, ToolSpec, ToolSwitch, Traits};
use crate::tool::AnyTool;

/// Where a tool comes from. A higher layer shadows a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Tools of MCP servers. The lowest layer, so that they never shadow another tool.
    Server,
    Builtin,
    Config,
    Plugin,
    Runtime,
}

/// All tools of a workspace.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<Vec<RegistryEntry>>,
    version: watch::Sender<u64>,
    /// How many sources are about to register tools.
    expected: watch::Sender<usize>,
}

#[derive(Clone)]
struct RegistryEntry {
    id: u64,
    layer: Layer,
    /// The dialect that the tool belongs to; `None` for all.
    dialect: Option<&'static str>,
    tool: Arc<dyn AnyTool>,
}

/// A tool's registration. Dropping it removes the tool and reveals what it shadowed.
#[must_use = "dropping a registration takes the tool out again"]
pub struct Registration {
    registry: Arc<Registry>,
    id: u64,
}

impl Registration {
    /// Keeps the tool registered for as long as the registry lives.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.entries.lock().retain(|entry| entry.id != self.id);
        self.registry.version.send_modify(|version| *version += 1);
    }
}

/// Announces that tools are about to be registered. Dropping it says that they have been, or will not be.
#[must_use = "dropping it says that nothing more is coming"]
pub struct PendingTools(Arc<Registry>);

impl Drop for PendingTools {
    fn drop(&mut self) {
        self.0.expected.send_modify(|count| *count -= 1);
    }
}

impl Registry {
    /// Registers a tool for callers of every dialect.
    pub fn register(self: &Arc<Self>, layer: Layer, tool: Arc<dyn AnyTool>) -> Registration {
        self.add(layer, None, tool)
    }

    /// Registers a built-in tool of one dialect.
    pub fn register_dialect(
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

    /// Announces tools, so that others can wait for them.
    pub fn announce_tools(self: &Arc<Self>) -> PendingTools {
        self.expected.send_modify(|count| *count += 1);
        PendingTools(self.clone())
    }

    /// Waits until no announced tools are missing, for at most `patience`.
    pub async fn settled(&self, patience: Duration) {
        let mut expected = self.expected.subscribe();
        if *expected.borrow_and_update() == 0 {
            return;
        }
        // Later registrations are announced by `changed`.
        tokio::time::timeout(patience, expected.wait_for(|count| *count == 0)).await.ok();
    }

    /// Returns the names of all tools above the server layer, for any caller.
    pub fn taken(&self) -> BTreeSet<String> {
        let entries = self.entries.lock().clone();
        let above = entries.iter().filter(|entry| entry.layer > Layer::Server);
        above.map(|entry| entry.tool.spec(&Caller::default()).name).collect()
    }

    /// Changes with every registration and removal.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// The tools that a session is offered now.
    pub fn offer_to(&self, session: &Session) -> ToolSet {
        let allowed = |spec: &ToolSpec| !session.gate.forbids(&tool_part(spec));
        self.offer(&session.caller, &session.switches, allowed)
    }

    /// The tools for one caller: those of its dialect and audience that are switched on and pass `keep`.
    ///
    /// Tools for other callers are left out first, so that they shadow nothing.
    pub fn offer(
        &self,
        who: &Caller,
        switches: &[ToolSwitch],
        keep: impl Fn(&ToolSpec) -> bool,
    ) -> ToolSet {
        let mut entries = self.entries.lock().clone();
        entries.retain(|entry| entry.dialect.is_none_or(|dialect| dialect == who.dialect));
        entries.sort_by_key(|entry| (entry.layer, entry.id));
        let mut tools = BTreeMap::new();
        for entry in entries {
            let spec = entry.tool.spec(who);
            if spec.audience.hidden || spec.audience.admits(who) {
                tools.insert(spec.name.clone(), OfferedTool { spec, tool: entry.tool });
            }
        }
        tools.retain(|name, OfferedTool { spec, .. }| {
            spec.audience.hidden || (is_on(switches, name) && keep(spec))
        });
        ToolSet(Arc::new(tools))
    }
}

/// The part by which a tool is judged whatever its arguments.
fn tool_part(spec: &ToolSpec) -> Part {
    let mut part = Part::new(spec.group.clone(), "*");
    part.tool = (spec.group != spec.name).then(|| spec.name.clone().into());
    part
}

fn is_on(switches: &[ToolSwitch], name: &str) -> bool {
    let last = switches.iter().rev().find(|switch| wildcard::matches(&switch.pattern, name));
    last.is_none_or(|switch| switch.on)
}

struct OfferedTool {
    spec: ToolSpec,
    tool: Arc<dyn AnyTool>,
}

/// An immutable snapshot. Specs are made once, and tools stay alive while a call runs.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<BTreeMap<String, OfferedTool>>);

impl ToolSet {
    /// The tools to list, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.0.values().map(|offered| &offered.spec).filter(|spec| !spec.audience.hidden)
    }

    pub fn names(&self) -> Vec<&str> {
        self.specs().map(|spec| spec.name.as_str()).collect()
    }

    /// Finds the tool of this name, or the only one that differs in case.
    pub fn find(&self, name: &str) -> Option<(&ToolSpec, &Arc<dyn AnyTool>)> {
        let offered = self.0.get(name).or_else(|| {
            let mut alike = self.0.values().filter(|one| one.spec.name.eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        })?;
        Some((&offered.spec, &offered.tool))
    }

    pub fn nearest(&self, name: &str) -> Vec<&str> {
        near::nearest(name, self.names(), 3)
    }

    pub(crate) fn traits(&self, name: &str) -> Option<Traits> {
        self.find(name).map(|(spec, _)| spec.traits)
    }
}

#[cfg(test)]
mod tests;
