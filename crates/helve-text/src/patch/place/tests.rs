//! Tests that apply hunks to files.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{AppliedPatch, PlacementError, PlacementProblem, apply_to};
use crate::{
    edit::TextKind,
    patch::{FilePatch, PatchHunk, parse},
    view::{LineEnding, View},
};

/// Applies hunks to a file of unknown kind.
fn apply_with_unknown_kind(
    view: &View<'_>,
    hunks: &[PatchHunk],
) -> Result<AppliedPatch, PlacementError> {
    apply_to(view, hunks, TextKind::Unknown)
}

/// Parses the hunks of a patch of one file, in either format. In the `apply_patch` format, the header is added here.
fn hunks(patch: &str) -> Vec<PatchHunk> {
    let text = match patch.starts_with("--- ") {
        true => patch.to_owned(),
        false => format!(
            "*** Begin Patch\n*** Update File: f\n{}\n*** End Patch",
            patch.strip_suffix('\n').unwrap_or(patch)
        ),
    };
    match parse(&text).unwrap().files.pop() {
        Some(FilePatch::Update { hunks, .. }) => hunks,
        other => panic!("{other:?}"),
    }
}

fn patched(file: &str, patch: &str) -> Result<String, PlacementError> {
    let view = View::new(file.as_bytes()).unwrap();
    Ok(String::from_utf8(apply_with_unknown_kind(&view, &hunks(patch))?.bytes).unwrap())
}

/// Applies a patch, and compares the result with the expectation. `|` stands for a newline.
#[track_caller]
fn check(file: &str, patch: &str, expect: Expect) {
    expect.assert_eq(&match patched(file, patch) {
        Ok(text) => text.replace('\r', "␍").replace('\n', "|"),
        Err(PlacementError { hunk, problem, .. }) => match problem {
            PlacementProblem::NotFound(Some(near)) => {
                format!("hunk {hunk}: not found, near line {}", near.first_line)
            }
            problem => format!("hunk {hunk}: {problem:?}"),
        },
    });
}

#[test]
fn exact_hunks_are_applied() {
    check("a\nb\nc\n", " a\n-b\n+B\n c", expect!["a|B|c|"]);
    check("a\nb\nc\nd\ne\n", "@@\n-b\n+B\n@@\n-d\n+D", expect!["a|B|c|D|e|"]);
    check("a\nb\nc\n", " a\n-b\n c", expect!["a|c|"]);
    check("only\n", "-only", expect![[""]]);
    check("p\nq\n", "-p\n+P\n+PP\n q", expect!["P|PP|q|"]);
    check("  foo\nbar\nfoo\nbar\n", "-foo\n+FOO\n bar", expect!["  foo|bar|FOO|bar|"]);
    check("naïve\n日本\n", "-日本\n+🦀", expect!["naïve|🦀|"]);
}

#[test]
fn lines_that_are_in_the_file_in_part_have_a_diagnosis() {
    check(
        "a: 1\nimage: p:16-alpine\n",
        "-image: p:16\n+image: p:16-alpine",
        expect!["hunk 0: AlreadyApplied { line: 2 }"],
    );
    check(
        "a: 1\nimage: p:16-alpine\n",
        "-image: p:16\n+image: p:17",
        expect!["hunk 0: not found, near line 2"],
    );
}

