//! Rules for several files: no cycle between the top-level modules of a crate, and public type names that are unique
//! in the workspace.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::Findings;
use super::rust::use_paths;
use super::source_file::{SourceFile, is_test_only, line_of};

pub(super) fn check(files: &[SourceFile<'_>], findings: &mut Findings) {
    let crates: BTreeSet<&str> = files.iter().map(|file| file.krate).collect();
    for krate in crates {
        let crate_files: Vec<_> =
            files.iter().filter(|file| file.krate == krate && file.module.is_some()).collect();
        check_cycles(&crate_files, findings);
    }
    check_names(files, findings);
}

/// Which top-level module uses which: (user, used) → file and line of one such use.
type Uses<'a> = BTreeMap<(&'a str, String), (&'a str, usize)>;

fn check_cycles(files: &[&SourceFile<'_>], findings: &mut Findings) {
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| file.top_module()).collect();
    let exports = root_exports(files, &modules);
    let mut uses = Uses::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        let Some(from) = file.top_module() else { continue };
        let mut paths = CratePaths::default();
        paths.visit_file(&file.ast);
        for (name, line) in paths.found {
            // A re-export at the root stands for the module that it comes from.
            let to = exports.get(&name).cloned().unwrap_or(name);
            if modules.contains(&*to) && to != from {
                uses.entry((from, to)).or_insert((&file.source.path, line));
            }
        }
    }
    for cycle in cycles(&modules, &uses) {
        let location = |from: &str, to: &str| uses.get(&(from, to.to_owned())).copied();
        let Some((path, line)) = location(&cycle[0], &cycle[1]) else { continue };
        let what = format!("the modules {} form a cycle", cycle.join(" → "));
        findings.add(path, line, what, "move what both need to a module below them");
    }
}

/// Returns the names that the crate root re-exports, with the top-level module that each comes from.
fn root_exports(files: &[&SourceFile<'_>], modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for file in files.iter().filter(|file| file.top_module().is_none()) {
        for item in &file.ast.items {
            let syn::Item::Use(item) = item else { continue };
            for path in use_paths(&item.tree) {
                let path: Vec<_> = path.into_iter().filter(|name| name != "crate").collect();
                if let [module, .., name] = path.as_slice()
                    && modules.contains(&**module)
                {
                    exports.insert(name.clone(), module.clone());
                }
            }
        }
    }
    exports
}

/// Collects the first name after `crate::` in paths and imports, outside tests.
#[derive(Default)]
struct CratePaths {
    found: Vec<(String, usize)>,
}

impl<'ast> Visit<'ast> for CratePaths {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_test_only(&item.attrs) {
            return;
        }
        for path in use_paths(&item.tree) {
            if let [root, name, ..] = path.as_slice()
                && root == "crate"
            {
                self.found.push((name.clone(), line_of(item)));
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|root| root.ident == "crate")
            && let Some(name) = segments.next()
        {
            self.found.push((name.ident.to_string(), line_of(path)));
        }
        visit::visit_path(self, path);
    }
}

/// Returns a cycle for each group of modules that depend on one another. The first module of a cycle is repeated at its
/// end.
fn cycles(modules: &BTreeSet<&str>, uses: &Uses<'_>) -> Vec<Vec<String>> {
    let mut reported = BTreeSet::new();
    let mut all = Vec::new();
    for start in modules {
        if reported.contains(*start) {
            continue;
        }
        if let Some(cycle) = cycle_through(start, uses) {
            reported.extend(cycle.iter().cloned());
            all.push(cycle);
        }
    }
    all
}

/// Returns a shortest cycle through a module.
fn cycle_through(start: &str, uses: &Uses<'_>) -> Option<Vec<String>> {
    let mut paths = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    let mut next = 0;
    while next < paths.len() {
        let path = paths[next].clone();
        next += 1;
        let last = path.last()?.clone();
        for ((_, to), _) in uses.iter().filter(|((from, _), _)| *from == last) {
            if to == start {
                return Some([path, vec![to.clone()]].concat());
            }
            if seen.insert(to.clone()) {
                paths.push([path.clone(), vec![to.clone()]].concat());
            }
        }
    }
    None
}

fn check_names(files: &[SourceFile<'_>], findings: &mut Findings) {
    let mut types: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test() && !is_replacement(file)) {
        let mut names = TypeNames::default();
        names.visit_file(&file.ast);
        for (name, line) in names.found {
            types.entry(name).or_default().push((&file.source.path, line));
        }
    }
    for (name, places) in types {
        let Some(((first, line), others)) = places.split_first() else { continue };
        for (path, other_line) in others {
            let what = format!("`{name}` is also the name of a public type at {first}:{line}");
            findings.add(path, *other_line, what, "give one of them a more specific name");
        }
    }
}

/// Whether a file replaces another file, with the same types, on systems that the other file does not support.
fn is_replacement(file: &SourceFile<'_>) -> bool {
    file.module.as_ref().and_then(|module| module.last().copied()) == Some("unsupported")
}

/// Collects the names of public types, outside tests.
#[derive(Default)]
struct TypeNames {
    found: Vec<(String, usize)>,
}

impl TypeNames {
    fn add(
        &mut self,
        visibility: &syn::Visibility,
        attributes: &[syn::Attribute],
        name: &syn::Ident,
    ) {
        if matches!(visibility, syn::Visibility::Public(_)) && !is_test_only(attributes) {
            self.found.push((name.to_string(), line_of(name)));
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.vis, &item.attrs, &item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Source;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source { path: format!("crates/{path}"), text: (*text).into() })
            .collect();
        let parsed: Vec<_> =
            sources.iter().map(|source| SourceFile::parse(source).unwrap()).collect();
        let mut findings = Findings::default();
        check(&parsed, &mut findings);
        let found: Vec<_> = findings
            .sorted()
            .iter()
            .map(|it| format!("{}:{}: {}", it.path, it.line, it.what))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cycle_is_found_in_imports_and_paths() {
        check_files(
            &[
                ("helve/src/lib.rs", "mod a; mod b; mod c; pub use c::C;"),
                ("helve/src/a.rs", "use crate::b::B;"),
                ("helve/src/b/inner.rs", "\nfn f() { crate::C::new() }"),
                ("helve/src/c.rs", "use crate::{a::A, c::D};"),
            ],
            &["crates/helve/src/a.rs:1: the modules a → b → c → a form a cycle"],
        );
    }

    #[test]
    fn uses_in_tests_or_in_one_direction_form_no_cycle() {
        check_files(
            &[
                ("helve/src/lib.rs", "mod a; mod b;"),
                ("helve/src/a.rs", "use crate::b::B; mod x;"),
                ("helve/src/a/x.rs", "use super::A;"),
                ("helve/src/b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }"),
                ("helve/src/b/tests.rs", "use crate::a::A;"),
                ("helve-core/src/b.rs", "use crate::a::A;"),
            ],
            &[],
        );
    }

    #[test]
    fn public_type_names_are_unique_across_crates() {
        check_files(
            &[
                ("helve/src/a.rs", "pub struct Entry; struct Row; pub(crate) enum Kind {}"),
                ("helve-core/src/b.rs", "pub struct Row;\npub enum Entry {}\npub trait Kind {}"),
                ("helve-core/tests/c.rs", "pub struct Entry;"),
            ],
            &[
                "crates/helve-core/src/b.rs:2: `Entry` is also the name of a public type at crates/helve/src/a.rs:1",
            ],
        );
    }
}
