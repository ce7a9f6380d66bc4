//! `lsp`: asks language servers about code.

use std::sync::Arc;

use helve_core::language::{
    CodeAnswer, CodeError, CodeIntelligence, CodeOperation, CodePlace, CodePosition,
};
use helve_core::{ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::with_preview;
use crate::EditSettings;
use crate::ops::language::{
    LanguageFailure, LanguageOutcome, LanguageReply, LanguageRequest, ask_language,
};
use crate::words::change::{change_summary, diagnostic_line, line_counts};
use crate::words::{clip, missing_file};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    operation: Operation,
    /// The file to ask about
    #[schemars(length(min = 1))]
    file_path: String,
    /// Line, from 1
    line: Option<u64>,
    /// Column in characters, from 1
    character: Option<u64>,
    /// A name on the line, instead of character
    symbol: Option<String>,
    /// For workspaceSymbol: what to search for
    query: Option<String>,
    /// For rename
    new_name: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Operation {
    GoToDefinition,
    FindReferences,
    Hover,
    DocumentSymbol,
    WorkspaceSymbol,
    GoToImplementation,
    PrepareCallHierarchy,
    IncomingCalls,
    OutgoingCalls,
    Diagnostics,
    CodeAction,
    Rename,
    Formatting,
}

impl Operation {
    /// The operation, and whether it needs a position.
    fn meaning(self) -> (CodeOperation, bool) {
        match self {
            Operation::GoToDefinition => (CodeOperation::Definition, true),
            Operation::FindReferences => (CodeOperation::References, true),
            Operation::Hover => (CodeOperation::Hover, true),
            Operation::DocumentSymbol => (CodeOperation::DocumentSymbols, false),
            Operation::WorkspaceSymbol => (CodeOperation::WorkspaceSymbols, false),
            Operation::GoToImplementation => (CodeOperation::Implementation, true),
            Operation::PrepareCallHierarchy => (CodeOperation::CallHierarchy, true),
            Operation::IncomingCalls => (CodeOperation::IncomingCalls, true),
            Operation::OutgoingCalls => (CodeOperation::OutgoingCalls, true),
            Operation::Diagnostics => (CodeOperation::Diagnostics, false),
            Operation::CodeAction => (CodeOperation::CodeActions, true),
            Operation::Rename => (CodeOperation::Rename, true),
            Operation::Formatting => (CodeOperation::Format, false),
        }
    }
}

pub(super) struct Lsp {
    pub(super) languages: Arc<dyn CodeIntelligence>,
    pub(super) settings: EditSettings,
}

impl Tool for Lsp {
    type Args = Args;
    const NAME: &'static str = "lsp";
    const ABOUT: &'static str = include_str!("lsp.txt");
    const PROPERTIES: ToolProperties = ToolProperties::CHANGES_FILES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { operation, file_path, line, character, symbol, query, new_name } = args;
        let (code_operation, needs_position) = operation.meaning();
        let invalid = |message: &str| ToolError::new(ErrorKind::InvalidArgs, message);
        if needs_position && (line.is_none() || (character.is_none() && symbol.is_none())) {
            return Err(invalid("This operation needs line, and character or symbol."));
        }
        let text = match operation {
            Operation::Rename => match new_name.filter(|name| !name.trim().is_empty()) {
                Some(name) => name,
                None => return Err(invalid("rename needs newName.")),
            },
            _ => query.unwrap_or_default(),
        };
        let position = CodePosition {
            line: line.unwrap_or(1).max(1),
            column: character.unwrap_or(1).max(1),
            symbol: symbol.filter(|symbol| !symbol.is_empty()),
        };
        let request = LanguageRequest {
            key: Self::NAME,
            path: &file_path,
            operation: code_operation,
            position,
            text,
        };
        let reply = ask_language(ctx, &*self.languages, self.settings.links, request).await;
        let LanguageReply { outcome, raw } = reply.map_err(error)?;
        let mut output = answer(operation, outcome);
        output.metadata.extend(raw.map(|raw| ("result".to_owned(), raw)));
        Ok(output)
    }
}

