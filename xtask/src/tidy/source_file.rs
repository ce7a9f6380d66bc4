//! A parsed Rust file of the workspace.

use syn::spanned::Spanned;

use crate::repository::Source;

/// A parsed Rust file, with its crate and its module path.
pub(super) struct SourceFile<'a> {
    pub source: &'a Source,
    pub ast: syn::File,
    /// Folder name of the crate: `helve-core`, `xtask`.
    pub krate: &'a str,
    /// Path below `src` without the extension: `["machine", "commit"]`; `None` outside `src`.
    pub module: Option<Vec<&'a str>>,
}

impl<'a> SourceFile<'a> {
    pub(super) fn parse(source: &'a Source) -> Result<Self, syn::Error> {
        let ast = syn::parse_file(&source.text)?;
        let path = source.path.strip_prefix("crates/").unwrap_or(&source.path);
        let (krate, rest) = path.split_once('/').unwrap_or((path, ""));
        let module = rest.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs"));
        let module = module.map(|path| path.split('/').filter(|name| *name != "mod").collect());
        Ok(Self { source, ast, krate, module })
    }

    /// Returns the name of the top-level module that the file belongs to; `None` for the crate root.
    pub(super) fn top_module(&self) -> Option<&'a str> {
        let first = self.module.as_ref()?.first().copied()?;
        (!matches!(first, "lib" | "main")).then_some(first)
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        let is_test_name = |name: &&str| matches!(*name, "tests" | "fixture" | "fixtures");
        self.module.as_ref().is_none_or(|module| module.iter().any(is_test_name))
    }
}

/// Whether an item is compiled for tests only.
pub(super) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || path.segments.last().is_some_and(|segment| segment.ident == "test")
            || (path.is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
    })
}

pub(super) fn line_of(node: &impl Spanned) -> usize {
    node.span().start().line
}
