//! How programs run: time limits, sandbox and environment.
//!
//! A project never loosens the sandbox, even when it is trusted. An untrusted project adds nothing to the environment
//! but may remove variables. An invalid sandbox setting counts as the strictest.

use std::ffi::OsStr;
use std::path::Path;

use helve_core::confine::Sandbox;
use helve_core::environment::{EnvironmentPolicy, Inherit};
use helve_core::process::{Network, SandboxLimits};
use helve_text::shell::ShellLanguage;

use super::config_file::{Authority, ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue};
use super::{ConfigLayer, WithSource, keys, messages};

/// The `bash` section. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BashSection {
    /// Default for commands that request none.
    pub timeout: Option<WithSource<u64>>,
    /// Maximum that a command may request.
    pub max_timeout: Option<WithSource<u64>>,
}

/// The `sandbox` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSection {
    pub mode: Option<WithSource<Sandbox>>,
    pub network: Option<WithSource<Network>>,
    /// Further folders that commands may write to. A path may start with `~/`.
    pub writable: Vec<WithSource<String>>,
    /// Whether commands get private copies of the caches of package managers.
    pub caches: Option<WithSource<bool>>,
    /// Maximum memory in MiB.
    pub memory: Option<WithSource<u64>>,
    /// Maximum number of processes.
    pub processes: Option<WithSource<u64>>,
    /// Maximum size of a file in MiB.
    pub file_size: Option<WithSource<u64>>,
}

impl SandboxSection {
    pub fn mode(&self) -> Sandbox {
        self.mode.as_ref().map_or(Sandbox::default(), |setting| setting.value)
    }

    /// Off unless switched on. Has no effect without a sandbox.
    pub fn network(&self) -> Network {
        self.network.as_ref().map_or(Network::Off, |setting| setting.value)
    }

    pub fn limits(&self) -> SandboxLimits {
        let value = |setting: &Option<WithSource<u64>>| setting.as_ref().map(|it| it.value);
        SandboxLimits {
            memory: value(&self.memory).map(|size| size << 20),
            processes: value(&self.processes),
            file_size: Some(value(&self.file_size).unwrap_or(DEFAULT_FILE_SIZE) << 20),
        }
    }

    /// On unless switched off.
    pub fn caches(&self) -> bool {
        self.caches.as_ref().is_none_or(|setting| setting.value)
    }
}

/// The `environment` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvironmentSection {
    pub inherit: Option<WithSource<Inherit>>,
    pub include: Vec<WithSource<String>>,
    pub exclude: Vec<WithSource<String>>,
    pub set: Vec<(String, WithSource<String>)>,
}

impl EnvironmentSection {
    fn inherit(&self) -> Inherit {
        self.inherit.as_ref().map_or(Inherit::default(), |setting| setting.value)
    }

    /// Makes commands inherit at most the core variables; a greater `Inherit` is stricter. Used when a setting that
    /// might have removed variables is invalid.
    fn restrict(&mut self, file: &ConfigFile<'_>, field: &ConfigEntry) {
        let restricted = self.inherit().max(Inherit::Core);
        self.inherit = Some(WithSource::new(restricted, file.source(field.value.at)));
    }

    pub fn policy(&self) -> EnvironmentPolicy {
        let values =
            |all: &[WithSource<String>]| all.iter().map(|pattern| pattern.value.clone()).collect();
        EnvironmentPolicy {
            inherit: self.inherit(),
            include: values(&self.include),
            exclude: values(&self.exclude),
            set: self.set.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect(),
            secret: Vec::new(),
        }
    }
}

/// Maximum timeout in milliseconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;
/// Maximum number of names and patterns in `environment`, over all files.
const MAX_VARIABLES: usize = 1_000;

/// Reads the shell: a list of program and arguments, or a string that names only the program.
pub(super) fn read_shell(
    file: &mut ConfigFile<'_>,
    node: &ConfigNode,
    shell: &mut Vec<WithSource<String>>,
) {
    let command = match node.data {
        ConfigValue::List(_) => file.texts("shell", node, ExpandMode::Lenient),
        _ => file.text("shell", node, ExpandMode::Lenient).map(|program| vec![program]),
    };
    match command {
        Some(command) if command.iter().any(|word| word.value.is_empty()) || command.is_empty() => {
            file.error(node.at, messages::empty_shell);
        }
        Some(command) => {
            if !is_supported(&command[0].value) {
                file.warn(node.at, || messages::unsupported_shell(command[0].as_written()));
            }
            *shell = command;
        }
        None => {}
    }
}

/// Whether Helve can judge scripts of a shell.
fn is_supported(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.and_then(ShellLanguage::of).is_some()
}

