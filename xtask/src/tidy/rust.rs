//! Rules on single Rust files: the first line, ignored tests, lengths, and what pure crates may use.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Findings;
use super::source_file::{SourceFile, is_test_only, line_of};

/// The most lines of a file before its tests, unless its first lines say that it is a table.
const MAX_FILE: usize = 600;
const TABLE: &str = "(a table)";
/// The most lines of a function outside tests.
const MAX_FUNCTION: usize = 80;

/// Crates that may not touch the system, and the modules of `std` that would.
const PURE: &[&str] = &["helve-text", "helve-policy"];
const EFFECTS: &[&str] = &["env", "fs", "io", "net", "process"];

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
            "the first line does not say what the file is for",
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
    if length > MAX_FILE {
        let what = format!("{length} lines before the tests, the limit is {MAX_FILE}");
        let remedy = format!("split it by reason to change, or say `{TABLE}` in its first lines");
        findings.add(&file.source.path, MAX_FILE + 1, what, remedy);
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
        if length > MAX_FUNCTION && !self.is_test {
            let what =
                format!("`{}` has {length} lines, the limit is {MAX_FUNCTION}", signature.ident);
            self.add(signature, what, "split it, or move data into a table");
        }
    }

    /// `path` starts at a crate: `std`, `fs`, ….
    fn check_purity(&mut self, node: &impl Spanned, path: &[String]) {
        if self.is_test || !PURE.contains(&self.file.krate) {
            return;
        }
        if let [root, module, ..] = path
            && root == "std"
            && EFFECTS.contains(&&**module)
        {
            let what = format!("{} uses `std::{module}`", self.file.krate);
            self.add(node, what, "take a value as an argument; effects live in helve-machine");
        }
    }

    fn within(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
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
        self.within(&module.attrs, |this| visit::visit_item_mod(this, module));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(&function.attrs, |this| {
            this.check_function(&function.sig, &function.block);
            visit::visit_item_fn(this, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.within(&function.attrs, |this| {
            this.check_function(&function.sig, &function.block);
            visit::visit_impl_item_fn(this, function);
        });
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.within(&item.attrs, |this| {
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
    fn files_say_what_they_are_for() {
        let missing = ["1: the first line does not say what the file is for"];
        check_text("crates/helve/src/a.rs", "fn f() {}", &missing);
        check_text("xtask/src/a.rs", "\n//! Late.", &missing);
        check_text("crates/helve/src/a.rs", "//! Why.\nfn f() {}", &[]);
        check_text("crates/helve/tests/a.rs", "fn f() {}", &[]);
    }

    #[test]
    fn ignored_tests_are_found() {
        let path = "crates/helve/tests/a.rs";
        check_text(path, "#[test]\n#[ignore]\nfn f() {}", &["2: a test is ignored"]);
        check_text(path, "#[ignore = \"slow\"]\nfn f() {}", &["1: a test is ignored"]);
        check_text(path, "// #[ignore]\nfn ignore() {}", &[]);
    }

    #[test]
    fn long_files_say_that_they_are_tables() {
        let long = "fn f() {}\n".repeat(MAX_FILE + 1);
        let path = "crates/helve/src/a.rs";
        let expected = ["601: 602 lines before the tests, the limit is 600"];
        check_text(path, &format!("//! A.\n{long}"), &expected);
        check_text(path, &format!("//! Every flag (a table).\n{long}"), &[]);
        check_text(path, &format!("//! A.\n#[cfg(test)]\nmod tests {{\n{long}}}"), &[]);
        check_text("crates/helve/src/a/tests.rs", &format!("//! A.\n{long}"), &[]);
    }

    #[test]
    fn long_functions_are_found_outside_tests() {
        let body = "a();\n".repeat(MAX_FUNCTION);
        let path = "crates/helve/src/a.rs";
        let expected = ["2: `f` has 82 lines, the limit is 80"];
        check_text(path, &format!("//! A.\nfn f() {{\n{body}}}"), &expected);
        let method = format!("//! A.\nimpl A {{ fn f(&self) {{\n{body}}} }}");
        check_text(path, &method, &expected);
        check_text(path, &format!("//! A.\n#[cfg(test)]\nmod t {{ fn f() {{\n{body}}} }}"), &[]);
        check_text(path, &format!("//! A.\n#[test]\nfn f() {{\n{body}}}"), &[]);
    }

    #[test]
    fn pure_crates_use_no_effects() {
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
