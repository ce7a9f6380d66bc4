//! `cargo xtask bench`: measures Helve's calls. Most are compared with a baseline: a simple program that does the
//! minimum of the same work.

mod agent;
mod calls;
mod children;
mod edit;
mod fixture;
mod languages;
mod library;
mod measure;
mod scripts;
mod search;
mod shell;
mod tree;
mod web;

use serde_json::{Value, json};

use crate::options::Options;
use crate::{Outcome, Verdict};
use fixture::Fixture;

struct Bench {
    name: &'static str,
    description: &'static str,
    bar: Bar,
    run: fn(&mut Fixture) -> Result<Measurement, String>,
}

/// The target of a measurement. It is printed but not enforced, because times depend on the machine.
#[derive(Clone, Copy)]
enum Bar {
    Milliseconds(f64),
    TimesBaseline(f64),
    Mebibytes(f64),
    None,
}

/// The last benchmark measures the memory used by all calls. The order of the others does not matter.
const BENCHES: &[Bench] = &[
    Bench {
        name: "start",
        description: "spawn to tools listed",
        bar: Bar::Milliseconds(25.0),
        run: calls::start,
    },
    Bench {
        name: "read-small",
        description: "read a small file",
        bar: Bar::Milliseconds(1.0),
        run: calls::read_small,
    },
    Bench {
        name: "read-tail",
        description: "last 2,000 of 1,000,000 lines",
        bar: Bar::TimesBaseline(1.5),
        run: calls::read_tail,
    },
    Bench {
        name: "call-read",
        description: "`helve call read`, cold",
        bar: Bar::None,
        run: calls::call_read,
    },
    Bench {
        name: "grep-rare",
        description: "grep a rare literal, 6,500 files",
        bar: Bar::TimesBaseline(1.0),
        run: search::grep_rare,
    },
    Bench {
        name: "grep-common",
        description: "grep a common regex, 6,500 files",
        bar: Bar::TimesBaseline(1.0),
        run: search::grep_common,
    },
    Bench {
        name: "glob",
        description: "glob **/*.rs, 6,500 files",
        bar: Bar::TimesBaseline(1.0),
        run: search::glob,
    },
    Bench {
        name: "glob-many",
        description: "glob **/*.rs, 200,000 files",
        bar: Bar::TimesBaseline(1.25),
        run: search::glob_many,
    },
    Bench {
        name: "list",
        description: "list a tree of 6,500 files",
        bar: Bar::TimesBaseline(1.0),
        run: search::list,
    },
    Bench {
        name: "bash-true",
        description: "bash `true`",
        bar: Bar::TimesBaseline(1.5),
        run: shell::empty_command,
    },
    Bench {
        name: "bash-confined",
        description: "bash `true` in the sandbox, beyond one outside",
        bar: Bar::Milliseconds(8.0),
        run: shell::confinement,
    },
    Bench {
        name: "bash-much",
        description: "bash with 10 MB of output",
        bar: Bar::TimesBaseline(3.0),
        run: shell::ten_megabytes,
    },
    Bench {
        name: "bash-much-memory",
        description: "memory for 10 MB of output",
        bar: Bar::Mebibytes(8.0),
        run: shell::memory_for_ten_megabytes,
    },
    Bench {
        name: "bash-vast-memory",
        description: "memory for 1 GB of output",
        bar: Bar::Mebibytes(64.0),
        run: shell::memory_for_a_gigabyte,
    },
    Bench {
        name: "edit-exact",
        description: "edit in a 1 MB file, exact old text",
        bar: Bar::TimesBaseline(1.3),
        run: edit::exact,
    },
    Bench {
        name: "edit-tolerant",
        description: "edit in a 1 MB file, different indentation",
        bar: Bar::TimesBaseline(1.6),
        run: edit::tolerant,
    },
    Bench {
        name: "edit-small",
        description: "edit in a small file",
        bar: Bar::TimesBaseline(1.3),
        run: edit::small,
    },
    Bench {
        name: "edit-exact-library",
        description: "the first of these edits, called in process",
        bar: Bar::TimesBaseline(1.3),
        run: edit::exact_in_process,
    },
    Bench {
        name: "edit-tolerant-library",
        description: "the second, called in process",
        bar: Bar::TimesBaseline(1.6),
        run: edit::tolerant_in_process,
    },
    Bench {
        name: "edit-small-library",
        description: "the third, called in process",
        bar: Bar::TimesBaseline(1.3),
        run: edit::small_in_process,
    },
    Bench {
        name: "edit-nearest",
        description: "closest match of an old text, 1 MB file",
        bar: Bar::Milliseconds(100.0),
        run: edit::nearest,
    },
    Bench {
        name: "web-prose",
        description: "1 MiB of prose to Markdown, beyond fetching it",
        bar: Bar::Milliseconds(15.0),
        run: web::prose,
    },
    Bench {
        name: "web-dense",
        description: "1 MiB of dense markup to Markdown, beyond fetching it",
        bar: Bar::Milliseconds(15.0),
        run: web::dense_markup,
    },
    Bench {
        name: "web-memory",
        description: "memory for 1 MiB of dense markup",
        bar: Bar::Mebibytes(10.0),
        run: web::memory,
    },
    Bench {
        name: "agent-start",
        description: "`helve run`: spawn to first request",
        bar: Bar::Milliseconds(40.0),
        run: agent::first_request,
    },
    Bench {
        name: "agent-step",
        description: "`helve run`: call of read to next request",
        bar: Bar::Milliseconds(3.0),
        run: agent::step,
    },
    Bench {
        name: "agent-large",
        description: "the same with 1 MB of transcript",
        bar: Bar::Milliseconds(8.0),
        run: agent::large_step,
    },
    Bench {
        name: "agent-long",
        description: "the last of 1,000 steps, linear growth",
        bar: Bar::TimesBaseline(7.0),
        run: agent::long_session,
    },
    Bench {
        name: "agent-memory",
        description: "peak memory of 1,000 steps",
        bar: Bar::Mebibytes(64.0),
        run: agent::memory,
    },
    Bench {
        name: "children",
        description: "`helve run`: 16 sub-agents, 4 at a time",
        bar: Bar::TimesBaseline(1.25),
        run: children::time,
    },
    Bench {
        name: "children-memory",
        description: "memory that each of 16 sub-agents adds",
        bar: Bar::Mebibytes(10.0),
        run: children::memory,
    },
    Bench {
        name: "scripts-list",
        description: "list tools, beyond listing without 10 custom tools",
        bar: Bar::Milliseconds(2.0),
        run: scripts::listing,
    },
    Bench {
        name: "scripts-first-bun",
        description: "first call of a TypeScript tool on bun",
        bar: Bar::Milliseconds(120.0),
        run: scripts::first_call_on_bun,
    },
    Bench {
        name: "scripts-first-node",
        description: "first call of a TypeScript tool on node",
        bar: Bar::Milliseconds(300.0),
        run: scripts::first_call_on_node,
    },
    Bench {
        name: "scripts-next",
        description: "next call of a TypeScript tool, beyond a call of read",
        bar: Bar::Milliseconds(1.0),
        run: scripts::next_call,
    },
    Bench {
        name: "edit-typescript",
        description: "edit, beyond one without typescript-language-server",
        bar: Bar::Milliseconds(300.0),
        run: languages::typescript,
    },
    Bench {
        name: "edit-pyright",
        description: "edit, beyond one without pyright",
        bar: Bar::Milliseconds(300.0),
        run: languages::pyright,
    },
    Bench {
        name: "edit-rust",
        description: "edit, beyond one without rust-analyzer",
        bar: Bar::Milliseconds(800.0),
        run: languages::rust,
    },
    Bench {
        name: "edit-no-server",
        description: "edit of a text file, beyond one with `lsp: false`",
        bar: Bar::Milliseconds(0.1),
        run: languages::no_server,
    },
    Bench {
        name: "memory",
        description: "peak memory of all calls",
        bar: Bar::Mebibytes(64.0),
        run: calls::memory,
    },
];