pub(super) fn read_bash(file: &mut ConfigFile<'_>, node: &ConfigNode, bash: &mut BashSection) {
    let Some(fields) = file.map("bash", node) else { return };
    for field in fields {
        let slot = match field.key.as_str() {
            "timeout" => &mut bash.timeout,
            "max_timeout" => &mut bash.max_timeout,
            other => {
                let nearest = keys::nearest(other, keys::BASH);
                file.warn(field.at, || messages::unknown_key(other, nearest));
                continue;
            }
        };
        let name = messages::key_path(&["bash", &field.key]);
        if let Some(count) = file.positive(&name, &field.value, MAX_TIMEOUT) {
            *slot = Some(count);
        }
    }
}

pub(super) fn read_sandbox(
    file: &mut ConfigFile<'_>,
    node: &ConfigNode,
    section: &mut SandboxSection,
) {
    if let ConfigValue::Text(_) = node.data {
        return read_mode(file, ("sandbox", node), section);
    }
    let ConfigValue::Map(_) = node.data else {
        let strictest = WithSource::new(Sandbox::ReadOnly, file.source(node.at));
        file.error(node.at, || messages::unknown_sandbox(&node.data));
        section.mode = Some(strictest);
        return;
    };
    for field in file.map("sandbox", node).unwrap_or_default() {
        match field.key.as_str() {
            "mode" => read_mode(file, ("sandbox.mode", &field.value), section),
            "network" => read_network(file, &field.value, section),
            "writable" => read_writable(file, &field.value, section),
            "caches" => read_caches(file, &field.value, section),
            "memory" => read_limit(file, field, u64::MAX, &mut section.memory),
            "processes" => read_limit(file, field, u64::MAX, &mut section.processes),
            "file_size" => read_limit(file, field, DEFAULT_FILE_SIZE, &mut section.file_size),
            other => {
                let nearest = keys::nearest(other, keys::SANDBOX);
                file.warn(field.at, || messages::unknown_key(other, nearest));
            }
        }
    }
}

fn read_mode(
    file: &mut ConfigFile<'_>,
    (name, node): (&str, &ConfigNode),
    section: &mut SandboxSection,
) {
    let source = file.source(node.at);
    let text = match node.data {
        // An unset variable must not be read as a mode.
        ConfigValue::Text(_) => file.text(name, node, ExpandMode::Strict),
        _ => {
            file.error(node.at, || messages::unknown_sandbox(&node.data));
            None
        }
    };
    let known = text.as_ref().and_then(|text| {
        let mode = Sandbox::ALL.into_iter().find(|mode| mode.as_str() == text.value);
        if mode.is_none() {
            file.error(node.at, || {
                messages::unknown_sandbox(&ConfigValue::Text(text.as_written().to_owned()))
            });
        }
        mode
    });
    let mode = WithSource::new(known.unwrap_or(Sandbox::ReadOnly), source);
    let loosens = section.mode() > mode.value;
    match file.layer {
        ConfigLayer::Project if loosens => file.warn(node.at, messages::project_loosens_sandbox),
        ConfigLayer::User | ConfigLayer::Project => section.mode = Some(mode),
    }
}

fn read_network(file: &mut ConfigFile<'_>, node: &ConfigNode, section: &mut SandboxSection) {
    let source = file.source(node.at);
    let network = match file.flag("sandbox.network", node).map(|flag| flag.value) {
        Some(true) => Network::On,
        Some(false) | None => Network::Off,
    };
    let loosens = section.network() == Network::Off && network == Network::On;
    match file.layer {
        ConfigLayer::Project if loosens => file.warn(node.at, messages::project_loosens_sandbox),
        ConfigLayer::User | ConfigLayer::Project => {
            section.network = Some(WithSource::new(network, source))
        }
    }
}

/// Maximum number of further writable folders, over all files.
const MAX_WRITABLE: usize = 50;

fn read_writable(file: &mut ConfigFile<'_>, node: &ConfigNode, section: &mut SandboxSection) {
    let folders = file.texts("sandbox.writable", node, ExpandMode::Strict).unwrap_or_default();
    if file.layer == ConfigLayer::Project && !folders.is_empty() {
        return file.warn(node.at, messages::project_loosens_sandbox);
    }
    for folder in folders {
        let is_absolute = folder.value.starts_with('/') || folder.value.starts_with("~/");
        if !is_absolute || section.writable.len() == MAX_WRITABLE {
            file.error(node.at, || messages::not_a_writable_folder(&folder.value, MAX_WRITABLE));
            continue;
        }
        section.writable.push(folder);
    }
}