fn answer(operation: Operation, outcome: LanguageOutcome) -> ToolOutput {
    match outcome {
        LanguageOutcome::Changed { diffs, applied } => {
            let (verb, is_preview) = match applied {
                Some(_) => ("Changed", false),
                None => ("Would change", true),
            };
            let files = if diffs.len() == 1 { "file" } else { "files" };
            let title = format!("{} {files}", diffs.len());
            let first = format!("{verb} {title}: {}.", line_counts(&diffs));
            let text = change_summary(&first, applied.as_ref(), &diffs);
            with_preview(ToolOutput::text(title, text), is_preview)
        }
        LanguageOutcome::Answer { display_path, answer } => {
            let text = answer_text(operation, &display_path, &answer);
            ToolOutput::text(display_path, text)
        }
    }
}

fn answer_text(operation: Operation, display_path: &str, answer: &CodeAnswer) -> String {
    let text = match answer {
        CodeAnswer::Places { places, left_out } => {
            let mut text: String = places.iter().map(place_line).collect();
            if *left_out > 0 {
                text.push_str(&format!("({left_out} more are not shown)\n"));
            }
            text
        }
        CodeAnswer::Text(text) => text.clone(),
        CodeAnswer::Diagnostics(list) => {
            list.iter().map(|it| format!("{}\n", diagnostic_line(it))).collect()
        }
        CodeAnswer::Actions(titles) => titles.iter().map(|title| format!("- {title}\n")).collect(),
        CodeAnswer::Rewrites(_) => String::new(),
    };
    if !text.is_empty() {
        return text.trim_end().to_owned();
    }
    match operation {
        Operation::Diagnostics => format!("{display_path} has no errors or warnings."),
        Operation::Formatting => format!("{display_path} is formatted already."),
        _ => "No results.".to_owned(),
    }
}

fn place_line(place: &CodePlace) -> String {
    let CodePlace { display_path, line, column, label, depth, source_line, .. } = place;
    let indentation = "  ".repeat(*depth);
    let mut text = format!("{indentation}{display_path}:{line}:{column}");
    if !label.is_empty() {
        text.push_str(&format!(" {label}"));
    }
    if let Some(source) = source_line.as_deref().filter(|source| !source.is_empty()) {
        text.push_str(&format!(": {}", source.trim()));
    }
    text + "\n"
}

fn error(failure: LanguageFailure) -> ToolError {
    let failed = |message: String| ToolError::new(ErrorKind::Failed, message);
    match failure {
        LanguageFailure::Context(error) => error,
        LanguageFailure::Missing(missing) => missing_file(&missing),
        LanguageFailure::Changed { display_path } => {
            let message = format!("{display_path} changed meanwhile. Nothing was written.");
            ToolError::new(ErrorKind::Stale, message).hint("Call again.")
        }
        LanguageFailure::Code { display_path, error } => match error {
            CodeError::Untrusted => failed("Language servers run only in trusted folders.".into())
                .hint("The user can run `helve trust`. Use grep and read instead."),
            CodeError::NoServer { candidates } => match candidates.first() {
                None => failed(format!("No language server is known for {display_path}."))
                    .hint("Use grep and read instead."),
                Some((server, install)) => {
                    failed(format!("The language server {server} is not installed."))
                        .hint(format!("The user can install it: {install}"))
                }
            },
            CodeError::NotText => {
                failed(format!("{display_path} is not UTF-8 text, or is too large."))
            }
            CodeError::NoSymbol { line } => ToolError::new(
                ErrorKind::InvalidArgs,
                format!("The symbol is not on this line of {display_path}: {}", clip(&line)),
            )
            .hint("Read the file for the line of the symbol."),
            CodeError::NotOffered { server } => {
                failed(format!("{server} does not offer this operation."))
            }
            CodeError::Failed { why } => failed(why),
        },
    }
}