/// Medians, in mebibytes if the bar is in mebibytes, otherwise in milliseconds.
struct Measurement {
    ours: f64,
    baseline: Option<Baseline>,
    /// 0 if the benchmark was skipped. Then it has no row.
    rounds: usize,
}

/// The median of the program that a call is compared with.
struct Baseline {
    command: &'static str,
    value: f64,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(BENCHES, |bench| bench.name)?;
    if options.list {
        chosen.iter().for_each(|bench| println!("{:<22} {}", bench.name, bench.description));
        return Ok(Verdict::Good);
    }
    let mut fixture = Fixture::new(options)?;
    let mut rows = Vec::new();
    let mut verdict = Verdict::Good;
    for bench in chosen {
        match (bench.run)(&mut fixture) {
            Ok(Measurement { rounds: 0, .. }) => {}
            Ok(measurement) => rows.push((bench, measurement)),
            Err(why) => {
                eprintln!("{}: {why}", bench.name);
                verdict = Verdict::Bad;
            }
        }
    }
    if options.json {
        println!(
            "{}",
            Value::from_iter(rows.iter().map(|(bench, measurement)| as_json(bench, measurement)))
        );
    } else {
        print!("{}", table(&rows));
    }
    Ok(verdict)
}

impl Measurement {
    fn ratio(&self) -> Option<f64> {
        self.baseline
            .as_ref()
            .filter(|baseline| baseline.value > 0.0)
            .map(|baseline| self.ours / baseline.value)
    }

