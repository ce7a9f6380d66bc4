//! `cargo xtask bench`: our calls beside the floors of this machine, measured in the same minutes.

mod calls;
mod edit;
mod measure;
mod search;
mod shell;
mod stage;
mod tree;

use serde_json::{Value, json};

use crate::options::Options;
use crate::{Outcome, Verdict};
use stage::Stage;

struct Bench {
    name: &'static str,
    what: &'static str,
    bar: Bar,
    run: fn(&mut Stage) -> Result<Figures, String>,
}

/// What a figure is held to. Printed, never asserted: time belongs to the machine.
#[derive(Clone, Copy)]
enum Bar {
    Milliseconds(f64),
    TimesFloor(f64),
    Mebibytes(f64),
    Open,
}

/// The order matters for the last one only: memory is looked at when the calls have been made.
/// To add one: a function in `calls.rs` (edit, grep, glob, list, bash go there), its files in `stage.rs`, a line here.
const BENCHES: &[Bench] = &[
    Bench {
        name: "start",
        what: "spawn to tools listed",
        bar: Bar::Milliseconds(25.0),
        run: calls::start,
    },
    Bench {
        name: "read-small",
        what: "read a small file",
        bar: Bar::Milliseconds(1.0),
        run: calls::read_small,
    },
    Bench {
        name: "read-tail",
        what: "last 2,000 of 1,000,000 lines",
        bar: Bar::TimesFloor(1.5),
        run: calls::read_tail,
    },
    Bench {
        name: "call-read",
        what: "`helve call read`, cold",
        bar: Bar::Open,
        run: calls::call_read,
    },
    Bench {
        name: "grep-rare",
        what: "grep a rare literal, 6,500 files",
        bar: Bar::TimesFloor(1.0),
        run: search::grep_rare,
    },
    Bench {
        name: "grep-common",
        what: "grep a common regex, 6,500 files",
        bar: Bar::TimesFloor(1.0),
        run: search::grep_common,
    },
    Bench {
        name: "glob",
        what: "glob **/*.rs, 6,500 files",
        bar: Bar::TimesFloor(1.0),
        run: search::glob,
    },
    Bench {
        name: "glob-many",
        what: "glob **/*.rs, 200,000 files",
        bar: Bar::TimesFloor(1.25),
        run: search::glob_many,
    },
    Bench {
        name: "list",
        what: "list a tree of 6,500 files",
        bar: Bar::TimesFloor(1.0),
        run: search::list,
    },
    Bench {
        name: "bash-true",
        what: "bash `true`",
        bar: Bar::TimesFloor(1.5),
        run: shell::nothing,
    },
    Bench {
        name: "bash-much",
        what: "bash with 10 MB of output",
        bar: Bar::TimesFloor(3.0),
        run: shell::much,
    },
    Bench {
        name: "bash-much-memory",
        what: "memory that 10 MB of output take",
        bar: Bar::Mebibytes(8.0),
        run: shell::memory_of_ten_megabytes,
    },
    Bench {
        name: "bash-vast-memory",
        what: "memory that 1 GB of output takes",
        bar: Bar::Mebibytes(64.0),
        run: shell::memory_of_a_gigabyte,
    },
    Bench {
        name: "edit-exact",
        what: "edit in a 1 MB file, quoted exactly",
        bar: Bar::Milliseconds(10.0),
        run: edit::exact,
    },
    Bench {
        name: "edit-tolerant",
        what: "edit in a 1 MB file, indentation off",
        bar: Bar::Milliseconds(10.0),
        run: edit::tolerant,
    },
    Bench {
        name: "edit-small",
        what: "edit in a small file",
        bar: Bar::TimesFloor(3.0),
        run: edit::small,
    },
    Bench {
        name: "edit-nearest",
        what: "nearest place to a quotation, 1 MB file",
        bar: Bar::Milliseconds(100.0),
        run: edit::nearest,
    },
    Bench {
        name: "memory",
        what: "peak memory over all of these",
        bar: Bar::Mebibytes(64.0),
        run: calls::memory,
    },
];

/// Medians. `ours` and the floor are milliseconds, or mebibytes where the bar is.
struct Figures {
    ours: f64,
    floor: Option<Floor>,
    rounds: usize,
}

struct Floor {
    command: &'static str,
    value: f64,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(BENCHES, |bench| bench.name)?;
    if options.list {
        chosen.iter().for_each(|bench| println!("{:<12} {}", bench.name, bench.what));
        return Ok(Verdict::Good);
    }
    let mut stage = Stage::set(options)?;
    let mut rows = Vec::new();
    let mut verdict = Verdict::Good;
    for bench in chosen {
        match (bench.run)(&mut stage) {
            Ok(figures) => rows.push((bench, figures)),
            Err(why) => {
                eprintln!("{}: {why}", bench.name);
                verdict = Verdict::Bad;
            }
        }
    }
    if options.json {
        println!(
            "{}",
            Value::from_iter(rows.iter().map(|(bench, figures)| as_json(bench, figures)))
        );
    } else {
        print!("{}", table(&rows));
    }
    Ok(verdict)
}

