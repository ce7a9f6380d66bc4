//! Tests of properties that every edit of every file has.

use proptest::prelude::*;

use crate::{edit::*, view::View};

/// The encoding of a generated text.
#[derive(Debug, Clone, Copy)]
enum FileEncoding {
    Utf8,
    Utf8WithBom,
    Latin1,
    Utf16,
}

fn encoding() -> impl Strategy<Value = FileEncoding> {
    prop_oneof![4 => Just(FileEncoding::Utf8), 1 => Just(FileEncoding::Utf8WithBom), 1 => Just(FileEncoding::Latin1), 1 => Just(FileEncoding::Utf16)]
}

fn bytes(text: &str, encoding: FileEncoding) -> Vec<u8> {
    match encoding {
        FileEncoding::Utf8 => text.as_bytes().to_vec(),
        FileEncoding::Utf8WithBom => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        FileEncoding::Latin1 => text
            .chars()
            .map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?'))
            .collect(),
        FileEncoding::Utf16 => "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect(),
    }
}

/// Generates a file from few different words, so that lines repeat, and with mixed line endings.
fn file() -> impl Strategy<Value = String> {
    let lead = prop::sample::select(vec!["", "  ", "    ", "      ", "\t", "\t\t"]);
    let word =
        prop::sample::select(vec!["a", "b", "“", "é", "foo", "bar(1)", "\"x\"", " ", "  ", "\t"]);
    let ending = prop::sample::select(vec!["\n", "\n", "\n", " \n", "\r\n", "\r\n"]);
    let line = (lead, prop::collection::vec(word, 0..5), ending);
    let last = prop::sample::select(vec!["", "", "foo", "é "]);
    (prop::collection::vec(line, 1..40), last).prop_map(|(lines, last)| {
        let lines = lines
            .into_iter()
            .map(|(lead, words, ending)| format!("{lead}{}{ending}", words.concat()));
        lines.collect::<String>() + last
    })
}

/// Generates a file with up to two bytes that are invalid in UTF-8.
fn damaged_file() -> impl Strategy<Value = Vec<u8>> {
    (file(), prop::collection::vec((any::<prop::sample::Index>(), 0x80..=0xff_u8), 0..3)).prop_map(
        |(text, bad)| {
            let mut bytes = text.into_bytes();
            for (at, byte) in bad {
                let at = at.index(bytes.len());
                bytes.insert(at, byte);
            }
            bytes
        },
    )
}

/// Quotes some lines of a text inexactly. Whether the quote is tolerated depends on the kind of deviation.
fn inexact_quote(text: &str, at: usize, length: usize, deviation: usize) -> String {
    let lines: Vec<&str> = text.split('\n').skip(at).take(length).collect();
    match deviation {
        0 => lines.join("\n"),
        1 => lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
        2 => lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n"),
        3 => lines.join("\n").replace("  ", " "),
        4 => lines.join("\n").replace('“', "\""),
        5 => lines.join("\\n"),
        _ => lines.join("\n").replace("foo", "fou"),
    }
}

