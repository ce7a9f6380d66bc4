//! `known-scripts`: runs scripts that the shell decision of helve-policy allows. Each must have only the effects that
//! the analysis listed when it allowed the script.

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

/// Number of scripts after which progress is printed.
const PROGRESS_INTERVAL: usize = 500;

/// An allowed script with its decision.
pub(crate) struct AllowedScript {
    pub case: ScriptCase,
    pub decision: ScriptDecision,
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

/// Which single-flag scripts are judged and, if allowed, run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagCoverage {
    /// A fixed sample, for a quick run.
    Sample,
    /// All scripts: at least one for every flag that the table lists as harmless.
    All,
}

/// Runs this safety net: judges the scripts, and runs those that are allowed. Returns a line for each failure.
pub(crate) fn run(sample_folder: &Path, coverage: FlagCoverage) -> Result<Vec<String>, String> {
    let samples = SampleFiles::new();
    let mut policies = PolicyCache::default();
    let mut allowed = Vec::new();
    let mut failures = Vec::new();
    for case in cases::allowed() {
        let decision = judge(&case.script, policies.get(&case.policy)?, &samples);
        match decision.action {
            Action::Allow => allowed.push(AllowedScript { case, decision }),
            action => failures.push(format!("{action:?} instead of Allow: {case:?}")),
        }
    }
    let mut seen = HashSet::new();
    let step = if coverage == FlagCoverage::All { 1 } else { 29 };
    let (mut flag_scripts, mut not_allowed) = (0_usize, 0_usize);
    let distinct: Vec<ScriptCase> =
        cases::flag_scripts().into_iter().filter(|it| seen.insert(it.clone())).collect();
    for case in distinct.into_iter().step_by(step) {
        flag_scripts += 1;
        let decision = judge(&case.script, policies.get(&case.policy)?, &samples);
        if decision.is_understood_and_allowed() {
            allowed.push(AllowedScript { case, decision });
        } else {
            not_allowed += 1;
        }
    }
    let allowed_count = allowed.len();
    allowed.retain(|it| {
        it.decision.is_understood_and_allowed() && it.decision.has_only_known_effects()
    });
    println!(
        "{} scripts use programs with unknown effects and are skipped",
        allowed_count - allowed.len()
    );
    let (missing, allowed) = remove_not_installed(allowed);
    println!("{flag_scripts} scripts use one flag each; {not_allowed} of them are not allowed");
    println!("{} allowed scripts are run", allowed.len());
    if !missing.is_empty() {
        let list: Vec<&str> = missing.iter().map(String::as_str).collect();
        println!("skipped, because not installed: {}", list.join(" "));
    }
    failures.extend(run_all(sample_folder, &samples, &allowed)?);
    Ok(failures)
}

/// Runs allowed scripts. Returns a line for each failure.
pub(crate) fn run_all(
    sample_folder: &Path,
    samples: &SampleFiles,
    allowed: &[AllowedScript],
) -> Result<Vec<String>, String> {
    let failures = Mutex::new(Vec::new());
    let (finished, timed_out) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let inspect = |allowed_script: &AllowedScript, trace: &Trace| {
        let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
        if finished.is_multiple_of(PROGRESS_INTERVAL) {
            println!("   {finished} of {}", allowed.len());
        }
        timed_out.fetch_add(usize::from(trace.timed_out), Ordering::Relaxed);
        let unpredicted = allowed_script.decision.unpredicted(trace, samples);
        if !unpredicted.is_empty()
            && let Ok(mut failures) = failures.lock()
        {
            let ScriptCase { policy, script } = &allowed_script.case;
            let failure = format!("{policy}: {script:?}\n    {}", unpredicted.join("\n    "));
            println!("UNPREDICTED {failure}");
            failures.push(failure);
        }
    };
    workers::trace_all(sample_folder, allowed, |it| &it.case.script, inspect)?;
    println!("{} of them timed out", timed_out.into_inner());
    let mut failures = failures.into_inner().map_err(|_| "a worker panicked")?;
    failures.sort();
    Ok(failures)
}

/// Removes scripts that need a program that is not installed. Returns these programs and the other scripts.
fn remove_not_installed(allowed: Vec<AllowedScript>) -> (BTreeSet<String>, Vec<AllowedScript>) {
    let mut missing = BTreeSet::new();
    let is_installed = |name: &str| {
        ["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let runnable = allowed.into_iter().filter(|it| {
        let programs = it.decision.programs();
        let absent: Vec<&&str> =
            programs.iter().filter(|name| !is_installed(name) && !is_builtin(name)).collect();
        missing.extend(absent.iter().map(|name| (**name).to_string()));
        absent.is_empty()
    });
    let runnable = runnable.collect();
    (missing, runnable)
}

fn is_builtin(name: &str) -> bool {
    const BUILTINS: &str = ": . [ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown echo \
        enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf \
        pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask \
        unalias unset wait time";
    BUILTINS.split_whitespace().any(|builtin| builtin == name)
}