impl Figures {
    fn ratio(&self) -> Option<f64> {
        self.floor.as_ref().filter(|floor| floor.value > 0.0).map(|floor| self.ours / floor.value)
    }

    /// `None` where there is no bar, or no floor to hold it against.
    fn meets(&self, bar: Bar) -> Option<bool> {
        match bar {
            Bar::Milliseconds(most) | Bar::Mebibytes(most) => Some(self.ours <= most),
            Bar::TimesFloor(most) => self.ratio().map(|ratio| ratio <= most),
            Bar::Open => None,
        }
    }
}

fn table(rows: &[(&Bench, Figures)]) -> String {
    let mut lines = vec![["what", "ours", "floor", "ratio", "bar", "met"].map(str::to_owned)];
    for (bench, figures) in rows {
        let (unit, bar) = match bench.bar {
            Bar::Milliseconds(most) => ("ms", format!("≤ {most} ms")),
            Bar::TimesFloor(most) => ("ms", format!("≤ {most} × floor")),
            Bar::Mebibytes(most) => ("MiB", format!("≤ {most} MiB")),
            Bar::Open => ("ms", "–".into()),
        };
        let floor = figures.floor.as_ref();
        lines.push([
            format!("{} (median of {})", bench.what, figures.rounds),
            format!("{:.2} {unit}", figures.ours),
            floor.map_or("–".into(), |floor| {
                format!("{:.2} {unit} `{}`", floor.value, floor.command)
            }),
            figures.ratio().map_or("–".into(), |ratio| format!("{ratio:.2} ×")),
            bar,
            figures.meets(bench.bar).map_or("–", |met| if met { "yes" } else { "NO" }).into(),
        ]);
    }
    aligned(&lines)
}

fn aligned(lines: &[[String; 6]]) -> String {
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

fn as_json(bench: &Bench, figures: &Figures) -> Value {
    let (unit, bar) = match bench.bar {
        Bar::Milliseconds(most) => ("ms", json!({"ms": most})),
        Bar::TimesFloor(most) => ("ms", json!({"times_floor": most})),
        Bar::Mebibytes(most) => ("MiB", json!({"MiB": most})),
        Bar::Open => ("ms", Value::Null),
    };
    json!({
        "name": bench.name, "what": bench.what, "unit": unit, "rounds": figures.rounds, "ours": figures.ours,
        "floor": figures.floor.as_ref().map(|floor| floor.value),
        "floor_command": figures.floor.as_ref().map(|floor| floor.command),
        "ratio": figures.ratio(), "bar": bar, "met": figures.meets(bench.bar),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(bar: Bar) -> Bench {
        Bench { name: "x", what: "x", bar, run: |_| Err("not run".into()) }
    }

    fn figures(ours: f64, floor: Option<f64>) -> Figures {
        Figures { ours, floor: floor.map(|value| Floor { command: "true", value }), rounds: 3 }
    }

    #[test]
    fn the_table_says_whether_a_bar_is_met() {
        let (near, far, open) =
            (bench(Bar::TimesFloor(1.5)), bench(Bar::Milliseconds(1.0)), bench(Bar::Open));
        let rows = [
            (&near, figures(3.0, Some(2.0))),
            (&far, figures(1.25, None)),
            (&open, figures(1.0, None)),
        ];
        let expected = "\
what             ours     floor           ratio   bar            met
x (median of 3)  3.00 ms  2.00 ms `true`  1.50 ×  ≤ 1.5 × floor  yes
x (median of 3)  1.25 ms  –               –       ≤ 1 ms         NO
x (median of 3)  1.00 ms  –               –       –              –
";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn a_ratio_without_a_floor_is_neither_met_nor_missed() {
        assert_eq!(figures(3.0, None).meets(Bar::TimesFloor(1.5)), None);
        assert_eq!(figures(3.0, Some(0.0)).meets(Bar::TimesFloor(1.5)), None);
    }

    #[test]
    fn figures_go_out_as_json() {
        let value = as_json(&bench(Bar::TimesFloor(1.5)), &figures(4.0, Some(2.0)));
        assert_eq!(
            (&value["ratio"], &value["met"], &value["bar"]["times_floor"]),
            (&json!(2.0), &json!(false), &json!(1.5))
        );
    }
}