    /// Returns whether the measurement meets the bar; `None` if there is no bar, or no baseline that the bar refers to.
    fn meets(&self, bar: Bar) -> Option<bool> {
        match bar {
            Bar::Milliseconds(max) | Bar::Mebibytes(max) => Some(self.ours <= max),
            Bar::TimesBaseline(max) => self.ratio().map(|ratio| ratio <= max),
            Bar::None => None,
        }
    }
}

fn table(rows: &[(&Bench, Measurement)]) -> String {
    let mut lines = vec![["what", "ours", "baseline", "ratio", "bar", "met"].map(str::to_owned)];
    for (bench, measurement) in rows {
        let (unit, bar) = match bench.bar {
            Bar::Milliseconds(max) => ("ms", format!("≤ {max} ms")),
            Bar::TimesBaseline(max) => ("ms", format!("≤ {max} × baseline")),
            Bar::Mebibytes(max) => ("MiB", format!("≤ {max} MiB")),
            Bar::None => ("ms", "–".into()),
        };
        let baseline = measurement.baseline.as_ref();
        lines.push([
            format!("{} (median of {})", bench.description, measurement.rounds),
            format!("{:.2} {unit}", measurement.ours),
            baseline.map_or("–".into(), |baseline| {
                format!("{:.2} {unit} `{}`", baseline.value, baseline.command)
            }),
            measurement.ratio().map_or("–".into(), |ratio| format!("{ratio:.2} ×")),
            bar,
            measurement.meets(bench.bar).map_or("–", |met| if met { "yes" } else { "NO" }).into(),
        ]);
    }
    align_columns(&lines)
}

fn align_columns(lines: &[[String; 6]]) -> String {
    let mut widths = [0; 6];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in lines {
        let cells: Vec<_> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn as_json(bench: &Bench, measurement: &Measurement) -> Value {
    let (unit, bar) = match bench.bar {
        Bar::Milliseconds(max) => ("ms", json!({"ms": max})),
        Bar::TimesBaseline(max) => ("ms", json!({"times_baseline": max})),
        Bar::Mebibytes(max) => ("MiB", json!({"MiB": max})),
        Bar::None => ("ms", Value::Null),
    };
    json!({
        "name": bench.name, "what": bench.description, "unit": unit, "rounds": measurement.rounds, "ours": measurement.ours,
        "baseline": measurement.baseline.as_ref().map(|baseline| baseline.value),
        "baseline_command": measurement.baseline.as_ref().map(|baseline| baseline.command),
        "ratio": measurement.ratio(), "bar": bar, "met": measurement.meets(bench.bar),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(bar: Bar) -> Bench {
        Bench { name: "x", description: "x", bar, run: |_| Err("not run".into()) }
    }

    fn measurement(ours: f64, baseline: Option<f64>) -> Measurement {
        Measurement {
            ours,
            baseline: baseline.map(|value| Baseline { command: "true", value }),
            rounds: 3,
        }
    }

    #[test]
    fn the_table_shows_whether_a_bar_is_met() {
        let (met, missed, without_bar) =
            (bench(Bar::TimesBaseline(1.5)), bench(Bar::Milliseconds(1.0)), bench(Bar::None));
        let rows = [
            (&met, measurement(3.0, Some(2.0))),
            (&missed, measurement(1.25, None)),
            (&without_bar, measurement(1.0, None)),
        ];
        let expected = "\
what             ours     baseline        ratio   bar               met
x (median of 3)  3.00 ms  2.00 ms `true`  1.50 ×  ≤ 1.5 × baseline  yes
x (median of 3)  1.25 ms  –               –       ≤ 1 ms            NO
x (median of 3)  1.00 ms  –               –       –                 –
";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn a_bar_that_needs_a_baseline_is_neither_met_nor_missed_without_one() {
        assert_eq!(measurement(3.0, None).meets(Bar::TimesBaseline(1.5)), None);
        assert_eq!(measurement(3.0, Some(0.0)).meets(Bar::TimesBaseline(1.5)), None);
    }

    #[test]
    fn measurements_are_printed_as_json() {
        let value = as_json(&bench(Bar::TimesBaseline(1.5)), &measurement(4.0, Some(2.0)));
        assert_eq!(
            (&value["ratio"], &value["met"], &value["bar"]["times_baseline"]),
            (&json!(2.0), &json!(false), &json!(1.5))
        );
    }
}