#[test]
fn added_lines_are_inserted_after_their_hint_or_context() {
    check("a\nfn foo\nb\nc\n", "@@ fn foo\n+INSERTED", expect!["a|fn foo|INSERTED|b|c|"]);
    check("a\nb\n", "@@\n+end", expect!["a|b|end|"]);
    check("", "+first", expect!["first|"]);
    check("a\nb\nc\n", " a\n+x\n b", expect!["a|x|b|c|"]);
    check("a\nb\n", "+x\n b", expect!["a|x|b|"]);
    check("a\nb\n", "@@ a\n+x\n*** End of File", expect!["a|b|x|"]);
    check("a\nf\nb\nf\n", "@@ f\n+x", expect!["hunk 0: Ambiguous { lines: [3, 5], count: 2 }"]);
    check("a\n", "@@ nowhere\n+x", expect![[r#"hunk 0: HintNotFound("nowhere")"#]]);
    check("a\nb\n", "--- f\n+++ f\n@@ -0,0 +1 @@\n+x\n", expect!["x|a|b|"]);
    check("a\nb\n", "--- f\n+++ f\n@@ -1,0 +2 @@\n+x\n", expect!["hunk 0: NoContext"]);
}

#[test]
fn hints_narrow_down_the_position() {
    let two_functions = "def a():\n    x = 1\n    y\n\ndef b():\n    x = 1\n    y\n";
    check(
        two_functions,
        "@@ def b():\n-    x = 1\n+    x = 2",
        expect!["def a():|    x = 1|    y||def b():|    x = 2|    y|"],
    );
    check(
        two_functions,
        "@@ def a():\n-    x = 1\n+    x = 2",
        expect!["def a():|    x = 2|    y||def b():|    x = 1|    y|"],
    );
    check(
        two_functions,
        "@@ def b\n def b():\n-    x = 1\n+    x = 2",
        expect!["def a():|    x = 1|    y||def b():|    x = 2|    y|"],
    );
    check(
        two_functions,
        "@@\n-    x = 1\n+    x = 2",
        expect!["hunk 0: Ambiguous { lines: [2, 6], count: 2 }"],
    );
    check(two_functions, "@@ def a():\n-    z\n+    x = 2", expect!["hunk 0: NotFound(None)"]);
    check(
        two_functions,
        "@@ def c():\n-    y\n+    x = 2",
        expect![[r#"hunk 0: HintNotFound("def c():")"#]],
    );
    let nested = "class A\n  def f\n    x\n  end\nend\nclass B\n  def f\n    x\n  end\nend\n";
    check(
        nested,
        "@@ class B\n@@   def f\n-    x\n+    y",
        expect!["class A|  def f|    x|  end|end|class B|  def f|    y|  end|end|"],
    );
    check(
        nested,
        "@@ class A\n@@ def f\n-    x\n+    y",
        expect!["class A|  def f|    y|  end|end|class B|  def f|    x|  end|end|"],
    );
    check(
        nested,
        "@@ def f\n-    x\n+    y",
        expect!["hunk 0: Ambiguous { lines: [3, 8], count: 2 }"],
    );
    check(
        two_functions,
        "@@ def a():\n-def b():\n+def c():",
        expect!["def a():|    x = 1|    y||def c():|    x = 1|    y|"],
    );
    check(
        two_functions,
        "@@ def a():\n-def  b():\n+def c():",
        expect!["hunk 0: not found, near line 5"],
    );
    check("import a\nuse(b)\n", "@@ import a\n-use(b)\n+use(c)", expect!["import a|use(c)|"]);
    check(
        "fn f()\n{\n  x\n}\nfn g()\n{\n  x\n}\n",
        "@@ fn f()\n-  x\n+  y",
        expect!["fn f()|{|  y|}|fn g()|{|  x|}|"],
    );
}

#[test]
fn hunks_at_the_end_of_the_file_are_placed() {
    check("x\ny\nz\nw\n", "-y\n+Y\n*** End of File", expect!["hunk 0: NotAtEnd { line: 2 }"]);
    check("x\ny\nx\ny\n", " x\n-y\n+Y\n*** End of File", expect!["x|y|x|Y|"]);
    check("one\ntwo", " one\n-two\n+TWO\n\n", expect!["one|TWO|"]);
    check("one\ntwo", "-one\n+ONE\n two", expect!["ONE|two"]);
    check("one\ntwo", " two\n+three", expect!["one|two|three|"]);
    check("one\ntwo", "-two", expect!["one|"]);
    check(
        "a\nb\n",
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n",
        expect!["a|b"],
    );
    check(
        "a\nb",
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
        expect!["a|b|"],
    );
    check(
        "a\nb",
        "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n",
        expect!["a|b|c"],
    );
}

#[test]
fn hunks_are_placed_in_the_order_of_the_patch() {
    check("1\n2\n3\n", "@@\n-3\n+c\n@@\n-1\n+a", expect!["hunk 1: OutOfOrder { line: 1 }"]);
    check(
        "x = 1\nend\nx = 1\nend\n",
        "-x = 1\n+x = 2",
        expect!["hunk 0: Ambiguous { lines: [1, 3], count: 2 }"],
    );
    check(
        "x = 1\nend\nx = 1\nend\n",
        "-x = 1\n+x = 2\n@@\n-x = 1\n+x = 3",
        expect!["x = 2|end|x = 3|end|"],
    );
    check("x\na\nx\nb\nx\n", "@@\n-a\n+A\n@@\n-b\n+B\n@@\n-x\n+X", expect!["x|A|x|B|X|"]);
    check(
        "x\na\nx\nb\nx\n",
        "@@\n-a\n+A\n@@\n-x\n+X",
        expect!["hunk 1: Ambiguous { lines: [3, 5], count: 2 }"],
    );
    check("a\nb\nc\n", "@@\n-a\n+A\n b\n@@\n b\n-c\n+C", expect!["A|b|C|"]);
}

#[test]
fn line_numbers_only_decide_between_equal_matches() {
    let file = "x\n1\nx\n2\nx\n";
    check(file, "--- f\n+++ f\n@@ -3 +3 @@\n-x\n+y\n", expect!["x|1|y|2|x|"]);
    check(
        file,
        "--- f\n+++ f\n@@ -2 +2 @@\n-x\n+y\n",
        expect!["hunk 0: Ambiguous { lines: [1, 3, 5], count: 3 }"],
    );
    check(file, "--- f\n+++ f\n@@ -9 +9 @@\n-2\n+y\n", expect!["x|1|x|y|x|"]);
    // The first hunk shows that the file has changed, so the line number of the second hunk is unreliable.
    check(
        file,
        "--- f\n+++ f\n@@ -1 +1 @@\n-1\n+y\n@@ -3 +3 @@\n-x\n+y\n",
        expect!["hunk 1: Ambiguous { lines: [3, 5], count: 2 }"],
    );
}

#[test]
fn white_space_and_typography_are_tolerated() {
    check("a  \nb\t\nc\n", " a\n-b\n+B\n c", expect!["a  |B|c|"]);
    check(
        "\tif x:\n\t\treturn 1\n",
        " if x:\n-    return 1\n+    return 2",
        expect!["	if x:|		return 2|"],
    );
    check(
        "  if (x) {\n    y();\n  }\n",
        " if (x) {\n+  z();\n   y();\n }",
        expect!["  if (x) {|    z();|    y();|  }|"],
    );
    check("a — b\nz\n", "-a - b\n+A\n z", expect!["A|z|"]);
    check("a\n\nb\n", " a\n-b\n+B", expect!["hunk 0: not found, near line 1"]);
    check("\nz\n", "\n\n\n+x\n\n", expect!["|x|z|"]);
    check("a\nb\nc\n", "\n a\n-b\n+B\n\n", expect!["a|B|c|"]);
    check(" x\n-\n\tx\n", "-x\n+y", expect!["hunk 0: Ambiguous { lines: [1, 3], count: 2 }"]);
    check("foo(a,  b)\n", "-foo(a, b)\n+foo(a)", expect!["foo(a)|"]);
}

#[test]
fn lines_that_are_not_found_are_reported() {
    check("alpha\nbeta\ngamma\n", " alpha\n-beto\n+B", expect!["hunk 0: not found, near line 1"]);
    check(&"\n".repeat(99), "-'\n+y", expect!["hunk 0: Refused { line: 1, refusal: EmptyFile }"]);
    check("", "-x\n+y", expect!["hunk 0: Refused { line: 1, refusal: EmptyFile }"]);
    check("a\n", "-x\n-y\n-z\n", expect!["hunk 0: NotFound(None)"]);
    check("\n\n\n", " \n+x", expect!["hunk 0: Ambiguous { lines: [2, 3, 4], count: 3 }"]);
}

#[test]
fn new_lines_take_the_ending_of_their_neighbours() {
    check("a\r\nb\r\n", "-a\n+A\n+AA\n b", expect!["A␍|AA␍|b␍|"]);
    check("a\r\nb\nc\r\n", "-b\n+B", expect!["a␍|B|c␍|"]);
    check("a\nb\r\nc\n", " a\n+x\n b", expect!["a|x|b␍|c|"]);
    check("a\r\nb", " b\n+c", expect!["a␍|b␍|c␍|"]);
    check("a\rb\r", "-b\n+c", expect!["a␍c␍"]);
}

#[test]
fn hunks_apply_to_other_encodings() {
    let utf16_bytes = |text: &str| {
        [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect::<Vec<u8>>()
    };
    let (old, new) = (utf16_bytes("é\r\nb\r\n"), utf16_bytes("é\r\nç\r\nx\r\n"));
    let view = View::new(&old).unwrap();
    assert_eq!(apply_with_unknown_kind(&view, &hunks(" é\n-b\n+ç\n+x")).unwrap().bytes, new);
    let latin = b"caf\xe9 cr\xe8me br\xfbl\xe9e d\xe9j\xe0 vu\nb\n";
    let view = View::new(latin).unwrap();
    let placement_error = apply_with_unknown_kind(&view, &hunks("-b\n+日本")).unwrap_err();
    assert!(
        matches!(placement_error.problem, PlacementProblem::CannotEncode { character: '日', .. }),
        "{placement_error:?}"
    );
}

#[test]
fn hunks_of_repetitive_files_are_refused() {
    let file = "}\n".repeat(20_000);
    let patch = " }\n".repeat(2_000) + "-}\n+]\n@@\n-}\n+]";
    assert!(matches!(
        patched(&file, &patch),
        Err(PlacementError {
            problem: PlacementProblem::TooLarge | PlacementProblem::Ambiguous { .. },
            ..
        })
    ));
    let file = " }\n".repeat(200_000);
    assert!(matches!(
        patched(&file, "-}\n+]"),
        Err(PlacementError { problem: PlacementProblem::Ambiguous { count: 200_000, .. }, .. })
    ));
}

/// One line of an edit script.
#[derive(Debug, Clone)]
enum Step {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Step {
    fn line(&self) -> &str {
        match self {
            Step::Keep(line) | Step::Remove(line) | Step::Add(line) => line,
        }
    }
}

/// Generates an edit script with at least one change.
fn script() -> impl Strategy<Value = Vec<Step>> {
    let line = "[ab]?|[a-c ]{0,3}";
    let change = || prop_oneof![line.prop_map(Step::Remove), line.prop_map(Step::Add)];
    let step = prop_oneof![2 => line.prop_map(Step::Keep), 1 => change()];
    let steps = || prop::collection::vec(step.clone(), 0..12);
    (steps(), change(), steps())
        .prop_map(|(before, change, after)| [before, vec![change], after].concat())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum PatchFormat {
    Unified,
    ApplyPatch,
}

/// A file before and after a script, and the patch between them.
struct Case {
    old: String,
    new: String,
    patch: String,
}

/// Builds a test case. `lacks_newline` says for the old and the new file whether it lacks a final newline.
fn case(script: &[Step], context: usize, format: PatchFormat, lacks_newline: (bool, bool)) -> Case {
    let is_old = |step: &Step| !matches!(step, Step::Add(_));
    let is_new = |step: &Step| !matches!(step, Step::Remove(_));
    // An empty last line without a newline would not be a line.
    let can_lack_newline = |side: &dyn Fn(&Step) -> bool| {
        script.iter().rfind(|step| side(step)).is_some_and(|step| !step.line().is_empty())
    };
    let is_kept = matches!(script.last(), Some(Step::Keep(_)));
    let old_lacks_newline = lacks_newline.0 && can_lack_newline(&is_old);
    let new_lacks_newline = match format {
        PatchFormat::Unified => lacks_newline.1 && can_lack_newline(&is_new),
        PatchFormat::ApplyPatch => old_lacks_newline && is_kept,
    };
    let script = match format {
        PatchFormat::Unified => split_last_line(script, old_lacks_newline, new_lacks_newline),
        PatchFormat::ApplyPatch => script.to_vec(),
    };
    let text = |side: &dyn Fn(&Step) -> bool, lacks_newline: bool| {
        let text: String = script
            .iter()
            .filter(|step| side(step))
            .map(|step| format!("{}\n", step.line()))
            .collect();
        if lacks_newline { text[..text.len() - 1].to_owned() } else { text }
    };
    let count = |side: &dyn Fn(&Step) -> bool| script.iter().filter(|step| side(step)).count();
    let patch = render_patch(
        &script,
        context,
        format,
        (old_lacks_newline, count(&is_old)),
        (new_lacks_newline, count(&is_new)),
    );
    Case { old: text(&is_old, old_lacks_newline), new: text(&is_new, new_lacks_newline), patch }
}

/// If a context line ends with a newline on only one side, replaces it with a removal and an addition.
fn split_last_line(script: &[Step], old_lacks_newline: bool, new_lacks_newline: bool) -> Vec<Step> {
    let last_old = script.iter().rposition(|step| !matches!(step, Step::Add(_)));
    let last_new = script.iter().rposition(|step| !matches!(step, Step::Remove(_)));
    let differs = |n: usize| {
        (old_lacks_newline && last_old == Some(n)) != (new_lacks_newline && last_new == Some(n))
    };
    let split = |(n, step): (usize, &Step)| match step {
        Step::Keep(line) if differs(n) => vec![Step::Remove(line.clone()), Step::Add(line.clone())],
        step => vec![step.clone()],
    };
    script.iter().enumerate().flat_map(split).collect()
}

/// Renders a script as a patch. `old` and `new` say whether that side lacks a final newline, and its number of lines.
fn render_patch(
    script: &[Step],
    context: usize,
    format: PatchFormat,
    old: (bool, usize),
    new: (bool, usize),
) -> String {
    let is_near = |n: usize| {
        let near = n.saturating_sub(context)..(n + context + 1).min(script.len());
        script[near].iter().any(|step| !matches!(step, Step::Keep(_)))
    };
    let mut patch =
        if format == PatchFormat::Unified { "--- f\n+++ f\n".to_owned() } else { String::new() };
    let (mut old_at, mut new_at) = (0, 0);
    let mut n = 0;
    while n < script.len() {
        if !is_near(n) {
            n += 1;
            old_at += 1;
            new_at += 1;
            continue;
        }
        let from = (old_at, new_at);
        let mut body = String::new();
        while n < script.len() && is_near(n) {
            let (sign, sides) = match &script[n] {
                Step::Keep(_) => (' ', (1, 1)),
                Step::Remove(_) => ('-', (1, 0)),
                Step::Add(_) => ('+', (0, 1)),
            };
            old_at += sides.0;
            new_at += sides.1;
            body.push_str(&format!("{sign}{}\n", script[n].line()));
            let ends = |line_count: usize, at: usize, (lacks_newline, count): (bool, usize)| {
                lacks_newline && line_count == 1 && at == count
            };
            if format == PatchFormat::Unified
                && (ends(sides.0, old_at, old) || ends(sides.1, new_at, new))
            {
                body.push_str("\\ No newline at end of file\n");
            }
            n += 1;
        }
        let span = |from: usize, to: usize| {
            if to == from { format!("{from},0") } else { format!("{},{}", from + 1, to - from) }
        };
        match format {
            PatchFormat::Unified => patch.push_str(&format!(
                "@@ -{} +{} @@\n{body}",
                span(from.0, old_at),
                span(from.1, new_at)
            )),
            PatchFormat::ApplyPatch => patch.push_str(&format!("@@\n{body}")),
        }
    }
    patch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_diff_turns_old_into_new(script in script(), context in 0..4_usize, lacks_newline: (bool, bool)) {
        let case = case(&script, context, PatchFormat::Unified, lacks_newline);
        match patched(&case.old, &case.patch) {
            Ok(text) => prop_assert_eq!(text, case.new, "{}", case.patch),
            Err(PlacementError { problem: PlacementProblem::NoContext, .. }) if context == 0 => {}
            Err(placement_error) => return Err(TestCaseError::fail(format!("{placement_error:?}\n{}", case.patch))),
        }
    }

    #[test]
    fn an_apply_patch_patch_turns_old_into_new_or_is_ambiguous(script in script(), context in 1..4_usize, lacks_newline: bool) {
        let case = case(&script, context, PatchFormat::ApplyPatch, (lacks_newline, false));
        match patched(&case.old, &case.patch) {
            Ok(text) => prop_assert_eq!(text, case.new, "{}", case.patch),
            Err(PlacementError { problem: PlacementProblem::Ambiguous { .. }, .. }) => {}
            Err(placement_error) => return Err(TestCaseError::fail(format!("{placement_error:?}\n{}", case.patch))),
        }
    }

    #[test]
    fn unchanged_lines_keep_their_bytes(file in file(), script in script(), context in 0..3_usize) {
        let case = case(&script, context, PatchFormat::ApplyPatch, (false, false));
        let view = View::new(file.as_bytes()).unwrap();
        let Ok(applied) = apply_with_unknown_kind(&view, &hunks(&case.patch)) else { return Ok(()) };
        let after = View::new(&applied.bytes).unwrap();
        let mut at = (0, 0);
        for changed in &applied.changed_lines {
            let (before, now) = (at.0..changed.before.start - 1, at.1..changed.after.start - 1);
            prop_assert_eq!(before.len(), now.len());
            for (old_index, new) in before.zip(now) {
                prop_assert_eq!(view.line(old_index), after.line(new));
                prop_assert!(view.ending(old_index) == after.ending(new) || view.ending(old_index) == LineEnding::None);
            }
            at = (changed.before.end - 1, changed.after.end - 1);
        }
        prop_assert_eq!(&view.text()[start(&view, at.0)..], &after.text()[start(&after, at.1)..]);
    }
}

fn file() -> impl Strategy<Value = String> {
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    let line = ("[ab]?|[a-c \t“'-]{0,4}", ending).prop_map(|(line, ending)| line + ending);
    (prop::collection::vec(line, 0..12), "[ab]?").prop_map(|(lines, last)| lines.concat() + &last)
}

fn start(view: &View<'_>, line: usize) -> usize {
    if line < view.line_count() { view.text_range(line).start } else { view.text().len() }
}

#[test]
fn invalid_bytes_of_a_changed_line_are_kept() {
    let file = b"caf\xe9 \xff one\ntwo\n";
    let view = View::new(file).unwrap();
    let shown = view.line(0).to_string();
    let patch =
        format!("*** Begin Patch\n*** Update File: a\n-{shown}\n+{shown} more\n*** End Patch");
    let files = parse(&patch).unwrap().files;
    let FilePatch::Update { hunks, .. } = &files[0] else { panic!("{files:?}") };
    let bytes = apply_with_unknown_kind(&view, hunks).unwrap().bytes;
    assert_eq!(bytes.escape_ascii().to_string(), r"caf\xe9 \xff one more\ntwo\n");
}

#[test]
fn a_hunk_is_not_placed_outside_its_hint() {
    let file = "def f():\n  q\ndef g():\n  x\n";
    check(file, "@@ def f():\n-  x\n+  y", expect!["hunk 0: NotFound(None)"]);
    // The hunk quotes `def g():` itself, so the hint `def f():` need not contain it.
    check(file, "@@ def f():\n def g():\n-  x\n+  y", expect!["def f():|  q|def g():|  y|"]);
}

#[test]
fn placeholders_are_not_written() {
    check(
        "a\nb\n",
        " a\n-b\n+// ... existing code ...",
        expect![[
            r#"hunk 0: Refused { line: 2, refusal: Faulty(Placeholder { text: "// ... existing code ..." }) }"#
        ]],
    );
}

#[test]
fn the_final_newline_is_kept_if_the_patch_marks_both_sides_as_without_one() {
    let patch = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n";
    check("x\ny\n", patch, expect!["x|z|"]);
    check("x\ny", patch, expect!["x|z"]);
}
