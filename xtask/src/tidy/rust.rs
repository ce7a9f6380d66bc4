//! Rules for single Rust files: their first line, ignored tests, lengths, and what pure crates may use.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Findings;
use super::source_file::{SourceFile, is_test_only, line_of};

/// Maximum number of lines of a file, not counting its tests.
const MAX_FILE_LINES: usize = 600;
/// Marks a file, in its first lines, as a table. A table may have any length.
const TABLE: &str = "(a table)";
/// Maximum number of lines of a function outside tests.
const MAX_FUNCTION_LINES: usize = 80;

/// Crates that must not access the system.
const PURE_CRATES: &[&str] = &["helve-text", "helve-policy"];
/// Modules of `std` that access the system.
const SYSTEM_MODULES: &[&str] = &["env", "fs", "io", "net", "process"];

pub(super) fn check(file: &SourceFile<'_>, findings: &mut Findings) {
    check_header(file, findings);
    check_length(file, findings);
    let mut visitor = Visitor { file, findings, is_test: file.is_test() };
    visitor.visit_file(&file.ast);
}

fn check_header(file: &SourceFile<'_>, findings: &mut Findings) {
    if file.module.is_some() && !file.source.text.starts_with("//! ") {
        let remedy = "begin with one `//!` line";
        findings.add(
            &file.source.path,
            1,
            "the file does not start with a comment that says what it is for",
            remedy,
        );
    }
}

fn check_length(file: &SourceFile<'_>, findings: &mut Findings) {
    let mut first_lines = file.source.text.lines().take(5);
    if file.is_test() || first_lines.any(|line| line.contains(TABLE)) {
        return;
    }
    let tests = file.ast.items.iter().find_map(|item| match item {
        syn::Item::Mod(module) if is_test_only(&module.attrs) => Some(line_of(module)),
        _ => None,
    });
    let length = tests.unwrap_or_else(|| file.source.text.lines().count() + 1) - 1;
    if length > MAX_FILE_LINES {
        let what =
            format!("the file has {length} lines without its tests; the limit is {MAX_FILE_LINES}");
        let remedy = format!(
            "split it into parts that change for different reasons, or write `{TABLE}` in its first lines"
        );
        findings.add(&file.source.path, MAX_FILE_LINES + 1, what, remedy);
    }
}

struct Visitor<'a, 'f> {
    file: &'a SourceFile<'a>,
    findings: &'f mut Findings,
    is_test: bool,
}

impl Visitor<'_, '_> {
    fn add(&mut self, node: &impl Spanned, what: String, remedy: &str) {
        self.findings.add(&self.file.source.path, line_of(node), what, remedy);
    }

    fn check_function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let length = block.span().end().line + 1 - line_of(signature);
        if length > MAX_FUNCTION_LINES && !self.is_test {
            let what = format!(
                "`{}` has {length} lines; the limit is {MAX_FUNCTION_LINES}",
                signature.ident
            );
            self.add(signature, what, "split it, or move data into a table");
        }
    }

    /// Checks a path that starts with the name of a crate, such as `std::fs::read`.
    fn check_purity(&mut self, node: &impl Spanned, path: &[String]) {
        if self.is_test || !PURE_CRATES.contains(&self.file.krate) {
            return;
        }
        if let [root, module, ..] = path
            && root == "std"
            && SYSTEM_MODULES.contains(&&**module)
        {
            let what = format!("{} uses `std::{module}`", self.file.krate);
            self.add(
                node,
                what,
                "take the value as an argument, and access the system in helve-machine",
            );
        }
    }

    /// Calls `visit` for an item, with `is_test` set if its attributes mark it as test code.
    fn visit_item_with(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let outer = self.is_test;
        self.is_test |= is_test_only(attributes);
        visit(self);
        self.is_test = outer;
    }
}