/// Returns all lines outside the changed ranges, each with its ending. An empty last line is ignored.
fn unchanged_lines(bytes: &[u8], changed_lines: &[Range<usize>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let view = View::new(bytes).expect("text");
    let outside = (0..view.line_count())
        .filter(|index| !changed_lines.iter().any(|lines| lines.contains(&(index + 1))));
    let mut lines: Vec<(Vec<u8>, Vec<u8>)> = outside
        .map(|index| {
            let (line, whole) = (view.byte_range(index), view.whole_range(index));
            (bytes[line.clone()].to_vec(), bytes[line.end..whole.end].to_vec())
        })
        .collect();
    lines.pop_if(|(last, _)| last.is_empty());
    lines
}

/// Checks that an edit keeps all lines outside the changed ranges.
fn check_unchanged_lines(before: &[u8], applied: &AppliedEdit) {
    let changed_lines = &applied.change.changed_lines;
    let old = unchanged_lines(
        before,
        &changed_lines.iter().map(|lines| lines.before.clone()).collect::<Vec<_>>(),
    );
    let new = unchanged_lines(
        &applied.bytes,
        &changed_lines.iter().map(|lines| lines.after.clone()).collect::<Vec<_>>(),
    );
    assert_eq!(old.len(), new.len());
    for ((old, old_ending), (new, new_ending)) in old.into_iter().zip(new) {
        assert_eq!(old, new);
        // The old last line may need an ending now, and the new last line may have lost its ending.
        assert!(old_ending == new_ending || old_ending.is_empty() || new_ending.is_empty());
    }
    assert_ne!(before, applied.bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 10_000, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn an_exact_edit_replaces_a_substring(file in file(), encoding in encoding(), at in any::<prop::sample::Index>(), length in 1..30_usize, new in "[a-c\n“]{0,9}", all: bool) {
        let bytes = bytes(&file, encoding);
        let view = View::new(&bytes).expect("text");
        let text = view.text();
        let char_starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let start = char_starts[at.index(char_starts.len())];
        let old: String = text[start..].chars().take(length).collect();
        let count = (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(old.as_bytes())).count();
        match apply(&bytes, &Edit { old: &old, new: &new, all, kind: TextKind::Unknown }, MatchPolicy::Exact) {
            Ok(applied) => {
                prop_assert!(all || count == 1);
                let keeps_ending = old.ends_with('\n') && !new.is_empty() && !new.ends_with('\n');
                let naive = text.replace(&old, &if keeps_ending { format!("{new}\n") } else { new });
                let after = view.decode(&applied.bytes[view.bom_len()..]).replace("\r\n", "\n");
                // A line break at the start of `old` is kept if the lines are not meant to be joined.
                prop_assert!(after == naive || old.starts_with('\n'));
                check_unchanged_lines(&bytes, &applied);
            }
            Err(EditRefusal::Ambiguous { .. }) => prop_assert!(count > 1),
            Err(EditRefusal::CannotEncode { character, .. }) => prop_assert!(new.contains(character) || text.contains(character)),
            Err(EditRefusal::Same) => prop_assert_eq!(old, new),
            Err(EditRefusal::Blank) => prop_assert!(old.trim().is_empty()),
            Err(EditRefusal::CutWord { word, .. }) => prop_assert!(text.contains(&word)),
            Err(EditRefusal::AlreadyApplied { .. }) => prop_assert!(text.contains(new.trim_matches('\n'))),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn other_lines_keep_their_bytes(file in damaged_file(), at in 0..30_usize, length in 1..6_usize, deviation in 0..7_usize, change in 0..6_usize, all: bool) {
        let view = View::new(&file).expect("text");
        let old = inexact_quote(view.text(), at, length, deviation);
        let new = match change {
            0 => old.replacen("foo", "qux", 1),
            1 => format!("{old}\nadded();"),
            2 => format!("first\n{old}"),
            3 => old.lines().skip(1).collect::<Vec<_>>().join("\n"),
            4 => old.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n") + "\nend",
            _ => String::new(),
        };
        if let Ok(applied) = apply(&file, &Edit { old: &old, new: &new, all, kind: TextKind::Unknown }, MatchPolicy::Tolerant) {
            check_unchanged_lines(&file, &applied);
        }
    }

    #[test]
    fn shifted_indentation_gives_the_same_result(file in file(), at in 0..30_usize, length in 1..6_usize, after in 0..6_usize) {
        // A number on every line makes the lines unique.
        let file: String = file.split_inclusive('\n').enumerate().map(|(index, line)| match line.trim_end() {
            "" => line.to_owned(),
            body => line.replacen(body, &format!("{body} #{index};"), 1),
        }).collect();
        let view = View::new(file.as_bytes()).expect("text");
        let lines: Vec<&str> = view.text().split('\n').skip(at).take(length).filter(|line| !line.trim().is_empty()).collect();
        prop_assume!(!lines.is_empty() && view.text().contains(&lines.join("\n")));
        let after = after.min(lines.len() - 1);
        let added = lines[after].replace('#', "#added ");
        let mut new = lines.clone();
        new.insert(after + 1, &added);
        let shift = |lines: &[&str]| lines.iter().map(|line| format!("   {line}")).collect::<Vec<_>>().join("\n");
        let unshifted = apply(file.as_bytes(), &Edit { old: &lines.join("\n"), new: &new.join("\n"), all: false, kind: TextKind::Unknown }, MatchPolicy::Tolerant).expect("the exact edit applies");
        let shifted = apply(file.as_bytes(), &Edit { old: &shift(&lines), new: &shift(&new), all: false, kind: TextKind::Unknown }, MatchPolicy::Tolerant).expect("the shifted edit applies");
        prop_assert_eq!(String::from_utf8_lossy(&unshifted.bytes), String::from_utf8_lossy(&shifted.bytes));
    }

    #[test]
    fn large_files_are_edited(files in prop::collection::vec(damaged_file(), 4), times in 20..80_usize, deviation in 0..3_usize) {
        let unit = [&files[0][..], b"\n", &files[1], b"\n"].concat();
        let half = unit.repeat(times);
        let marked = b"\n  if only_here {  \r\n    \xff old(1);\r\n  }\r\n";
        let file = [&half[..], marked, &half].concat();
        let old = ["  if only_here {  \n", "  if only_here {\n", "      if only_here {\n"][deviation];
        let new = format!("{old}{}    added();\n", &old[..old.len() - old.trim_start().len()]);
        let applied = apply(&file, &Edit { old, new: &new, all: false, kind: TextKind::Unknown }, MatchPolicy::Tolerant).expect("the edit matches once");
        let line = b"      added();\r\n";
        let at = half.len() + b"\n  if only_here {  \r\n".len();
        prop_assert_eq!(&applied.bytes[..at], &file[..at]);
        prop_assert_eq!(&applied.bytes[at..at + line.len()], line);
        prop_assert_eq!(&applied.bytes[at + line.len()..], &file[at..]);
    }

    #[test]
    fn files_up_to_a_megabyte_are_edited(power in 0..=20_u32, more in 0..1000_usize, encoding in encoding(), at in any::<prop::sample::Index>(), endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", " \n", "\t\r\n"]), 1..7), bad in any::<bool>(), new in "[a-z]{0,9}(\n[a-z]{0,9}){0,2}") {
        let (size, mut text, mut lines) = ((1usize << power) * (1000 + more) / 1000, String::new(), 0);
        while text.len() < size {
            text.push_str(&format!("line {lines} é{}", endings[lines % endings.len()]));
            lines += 1;
        }
        text.truncate(text.floor_char_boundary(size.max(1)));
        let mut file = bytes(&text, encoding);
        if bad && matches!(encoding, FileEncoding::Utf8 | FileEncoding::Utf8WithBom) {
            file.extend_from_slice(b"\n\xff\xfe");
        }
        let view = View::new(&file).expect("text");
        let index = at.index(view.line_count());
        let old = view.line(index).to_string();
        prop_assume!(!old.trim().is_empty() && old != new);
        match apply(&file, &Edit { old: &old, new: &new, all: false, kind: TextKind::Unknown }, MatchPolicy::Tolerant) {
            Ok(applied) => {
                let line = view.byte_range(index);
                prop_assert!(applied.bytes.starts_with(&file[..line.start]));
                prop_assert!(applied.bytes.ends_with(&file[line.end..]));
                let between = &applied.bytes[line.start..applied.bytes.len() - (file.len() - line.end)];
                // A file that ends in the middle of its only line break has a different kind of line ending.
                prop_assert_eq!(view.decode(between).replace("\r\n", "\n").replace('\r', "\n"), new);
            }
            Err(EditRefusal::Ambiguous { .. }) => prop_assert!(view.text().matches(&old).count() > 1),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn any_edit_is_applied_or_refused_without_panic(file in prop::collection::vec(any::<u8>(), 0..300), old in "\\PC{0,20}|[ \n\\\\nt\"1:|]{1,12}", new in "\\PC{0,20}", all: bool) {
        for policy in [MatchPolicy::Tolerant, MatchPolicy::Exact] {
            if let Ok(applied) = apply(&file, &Edit { old: &old, new: &new, all, kind: TextKind::Unknown }, policy) {
                prop_assert_ne!(&applied.bytes, &file);
            }
        }
    }
}