fn read_caches(file: &mut ConfigFile<'_>, node: &ConfigNode, section: &mut SandboxSection) {
    let source = file.source(node.at);
    let caches = file.flag("sandbox.caches", node).is_some_and(|flag| flag.value);
    match file.layer {
        ConfigLayer::Project if caches && !section.caches() => {
            file.warn(node.at, messages::project_loosens_sandbox);
        }
        ConfigLayer::User | ConfigLayer::Project => {
            section.caches = Some(WithSource::new(caches, source));
        }
    }
}

/// Maximum size of a file in MiB, if the configuration does not set it.
const DEFAULT_FILE_SIZE: u64 = 16 << 10;
/// Maximum value of a limit.
const MAX_LIMIT: u64 = 1 << 30;

/// Reads a limit. A project can lower a limit but not raise it.
fn read_limit(
    file: &mut ConfigFile<'_>,
    field: &ConfigEntry,
    default: u64,
    limit: &mut Option<WithSource<u64>>,
) {
    let name = messages::key_path(&["sandbox", &field.key]);
    let Some(read) = file.positive(&name, &field.value, MAX_LIMIT) else { return };
    let loosens = limit.as_ref().map_or(default, |limit| limit.value) < read.value;
    match file.layer {
        ConfigLayer::Project if loosens => {
            file.warn(field.value.at, messages::project_loosens_sandbox);
        }
        ConfigLayer::User | ConfigLayer::Project => *limit = Some(read),
    }
}

pub(super) fn read_environment(
    file: &mut ConfigFile<'_>,
    node: &ConfigNode,
    section: &mut EnvironmentSection,
    needs_trust: &mut Vec<SettingLine>,
) {
    let Some(fields) = file.map("environment", node) else { return };
    for field in fields {
        let name = messages::key_path(&["environment", &field.key]);
        match (field.key.as_str(), file.authority) {
            ("inherit", _) => read_inherit(file, field, section, needs_trust),
            ("exclude", _) => {
                match file.texts(&name, &field.value, ExpandMode::Strict) {
                    Some(patterns) => section.exclude.extend(patterns),
                    // The invalid list may have been meant to exclude secrets.
                    None => section.restrict(file, field),
                }
            }
            ("include" | "set", Authority::RestrictOnly) => {
                needs_trust.push(SettingLine::needing_trust(file, &["environment"], field));
            }
            ("include", Authority::Full) => {
                let patterns = file.texts(&name, &field.value, ExpandMode::Strict);
                section.include.extend(patterns.unwrap_or_default());
            }
            ("set", Authority::Full) => {
                let variables = file.named_texts(&name, &field.value, ExpandMode::Lenient);
                set_variables(file, field, variables.unwrap_or_default(), section);
            }
            (other, _) => {
                let nearest = keys::nearest(other, keys::ENVIRONMENT);
                file.warn(field.at, || messages::unknown_key(other, nearest));
            }
        }
    }
    if section.include.len() + section.exclude.len() + section.set.len() > MAX_VARIABLES {
        file.error(node.at, || messages::too_many_variables(MAX_VARIABLES));
        section.include.truncate(MAX_VARIABLES);
        section.set.truncate(MAX_VARIABLES);
    }
}

fn read_inherit(
    file: &mut ConfigFile<'_>,
    field: &ConfigEntry,
    section: &mut EnvironmentSection,
    needs_trust: &mut Vec<SettingLine>,
) {
    let node = &field.value;
    let Some(text) = file.text("environment.inherit", node, ExpandMode::Strict) else {
        return section.restrict(file, field);
    };
    let Some(inherit) = Inherit::ALL.into_iter().find(|known| known.as_str() == text.value) else {
        file.error(node.at, || messages::unknown_inherit(text.as_written()));
        return section.restrict(file, field);
    };
    match file.authority {
        Authority::RestrictOnly if inherit < section.inherit() => {
            needs_trust.push(SettingLine::needing_trust(file, &["environment"], field));
        }
        Authority::RestrictOnly | Authority::Full => {
            section.inherit = Some(WithSource::new(inherit, text.source));
        }
    }
}

/// Sets variables. A later value of the same name replaces an earlier one.
fn set_variables(
    file: &mut ConfigFile<'_>,
    field: &ConfigEntry,
    variables: Vec<(String, WithSource<String>)>,
    section: &mut EnvironmentSection,
) {
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) || value.value.contains('\0') {
            file.error(field.value.at, || messages::not_a_variable(&name));
            continue;
        }
        section.set.retain(|(existing, _)| *existing != name);
        section.set.push((name, value));
    }
}
