//! `bytes`: random and changed texts for some time. No panic, no long wait, and no wrapping makes a text laxer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use helve_policy::Action;

use crate::judge::{Judged, judge};
use crate::lists::{self, Listed};
use crate::mutate;
use crate::random::Random;
use crate::traced::Policies;
use crate::world::World;

/// Texts up to this length must be judged within [`LONGEST_WAIT`], 99 of 100, and such as are one piece a thousand times
/// over within [`LONGEST_PILE`]. A build without optimisation is only told.
const SHORT: usize = 4 << 10;
const LONGEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_PILE: Duration = Duration::from_millis(50);
/// No text at all may take longer.
const NEVER_LONGER: Duration = Duration::from_secs(5);
const MOST_FAULTS: usize = 20;

/// What a text can be put into without being allowed more.
const AROUND: &[(&str, &str)] = &[
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
    println!("{seconds} s of texts, --seed {seed}");
    let (world, mut policies) = (World::new(), Policies::default());
    let mut random = Random::new(seed);
    let lists: Vec<Listed> = lists::attacks().into_iter().chain(lists::allowed()).collect();
    let start = Instant::now();
    let (mut faults, mut times) = (Vec::new(), Vec::new());
    let mut wrapped = 0_usize;
    let mut slowest = (Duration::ZERO, String::new());
    while start.elapsed() < Duration::from_secs(seconds) && faults.len() < MOST_FAULTS {
        let Made { text, policy: name, piled } = text(&lists, &mut random);
        let policy = policies.get(name)?;
        let began = worked();
        let judged = catch_unwind(AssertUnwindSafe(|| judge(&text, policy, &world)));
        let took = worked().saturating_sub(began);
        let Ok(plain) = judged else {
            faults.push(format!("a panic: {text:?}"));
            continue;
        };
        if text.len() <= SHORT && !piled {
            times.push(took);
        }
        if text.len() <= SHORT && took > slowest.0 {
            slowest = (took, text.chars().take(60).collect());
        }
        if took > NEVER_LONGER {
            faults.push(format!("{took:?} for {} bytes: {text:?}", text.len()));
        }
        if plain.action == Action::Allow || plain.is_unread() || text.len() > SHORT {
            continue;
        }
        for inside in around(&text) {
            wrapped += 1;
            let judged = judge(&inside, policy, &world);
            if judged.action == Action::Allow {
                faults.push(format!(
                    "{name}: {:?} for {text:?}, but allowed: {inside:?}",
                    plain.action
                ));
            }
        }
    }
    times.sort();
    let at = |share: usize| {
        times.get(times.len().saturating_sub(1) * share / 1000).copied().unwrap_or_default()
    };
    println!(
        "{} short texts: median {:?}, 99 % within {:?}, longest {:?}; {wrapped} wrapped, none laxer than plain: {}",
        times.len(),
        at(500),
        at(990),
        at(1000),
        faults.is_empty()
    );
    println!("with piles of one piece: longest {:?}, begins {:?}", slowest.0, slowest.1);
    if slowest.0 > LONGEST_PILE && !cfg!(debug_assertions) {
        faults.push(format!("{:?} for a short text", slowest.0));
    }
    if at(990) > LONGEST_WAIT && !cfg!(debug_assertions) {
        faults.push(format!("99 % are judged within {:?}, not {LONGEST_WAIT:?}", at(990)));
    }
    Ok(faults)
}

/// The work of this thread, so that a busy machine does not count.
fn worked() -> Duration {
    #[cfg(target_os = "linux")]
    return crate::sys::worked();
    #[cfg(not(target_os = "linux"))]
    return std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
}

fn around(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.replace('\'', "'\\''");
    let shells = ["bash -c", "env bash -c"].map(|shell| format!("{shell} '{quoted}'"));
    AROUND.iter().map(move |(start, end)| format!("{start}{text}{end}")).chain(shells)
}

struct Made<'l> {
    text: String,
    policy: &'l str,
    /// One piece, over and over.
    piled: bool,
}

fn text<'l>(lists: &'l [Listed], random: &mut Random) -> Made<'l> {
    let one = &lists[random.below(lists.len())];
    let other = &lists[random.below(lists.len())];
    let kind = random.below(8);
    let text = match kind {
        0 => {
            let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => {
            const SIGNS: &[u8] = b" \t\n;&|<>(){}[]$`'\"\\#*?~!=%+-,.:/@^0azEx";
            let sign = |_| SIGNS[random.below(SIGNS.len())] as char;
            (0..60).map(sign).collect()
        }
        2 => {
            // Deep or long, of one kind.
            let piece = random.pick(&[
                "(", "$(", "`", "{ ", "[[ ", "\"$(", "a ", "a;", "{a,b}", "<<E\n", "$((", "if ",
                "${x:-", "'", "f() ",
            ]);
            format!("{}{}", piece.repeat(random.below(3_000)), one.script)
        }
        3 => one.script.clone(),
        _ => mutate::several(&one.script, &other.script, random),
    };
    Made { text, policy: &one.policy, piled: kind == 2 }
}

impl Judged {
    /// Whether the text could not be read to its end: put into another, it may become a different script.
    fn is_unread(&self) -> bool {
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
