//! Turns one TypeScript or JavaScript file into plain JavaScript, and rewrites its import specifiers.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    Argument, AssignmentTarget, CallExpression, ExportAllDeclaration, ExportFromDeclaration,
    Expression, ImportDeclaration, ImportExpression, ObjectPropertyKind, Program, Statement,
    StringLiteral,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::codegen::{Codegen, CodegenOptions, CodegenReturn};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::Parser;
use oxc::semantic::SemanticBuilder;
use oxc::span::{GetSpan, SourceType};
use oxc::transformer::{TransformOptions, Transformer};

/// Stack size of the thread that parses, because deeply nested code makes the parser recurse.
const STACK_BYTES: usize = 64 << 20;

/// A problem in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceProblem {
    /// From 1; 0 if the line is not known.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// How a specifier is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportForm {
    /// `import` and `export … from`. If the target is missing, the module does not load.
    Static,
    /// `import()`, which may fail at run time.
    Dynamic,
    /// `require()`.
    Require,
}

/// Returns the new specifier, given the old one, its form and its line; `None` leaves it unchanged.
pub(crate) type Rewrite<'r> = dyn FnMut(&str, ImportForm, usize) -> Option<String> + Send + 'r;

/// A file as plain JavaScript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StrippedModule {
    pub(crate) code: String,
    /// The source line of every line of `code`, from 1.
    pub(crate) lines: Vec<u32>,
    /// Whether the file uses `import.meta`.
    pub(crate) uses_meta: bool,
    /// Which of [`COMMON_JS_NAMES`] the file uses without declaring them itself.
    pub(crate) undeclared_names: Vec<String>,
    /// Whether the file has `import` or `export` statements.
    pub(crate) is_module: bool,
    /// Names that a CommonJS file assigns to its exports.
    pub(crate) common_js_exports: Vec<String>,
}

/// The name that replaces `import.meta`.
pub(crate) const META: &str = "__helveMeta";

/// Names that CommonJS defines for every file.
const COMMON_JS_NAMES: [&str; 5] = ["require", "module", "exports", "__dirname", "__filename"];

/// Strips types, removes unused imports, and rewrites specifiers.
pub(crate) fn strip(
    path: &Path,
    text: &str,
    rewrite: &mut Rewrite<'_>,
) -> Result<StrippedModule, SourceProblem> {
    std::thread::scope(|scope| {
        let work = || strip_on_this_thread(path, text, rewrite);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let failed = |message: &str| SourceProblem { line: 0, message: message.into() };
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(_panic)) => Err(failed("the parser failed on this file")),
            Err(_) => Err(failed("the thread that parses could not be started")),
        }
    })
}

fn strip_on_this_thread(
    path: &Path,
    text: &str,
    rewrite: &mut Rewrite<'_>,
) -> Result<StrippedModule, SourceProblem> {
    let allocator = Allocator::default();
    let source_type = SourceType::from_path(path).unwrap_or_else(|_| SourceType::mjs());
    let source_type = source_type.with_module(true);
    let parsed = Parser::new(&allocator, text, source_type).parse();
    if let Some(error) = parsed.diagnostics.iter().next() {
        return Err(problem(text, error));
    }
    let mut program = parsed.program;
    let semantic = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true);
    let scoping = semantic.build(&program).semantic.into_scoping();
    let unresolved = scoping.root_unresolved_references();
    let is_undeclared = |name: &&str| unresolved.keys().any(|it| it.as_str() == *name);
    let undeclared_names =
        COMMON_JS_NAMES.iter().filter(|name| is_undeclared(name)).map(|it| (*it).into());
    let mut module =
        StrippedModule { undeclared_names: undeclared_names.collect(), ..Default::default() };
    let options = TransformOptions::default();
    let transformer = Transformer::new(&allocator, path, &options);
    let transformed = transformer.build_with_scoping(scoping, &mut program);
    if let Some(error) = transformed.diagnostics.iter().next() {
        return Err(problem(text, error));
    }
    module.is_module = program.body.iter().any(is_module_statement);
    module.common_js_exports = common_js_exports(&program);
    let mut rewriter = SpecifierRewriter { allocator: &allocator, text, rewrite, uses_meta: false };
    rewriter.visit_program(&mut program);
    module.uses_meta = rewriter.uses_meta;
    generate_code(&program, path, text, &mut module);
    Ok(module)
}

