//! `traced`: what the decision allows is run for real, and must do nothing that the decision did not list.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_policy::{Action, Policy};

use crate::event::Traced;
use crate::judge::{Judged, judge};
use crate::lists::{self, Listed};
use crate::workers;
use crate::world::World;

/// A line of progress after so many scripts.
const PROGRESS: usize = 500;

/// A script that is allowed, with its decision.
pub(crate) struct Allowed {
    pub listed: Listed,
    pub judged: Judged,
}

/// Policies by name, made once.
#[derive(Default)]
pub(crate) struct Policies(BTreeMap<String, Policy>);

impl Policies {
    pub(crate) fn get(&mut self, name: &str) -> Result<&Policy, String> {
        if !self.0.contains_key(name) {
            self.0.insert(name.into(), lists::policy_of(name)?);
        }
        self.0.get(name).ok_or_else(|| name.to_string())
    }
}

/// Which lists are run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wide {
    /// The scripts that are written down, and some of each program's flags.
    Some,
    /// Every flag that the table lists as harmless.
    All,
}

pub(crate) fn run(files: &Path, wide: Wide) -> Result<Vec<String>, String> {
    let world = World::new();
    let mut policies = Policies::default();
    let mut allowed = Vec::new();
    let mut faults = Vec::new();
    for listed in lists::allowed() {
        let judged = judge(&listed.script, policies.get(&listed.policy)?, &world);
        match judged.action {
            Action::Allow => allowed.push(Allowed { listed, judged }),
            action => faults.push(format!("{action:?}, not allowed: {listed:?}")),
        }
    }
    let mut seen = HashSet::new();
    let step = if wide == Wide::All { 1 } else { 29 };
    let (mut known, mut asked) = (0_usize, 0_usize);
    let found: Vec<Listed> =
        lists::flags().into_iter().filter(|it| seen.insert(it.clone())).collect();
    for listed in found.into_iter().step_by(step) {
        known += 1;
        let judged = judge(&listed.script, policies.get(&listed.policy)?, &world);
        if judged.action == Action::Allow {
            allowed.push(Allowed { listed, judged });
        } else {
            asked += 1;
        }
    }
    let all = allowed.len();
    allowed.retain(|one| one.judged.is_predictable());
    println!("{} scripts use programs that do as they like, and are left out", all - allowed.len());
    let (missing, allowed) = without_missing(allowed);
    println!("{known} scripts of flags, of which {asked} are asked about");
    println!("{} scripts allowed and run", allowed.len());
    if !missing.is_empty() {
        let list: Vec<&str> = missing.iter().map(String::as_str).collect();
        println!("left out, because not installed: {}", list.join(" "));
    }
    faults.extend(run_all(files, &world, &allowed)?);
    Ok(faults)
}

/// Runs what is allowed; each fault is a line.
pub(crate) fn run_all(
    files: &Path,
    world: &World,
    allowed: &[Allowed],
) -> Result<Vec<String>, String> {
    let faults = Mutex::new(Vec::new());
    let (done, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let look = |one: &Allowed, traced: &Traced| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS) {
            println!("   {done} of {}", allowed.len());
        }
        ended.fetch_add(usize::from(traced.ended), Ordering::Relaxed);
        let unlisted = one.judged.unlisted(traced, world);
        if !unlisted.is_empty()
            && let Ok(mut faults) = faults.lock()
        {
            let Listed { policy, script } = &one.listed;
            let fault = format!("{policy}: {script:?}\n    {}", unlisted.join("\n    "));
            println!("NOT LISTED {fault}");
            faults.push(fault);
        }
    };
    workers::trace_all(files, allowed, |one| &one.listed.script, look)?;
    println!("{} of them were ended after a while", ended.into_inner());
    let mut faults = faults.into_inner().map_err(|_| "a look panicked")?;
    faults.sort();
    Ok(faults)
}

/// Leaves out what needs programs that are not there.
fn without_missing(allowed: Vec<Allowed>) -> (BTreeSet<String>, Vec<Allowed>) {
    let mut missing = BTreeSet::new();
    let installed = |name: &str| {
        ["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let there = allowed.into_iter().filter(|one| {
        let programs = one.judged.programs();
        let absent: Vec<&&str> =
            programs.iter().filter(|name| !installed(name) && !is_builtin(name)).collect();
        missing.extend(absent.iter().map(|name| (**name).to_string()));
        absent.is_empty()
    });
    let there = there.collect();
    (missing, there)
}

fn is_builtin(name: &str) -> bool {
    const BUILTINS: &str = ": . [ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown echo \
        enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf \
        pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask \
        unalias unset wait time";
    BUILTINS.split_whitespace().any(|builtin| builtin == name)
}
