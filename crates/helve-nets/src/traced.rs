//! `traced`: runs scripts that the decision allows. They must do nothing that the decision does not list.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_policy::{Action, Policy};

use crate::cases::{self, ScriptCase};
use crate::decision::{ScriptDecision, judge};
use crate::sample_files::SampleFiles;
use crate::trace::Trace;
use crate::workers;

/// Progress is printed after this many scripts.
const PROGRESS_INTERVAL: usize = 500;

/// An allowed script with its decision.
pub(crate) struct AllowedScript {
    pub case: ScriptCase,
    pub judged: ScriptDecision,
}

/// Policies by name, each built once.
#[derive(Default)]
pub(crate) struct PolicyCache(BTreeMap<String, Policy>);

impl PolicyCache {
    pub(crate) fn get(&mut self, name: &str) -> Result<&Policy, String> {
        if !self.0.contains_key(name) {
            self.0.insert(name.into(), cases::policy_named(name)?);
        }
        self.0.get(name).ok_or_else(|| name.to_string())
    }
}

/// How many of the scripts about flags are judged and, if allowed, run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagCoverage {
    /// A fixed sample, for a quick run.
    Sample,
    /// All of them: one or more for every flag that the table lists as harmless.
    All,
}

pub(crate) fn run(files: &Path, coverage: FlagCoverage) -> Result<Vec<String>, String> {
    let samples = SampleFiles::new();
    let mut policies = PolicyCache::default();
    let mut allowed = Vec::new();
    let mut failures = Vec::new();
    for case in cases::allowed() {
        let judged = judge(&case.script, policies.get(&case.policy)?, &samples);
        match judged.action {
            Action::Allow => allowed.push(AllowedScript { case, judged }),
            action => failures.push(format!("{action:?} instead of Allow: {case:?}")),
        }
    }
    let mut seen = HashSet::new();
    let step = if coverage == FlagCoverage::All { 1 } else { 29 };
    let (mut flag_scripts, mut asked) = (0_usize, 0_usize);
    let found: Vec<ScriptCase> =
        cases::flag_scripts().into_iter().filter(|it| seen.insert(it.clone())).collect();
    for case in found.into_iter().step_by(step) {
        flag_scripts += 1;
        let judged = judge(&case.script, policies.get(&case.policy)?, &samples);
        if judged.action == Action::Allow {
            allowed.push(AllowedScript { case, judged });
        } else {
            asked += 1;
        }
    }
    let all = allowed.len();
    allowed.retain(|one| one.judged.is_predictable());
    println!("{} scripts use opaque or unknown programs and are skipped", all - allowed.len());
    let (missing, allowed) = split_by_installed(allowed);
    println!("{flag_scripts} scripts about flags, of which {asked} ask");
    println!("{} allowed scripts are run", allowed.len());
    if !missing.is_empty() {
        let list: Vec<&str> = missing.iter().map(String::as_str).collect();
        println!("skipped, because not installed: {}", list.join(" "));
    }
    failures.extend(run_all(files, &samples, &allowed)?);
    Ok(failures)
}

/// Runs allowed scripts. Returns a line for each failure.
pub(crate) fn run_all(
    files: &Path,
    samples: &SampleFiles,
    allowed: &[AllowedScript],
) -> Result<Vec<String>, String> {
    let failures = Mutex::new(Vec::new());
    let (done, timed_out) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let inspect = |one: &AllowedScript, traced: &Trace| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS_INTERVAL) {
            println!("   {done} of {}", allowed.len());
        }
        timed_out.fetch_add(usize::from(traced.timed_out), Ordering::Relaxed);
        let unlisted = one.judged.unlisted(traced, samples);
        if !unlisted.is_empty()
            && let Ok(mut failures) = failures.lock()
        {
            let ScriptCase { policy, script } = &one.case;
            let failure = format!("{policy}: {script:?}\n    {}", unlisted.join("\n    "));
            println!("NOT LISTED {failure}");
            failures.push(failure);
        }
    };
    workers::trace_all(files, allowed, |one| &one.case.script, inspect)?;
    println!("{} of them timed out", timed_out.into_inner());
    let mut failures = failures.into_inner().map_err(|_| "a worker panicked")?;
    failures.sort();
    Ok(failures)
}

/// Returns the programs that are not installed, and the scripts that need none of them.
fn split_by_installed(allowed: Vec<AllowedScript>) -> (BTreeSet<String>, Vec<AllowedScript>) {
    let mut missing = BTreeSet::new();
    let installed = |name: &str| {
        ["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let present = allowed.into_iter().filter(|one| {
        let programs = one.judged.programs();
        let absent: Vec<&&str> =
            programs.iter().filter(|name| !installed(name) && !is_builtin(name)).collect();
        missing.extend(absent.iter().map(|name| (**name).to_string()));
        absent.is_empty()
    });
    let present = present.collect();
    (missing, present)
}

fn is_builtin(name: &str) -> bool {
    const BUILTINS: &str = ": . [ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown echo \
        enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf \
        pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask \
        unalias unset wait time";
    BUILTINS.split_whitespace().any(|builtin| builtin == name)
}