/// Prints the program as JavaScript, and fills in `code` and `lines` of the module.
fn generate_code(program: &Program<'_>, path: &Path, text: &str, module: &mut StrippedModule) {
    let options =
        CodegenOptions { source_map_path: Some(path.into()), ..CodegenOptions::default() };
    let CodegenReturn { code, map, .. } =
        Codegen::new().with_options(options).with_source_text(text).build(program);
    let mut lines: Vec<u32> = vec![0; code.lines().count()];
    for token in map.iter().flat_map(|map| map.get_tokens()) {
        // The first token of a line determines its source line.
        if let Some(line) = lines.get_mut(token.get_dst_line() as usize)
            && *line == 0
        {
            *line = token.get_src_line() + 1;
        }
    }
    for index in 1..lines.len() {
        if lines[index] == 0 {
            lines[index] = lines[index - 1];
        }
    }
    module.code = code;
    module.lines = lines;
}

fn problem(text: &str, error: &OxcDiagnostic) -> SourceProblem {
    let offset = error.labels.iter().next().map(|label| label.offset());
    SourceProblem {
        line: offset.map_or(0, |offset| line_of(text, offset as usize)),
        message: error.message.to_string(),
    }
}

/// Returns the line of an offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn is_module_statement(statement: &Statement<'_>) -> bool {
    matches!(
        statement,
        Statement::ImportDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportDeclaration(_)
    )
}

/// Finds `exports.name = …`, `module.exports.name = …` and `module.exports = { name, … }` at the top level.
fn common_js_exports(program: &Program<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for statement in &program.body {
        let Statement::ExpressionStatement(statement) = statement else { continue };
        let Expression::AssignmentExpression(assignment) = &statement.expression else { continue };
        let AssignmentTarget::StaticMemberExpression(member) = &assignment.left else { continue };
        if is_name(&member.object, "module") && member.property.name == "exports" {
            if let Expression::ObjectExpression(object) = &assignment.right {
                names.extend(object.properties.iter().filter_map(|property| match property {
                    ObjectPropertyKind::ObjectProperty(property) => {
                        property.key.static_name().map(|name| name.into_owned())
                    }
                    ObjectPropertyKind::SpreadProperty(_) => None,
                }));
            }
        } else if is_name(&member.object, "exports") || is_module_exports(&member.object) {
            names.push(member.property.name.to_string());
        }
    }
    let is_exportable = |name: &String| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
            && name != "default"
            && !name.is_empty()
    };
    names.retain(is_exportable);
    names.sort();
    names.dedup();
    names
}

fn is_name(expression: &Expression<'_>, name: &str) -> bool {
    matches!(expression, Expression::Identifier(identifier) if identifier.name == name)
}

fn is_module_exports(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::StaticMemberExpression(member)
        if is_name(&member.object, "module") && member.property.name == "exports")
}

/// Visits a program, rewrites its import specifiers and replaces `import.meta`.
struct SpecifierRewriter<'a, 's, 'r> {
    allocator: &'a Allocator,
    text: &'s str,
    rewrite: &'s mut Rewrite<'r>,
    uses_meta: bool,
}

impl<'a> SpecifierRewriter<'a, '_, '_> {
    fn rewrite_literal(&mut self, literal: &mut StringLiteral<'a>, form: ImportForm) {
        let line = line_of(self.text, literal.span.start as usize);
        if let Some(new) = (self.rewrite)(literal.value.as_str(), form, line) {
            literal.value = self.allocator.alloc_str(&new).into();
            literal.raw = None;
        }
    }

    fn rewrite_expression(&mut self, expression: &mut Expression<'a>, form: ImportForm) {
        match expression {
            Expression::StringLiteral(literal) => self.rewrite_literal(literal, form),
            Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
                let text = template.quasis.first().map(|it| it.value.raw.to_string());
                let line = line_of(self.text, template.span.start as usize);
                let new = text.and_then(|text| (self.rewrite)(&text, form, line));
                if let Some(new) = new {
                    let new = self.allocator.alloc_str(&new);
                    let span = template.span;
                    let builder = AstBuilder::new(self.allocator);
                    *expression = Expression::new_string_literal(span, new, None, &builder);
                }
            }
            _ => {}
        }
    }
}