impl<'ast> Visit<'ast> for Visitor<'_, '_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("ignore") {
            let remedy = "make it pass, or assert today's behaviour with a FIXME";
            self.add(attribute, "a test is ignored".into(), remedy);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.visit_item_with(&module.attrs, |this| visit::visit_item_mod(this, module));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.visit_item_with(&function.attrs, |this| {
            this.check_function(&function.sig, &function.block);
            visit::visit_item_fn(this, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.visit_item_with(&function.attrs, |this| {
            this.check_function(&function.sig, &function.block);
            visit::visit_impl_item_fn(this, function);
        });
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.visit_item_with(&item.attrs, |this| {
            for path in use_paths(&item.tree) {
                this.check_purity(item, &path);
            }
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|it| it.ident.to_string()).collect();
        self.check_purity(path, &names);
        visit::visit_path(self, path);
    }
}

/// Expands a `use` tree into its paths.
pub(super) fn use_paths(tree: &syn::UseTree) -> Vec<Vec<String>> {
    let below = |name: String, paths: Vec<Vec<String>>| {
        paths.into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
    };
    match tree {
        syn::UseTree::Path(path) => below(path.ident.to_string(), use_paths(&path.tree)),
        syn::UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
        syn::UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        syn::UseTree::Glob(_) => vec![vec!["*".into()]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Source;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let mut findings = Findings::default();
        let source = Source { path: path.into(), text: text.into() };
        check(&SourceFile::parse(&source).unwrap(), &mut findings);
        let found: Vec<_> =
            findings.sorted().iter().map(|it| format!("{}: {}", it.line, it.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_file_without_a_first_comment_is_reported() {
        let missing = ["1: the file does not start with a comment that says what it is for"];
        check_text("crates/helve/src/a.rs", "fn f() {}", &missing);
        check_text("xtask/src/a.rs", "\n//! Late.", &missing);
        check_text("crates/helve/src/a.rs", "//! Why.\nfn f() {}", &[]);
        check_text("crates/helve/tests/a.rs", "fn f() {}", &[]);
    }

    #[test]
    fn ignored_tests_are_reported() {
        let path = "crates/helve/tests/a.rs";
        check_text(path, "#[test]\n#[ignore]\nfn f() {}", &["2: a test is ignored"]);
        check_text(path, "#[ignore = \"slow\"]\nfn f() {}", &["1: a test is ignored"]);
        check_text(path, "// #[ignore]\nfn ignore() {}", &[]);
    }

    #[test]
    fn long_files_that_are_not_tables_are_reported() {
        let long = "fn f() {}\n".repeat(MAX_FILE_LINES + 1);
        let path = "crates/helve/src/a.rs";
        let expected = ["601: the file has 602 lines without its tests; the limit is 600"];
        check_text(path, &format!("//! A.\n{long}"), &expected);
        check_text(path, &format!("//! Every flag (a table).\n{long}"), &[]);
        check_text(path, &format!("//! A.\n#[cfg(test)]\nmod tests {{\n{long}}}"), &[]);
        check_text("crates/helve/src/a/tests.rs", &format!("//! A.\n{long}"), &[]);
    }

    #[test]
    fn long_functions_outside_tests_are_reported() {
        let body = "a();\n".repeat(MAX_FUNCTION_LINES);
        let path = "crates/helve/src/a.rs";
        let expected = ["2: `f` has 82 lines; the limit is 80"];
        check_text(path, &format!("//! A.\nfn f() {{\n{body}}}"), &expected);
        let method = format!("//! A.\nimpl A {{ fn f(&self) {{\n{body}}} }}");
        check_text(path, &method, &expected);
        check_text(path, &format!("//! A.\n#[cfg(test)]\nmod t {{ fn f() {{\n{body}}} }}"), &[]);
        check_text(path, &format!("//! A.\n#[test]\nfn f() {{\n{body}}}"), &[]);
    }

    #[test]
    fn pure_crates_that_access_the_system_are_reported() {
        let path = "crates/helve-text/src/a.rs";
        let found = ["2: helve-text uses `std::fs`"];
        check_text(path, "//! A.\nfn f() { std::fs::read(p) }", &found);
        check_text(path, "//! A.\nuse std::{fmt, fs::{self, File}};", &found);
        let policy = "crates/helve-policy/src/a.rs";
        check_text(policy, "//! A.\nuse std::env;", &["2: helve-policy uses `std::env`"]);
        check_text(path, "//! std::fs is not used\nuse std::collections::BTreeMap;", &[]);
        check_text(path, "//! A.\n#[cfg(test)]\nmod tests { use std::fs; }", &[]);
        check_text("crates/helve-core/src/a.rs", "//! A.\nuse std::fs;", &[]);
    }
}
