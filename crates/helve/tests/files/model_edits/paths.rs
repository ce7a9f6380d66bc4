//! Generates paths that are probably mistakes, such as a path in quotes, and unusual paths that are not.

use fastrand::Rng;
use serde_json::{Value, json};

use super::languages::pick;
use super::{Case, Generator, change, refusal};

pub(super) const GENERATORS: &[Generator] = &[
    odd_new_path,
    plausible_new_path,
    odd_existing_path,
    mistaken_path_of_an_existing_file,
    wrong_folder,
    look_alike,
];

/// Returns a call that creates a file, through one of the tools.
fn create(rng: &mut Rng, path: &str, text: &str) -> (&'static str, Value) {
    match rng.usize(..4) {
        0 => ("edit", json!({"filePath": path, "oldString": "", "newString": text})),
        1 => (
            "multiedit",
            json!({"filePath": path, "edits": [{"oldString": "", "newString": text}]}),
        ),
        2 if path.trim() == path && !path.contains('\n') => {
            let rows: String = text.lines().map(|line| format!("+{line}\n")).collect();
            (
                "apply_patch",
                json!({"patchText": format!("*** Begin Patch\n*** Add File: {path}\n{rows}*** End Patch")}),
            )
        }
        _ => ("write", json!({"filePath": path, "content": text})),
    }
}

/// Returns a path with a mistake, such as quotes around it.
fn odd(rng: &mut Rng, path: &str) -> String {
    match rng.usize(..18) {
        14 => format!("File: {path}"),
        15 => format!("# {path}"),
        16 => format!("{path}#L1-L5"),
        17 => format!("https://github.com/a/b/blob/main/{path}"),
        0 => format!("`{path}`"),
        1 => format!("\"{path}\""),
        2 => format!("'{path}'"),
        3 => format!("{path} "),
        4 => format!("{path}\n"),
        5 => path.replace('/', "\\"),
        6 => format!("C:\\{}", path.replace('/', "\\")),
        7 => format!("[{path}]({path})"),
        8 => format!("{path} ***"),
        9 => format!("**{path}**"),
        10 => format!(" {path}"),
        11 => format!("{path}:12"),
        12 => format!("{path}</filePath>"),
        _ => format!("file://{path}"),
    }
}

/// A new file would be created at a path with a mistake.
fn odd_new_path(rng: &mut Rng) -> Case {
    let path = format!("src/{}_{}.rs", pick(rng, &["new", "table", "reader"]), rng.u16(..));
    let given = odd(rng, &path);
    let (tool, input) = create(rng, &given, "fn a() {}\n");
    Case::new("an odd path of a new file", tool, input, refusal(&[&path, "Nothing was written"]))
        .file("src/main.rs", "fn main() {}\n")
}

/// A new file is created at an unusual path that is not a mistake.
fn plausible_new_path(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let path = pick(
        rng,
        &[
            "app/[slug]/page",
            "app/(group)/@modal/page",
            "routes/$id",
            "[...all]",
            "+page",
            "my file",
            "don't",
            "report (1)",
            "a&b=c",
            "日本語",
            "naïve",
            "v1.2",
            ".hidden",
            "@types/index",
        ],
    );
    let path = format!("{path}_{number}.ts");
    let (tool, input) = create(rng, &path, "export {};\n");
    Case::new("a plausible path", tool, input, change(&path, "export {};\n"))
        .file("src/main.rs", "fn main() {}\n")
}

/// The path looks like a mistake, but a file with this name exists.
fn odd_existing_path(rng: &mut Rng) -> Case {
    let name = format!("file_{}.txt", rng.u16(..));
    let given = match rng.usize(..4) {
        0 => format!("`{name}`"),
        1 => format!("{name} "),
        2 => format!("a\\{name}"),
        _ => format!("{name}:12"),
    };
    let (tool, input) = match rng.bool() {
        true => ("edit", json!({"filePath": given, "oldString": "one", "newString": "two"})),
        false => ("write", json!({"filePath": given, "content": "two\n"})),
    };
    Case::new("an odd name exists", tool, input, change(&given, "two\n")).file(&given, "one\n")
}

/// The path has a mistake; corrected, it names an existing file.
fn mistaken_path_of_an_existing_file(rng: &mut Rng) -> Case {
    let path = format!("src/part_{}.txt", rng.u16(..));
    let given = match rng.usize(..20) {
        18 => format!("@{path}"),
        19 => format!("a/{path}"),
        _ => odd(rng, &path),
    };
    let tool = pick(rng, &["edit", "read"]);
    let input = match tool {
        "edit" => json!({"filePath": given, "oldString": "one", "newString": "two"}),
        _ => json!({"filePath": given}),
    };
    Case::new(
        "an odd path of an existing file",
        tool,
        input,
        refusal(&[&format!("Did you mean {path}?")]),
    )
    .file(&path, "one\n")
}

/// The file exists in another folder.
fn wrong_folder(rng: &mut Rng) -> Case {
    let name = format!("unique_{}.rs", rng.u16(..));
    let existing = format!("crates/core/src/{name}");
    let given = pick(rng, &["src", "lib", "crates/core", "."]).to_owned() + "/" + &name;
    let input = json!({"filePath": given, "oldString": "one", "newString": "two"});
    Case::new("the file is in another folder", "edit", input, refusal(&[&existing]))
        .file(&existing, "one\n")
        .file("src/other.rs", "x\n")
        .file("lib/other.rs", "x\n")
}

/// The new name looks the same as an existing one, but has different characters.
fn look_alike(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let (existing, given) = [
        (format!("Note\u{a0}{number}.txt"), format!("Note {number}.txt")),
        (format!("cafe\u{301}{number}.txt"), format!("caf\u{e9}{number}.txt")),
        (format!("it\u{2019}s{number}.txt"), format!("it's{number}.txt")),
    ][rng.usize(..3)]
    .clone();
    let input = json!({"filePath": given, "content": "two\n"});
    Case::new("a name looks like another", "write", input, refusal(&["looks like"]))
        .file(&existing, "one\n")
}