impl<'a> VisitMut<'a> for SpecifierRewriter<'a, '_, '_> {
    fn visit_import_declaration(&mut self, it: &mut ImportDeclaration<'a>) {
        self.rewrite_literal(&mut it.source, ImportForm::Static);
        // Import attributes are dropped, because data files have become modules.
        it.with_clause = None;
    }

    fn visit_export_from_declaration(&mut self, it: &mut ExportFromDeclaration<'a>) {
        self.rewrite_literal(&mut it.source, ImportForm::Static);
        it.with_clause = None;
    }

    fn visit_export_all_declaration(&mut self, it: &mut ExportAllDeclaration<'a>) {
        self.rewrite_literal(&mut it.source, ImportForm::Static);
        it.with_clause = None;
    }

    fn visit_import_expression(&mut self, it: &mut ImportExpression<'a>) {
        self.rewrite_expression(&mut it.source, ImportForm::Dynamic);
        it.options = None;
        walk_mut::walk_import_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        if is_name(&it.callee, "require")
            && let [Argument::StringLiteral(literal)] = it.arguments.as_mut_slice()
        {
            self.rewrite_literal(literal, ImportForm::Require);
        }
        walk_mut::walk_call_expression(self, it);
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        if matches!(it, Expression::ImportMeta(_)) {
            self.uses_meta = true;
            *it = Expression::new_identifier(it.span(), META, &AstBuilder::new(self.allocator));
            return;
        }
        walk_mut::walk_expression(self, it);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Expect) {
        let mut rewrite = |specifier: &str, _: ImportForm, _: usize| {
            specifier.strip_prefix("./").map(|rest| format!("file:{rest}"))
        };
        let shown = match strip(Path::new(name), text, &mut rewrite) {
            Ok(module) => {
                let undeclared = module.undeclared_names.join(" ");
                format!("{}-- lines {:?} undeclared [{undeclared}]", module.code, module.lines)
            }
            Err(problem) => format!("{}: {}", problem.line, problem.message),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn types_are_removed_and_specifiers_rewritten() {
        check(
            "a.ts",
            "import { A, b } from './a'\nimport type { C } from './c'\nimport { D } from './d'\n\nenum E { X = 1 }\nclass P { constructor(private n: number) {} }\nexport default (x: A): D => b(x as any satisfies C, E.X, import.meta.url, P)\n",
            expect![[r#"
                import { b } from "file:a";
                var E = /* @__PURE__ */ function(E) {
                	E[E["X"] = 1] = "X";
                	return E;
                }(E || {});
                class P {
                	n;
                	constructor(n) {
                		this.n = n;
                	}
                }
                export default (x) => b(x, E.X, __helveMeta.url, P);
                -- lines [1, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7] undeclared []"#]],
        );
    }

    #[test]
    fn every_form_of_import_is_rewritten() {
        check(
            "a.js",
            "export * from './a'; export { b } from './b';\nconst c = require('./c');\nawait import('./d'); await import(`./e`); __dirname",
            expect![[r#"
                export * from "file:a";
                export { b } from "file:b";
                const c = require("file:c");
                await import("file:d");
                await import("file:e");
                __dirname;
                -- lines [1, 1, 2, 3, 3, 3] undeclared [require __dirname]"#]],
        );
    }

    #[test]
    fn an_error_has_its_line() {
        check("a.ts", "const a = 1;\nconst b = ;\n", expect!["2: Unexpected token"]);
    }

    #[test]
    fn deeply_nested_code_does_not_overflow_the_stack() {
        let text = format!("const a = {}1{};", "(".repeat(2_000), ")".repeat(2_000));
        let mut rewrite = |_: &str, _: ImportForm, _: usize| None;
        assert!(strip(Path::new("a.ts"), &text, &mut rewrite).is_ok());
    }
}
