//! `random-texts`: judges random and mutated texts for some time. No text may cause a panic or a long wait, and
//! wrapping a text in another construct must not turn a refusal into permission.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use helve_policy::Action;

use crate::cases::{self, ScriptCase};
use crate::decision::{ScriptDecision, judge};
use crate::known_scripts::PolicyCache;
use crate::mutate;
use crate::random::Random;
use crate::sample_files::SampleFiles;

/// Maximum length of a short text.
const SHORT_BYTES: usize = 4 << 10;
/// Maximum time for 99 % of the short texts, except those that repeat one token many times. Only an optimized build
/// checks this limit.
const MAX_P99_TIME: Duration = Duration::from_millis(1);
/// Maximum time for every short text. Only an optimized build checks this limit.
const MAX_SHORT_TEXT_TIME: Duration = Duration::from_millis(50);
/// Maximum time for a text of any length.
const MAX_TIME: Duration = Duration::from_secs(5);
const MAX_FAILURES: usize = 20;

/// Constructs that must not turn a refusal of the text inside them into permission.
const WRAPPERS: &[(&str, &str)] = &[
    ("( ", "\n)"),
    ("{ ", "\n}"),
    ("if true; then ", "\nfi"),
    ("while false; do ", "\ndone"),
    ("case a in a) ", "\n;; esac"),
    ("f() { ", "\n}; f"),
    ("true && {\n", "\n}"),
    ("cat <(", "\n)"),
    ("echo \"$(", "\n)\""),
];

pub(crate) fn run(seconds: u64, seed: u64) -> Result<Vec<String>, String> {
    println!("judging texts for {seconds} s, --seed {seed}");
    let (samples, mut policies) = (SampleFiles::new(), PolicyCache::default());
    let mut random = Random::new(seed);
    let cases: Vec<ScriptCase> = cases::attacks().into_iter().chain(cases::allowed()).collect();
    let start = Instant::now();
    let mut failures = Vec::new();
    let mut times = Times::default();
    let mut wrapped_count = 0_usize;
    while start.elapsed() < Duration::from_secs(seconds) && failures.len() < MAX_FAILURES {
        let random_text = random_text(&cases, &mut random);
        let RandomText { text, policy: name, .. } = &random_text;
        let policy = policies.get(name)?;
        let start_time = cpu_time();
        let result = catch_unwind(AssertUnwindSafe(|| judge(text, policy, &samples)));
        let duration = cpu_time().saturating_sub(start_time);
        let Ok(decision) = result else {
            failures.push(format!("panic: {text:?}"));
            continue;
        };
        times.add(&random_text, duration);
        if duration > MAX_TIME {
            failures.push(format!("{duration:?} for a text of {} bytes: {text:?}", text.len()));
        }
        if decision.action == Action::Allow || decision.is_unparsed() || text.len() > SHORT_BYTES {
            continue;
        }
        for wrapped_text in wrapped_texts(text) {
            wrapped_count += 1;
            if judge(&wrapped_text, policy, &samples).is_understood_and_allowed() {
                let action = decision.action;
                failures.push(format!(
                    "{name}: {action:?} for {text:?}, but allowed: {wrapped_text:?}"
                ));
            }
        }
    }
    println!("{wrapped_count} wrapped texts judged, {} failures so far", failures.len());
    failures.extend(times.report());
    Ok(failures)
}

/// How long judging short texts took.
#[derive(Default)]
struct Times {
    /// Times of the texts that do not repeat one piece.
    usual: Vec<Duration>,
    /// The longest time of a short text, including texts that repeat one piece, and the start of that text.
    slowest: (Duration, String),
}

impl Times {
    fn add(&mut self, random_text: &RandomText<'_>, duration: Duration) {
        let RandomText { text, is_repetitive, .. } = random_text;
        if text.len() <= SHORT_BYTES && !is_repetitive {
            self.usual.push(duration);
        }
        if text.len() <= SHORT_BYTES && duration > self.slowest.0 {
            self.slowest = (duration, text.chars().take(60).collect());
        }
    }

    /// Prints the times. Returns a line for each limit that an optimized build exceeds.
    fn report(mut self) -> Vec<String> {
        self.usual.sort();
        let last = self.usual.len().saturating_sub(1);
        let percentile =
            |per_mille: usize| self.usual.get(last * per_mille / 1000).copied().unwrap_or_default();
        let (median, p99, max) = (percentile(500), percentile(990), percentile(1000));
        let (slowest, text) = &self.slowest;
        println!(
            "{} short texts: median {median:?}, 99 % within {p99:?}, slowest {max:?}",
            self.usual.len()
        );
        println!("with repeated pieces: slowest {slowest:?}, starting with {text:?}");
        let mut failures = Vec::new();
        if *slowest > MAX_SHORT_TEXT_TIME && !cfg!(debug_assertions) {
            failures.push(format!("{slowest:?} for a short text"));
        }
        if p99 > MAX_P99_TIME && !cfg!(debug_assertions) {
            failures
                .push(format!("99 % of the texts take up to {p99:?}, more than {MAX_P99_TIME:?}"));
        }
        failures
    }
}

/// Returns the CPU time of this thread, which does not depend on the load of the machine.
fn cpu_time() -> Duration {
    #[cfg(target_os = "linux")]
    return crate::sys::cpu_time();
    #[cfg(not(target_os = "linux"))]
    return std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
}

/// Returns the text inside each of the wrappers, and as an argument of a shell.
fn wrapped_texts(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.replace('\'', "'\\''");
    let shells = ["bash -c", "env bash -c"].map(|shell| format!("{shell} '{quoted}'"));
    WRAPPERS.iter().map(move |(start, end)| format!("{start}{text}{end}")).chain(shells)
}

/// A generated text, and the policy that it is judged under.
struct RandomText<'l> {
    text: String,
    policy: &'l str,
    /// Whether the text repeats one piece many times.
    is_repetitive: bool,
}

fn random_text<'l>(cases: &'l [ScriptCase], random: &mut Random) -> RandomText<'l> {
    let case = &cases[random.below(cases.len())];
    let other = &cases[random.below(cases.len())];
    let kind = random.below(8);
    let text = match kind {
        0 => {
            let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => {
            const METACHARACTERS: &[u8] = b" \t\n;&|<>(){}[]$`'\"\\#*?~!=%+-,.:/@^0azEx";
            let character = |_| METACHARACTERS[random.below(METACHARACTERS.len())] as char;
            (0..60).map(character).collect()
        }
        2 => {
            // Deep nesting or a long list of the same piece.
            let piece = random.pick(&[
                "(", "$(", "`", "{ ", "[[ ", "\"$(", "a ", "a;", "{a,b}", "<<E\n", "$((", "if ",
                "${x:-", "'", "f() ",
            ]);
            format!("{}{}", piece.repeat(random.below(3_000)), case.script)
        }
        3 => case.script.clone(),
        _ => mutate::mutate(&case.script, &other.script, random),
    };
    RandomText { text, policy: &case.policy, is_repetitive: kind == 2 }
}

impl ScriptDecision {
    /// Whether the text could not be fully parsed. Inside another text it may become a different script.
    fn is_unparsed(&self) -> bool {
        use helve_text::shell::DoubtKind;
        self.doubts.iter().any(|doubt| {
            matches!(
                doubt.kind,
                DoubtKind::Syntax
                    | DoubtKind::Disagreement
                    | DoubtKind::TooDeep
                    | DoubtKind::TooMany
                    | DoubtKind::TooLong
            )
        })
    }
}
