//! The line editor of a conversation: history, several lines, and completion of files and commands.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use helve::Toolbox;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion,
    ValidationResult, Validator, default_emacs_keybindings,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::conversation::COMMANDS;

const MENU: &str = "completion";
/// The payload of the key that switches how edits are treated.
const SWITCH_MODE: &str = "switch mode";
/// How many prompts the history holds.
const MAX_HISTORY: usize = 1_000;
/// How long completion waits for the list of files.
const COMPLETION_WAIT: Duration = Duration::from_secs(2);

/// What a person entered.
pub(super) enum Entered {
    Text(String),
    /// The key that switches how edits are treated. What was typed so far stays.
    SwitchMode,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
}

/// Reads what a person types between turns.
pub(super) struct Editor {
    line_editor: Option<Reedline>,
    queries: UnboundedReceiver<FileQuery>,
}

/// A request of the completer, which runs on another thread, for files.
struct FileQuery {
    typed: String,
    reply: mpsc::Sender<Vec<String>>,
}

impl Editor {
    /// `history` is the file that keeps earlier prompts.
    pub(super) fn new(history: PathBuf) -> Self {
        let (sender, queries) = unbounded_channel();
        let mut keys = default_emacs_keybindings();
        let complete = vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
        let switch = ReedlineEvent::UntilFound(vec![
            ReedlineEvent::MenuPrevious,
            ReedlineEvent::ExecuteHostCommand(SWITCH_MODE.into()),
        ]);
        // Terminals report Shift-Tab with and without the modifier.
        keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, switch.clone());
        keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, switch);
        let menu = ColumnarMenu::default().with_name(MENU).with_columns(1);
        let mut editor = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(std::env::var_os("NO_COLOR").is_none())
            .with_validator(Box::new(Backslash))
            .with_completer(Box::new(ConversationCompleter { queries: sender }))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)));
        // Without a history file, the history lasts as long as the conversation.
        if let Ok(history) = FileBackedHistory::with_file(MAX_HISTORY, history) {
            editor = editor.with_history(Box::new(history));
        }
        Self { line_editor: Some(editor), queries }
    }

    /// Puts text into the line, as if it had been typed.
    pub(super) fn insert(&mut self, text: &str) {
        if let Some(editor) = &mut self.line_editor {
            editor.run_edit_commands(&[EditCommand::InsertString(text.into())]);
        }
    }

    /// Reads what the person enters next.
    pub(super) async fn read(
        &mut self,
        toolbox: &Toolbox,
        prompt: ConversationPrompt,
    ) -> anyhow::Result<Entered> {
        let Some(mut editor) = self.line_editor.take() else {
            anyhow::bail!("the terminal can no longer be read");
        };
        let mut reading = tokio::task::spawn_blocking(move || {
            let signal = editor.read_line(&prompt);
            (editor, signal)
        });
        let (editor, signal) = loop {
            tokio::select! {
                done = &mut reading => break done?,
                Some(query) = self.queries.recv() => {
                    // A completer that no longer waits has no use for the files.
                    query.reply.send(toolbox.complete_file(&query.typed).await).ok();
                }
            }
        };
        self.line_editor = Some(editor);
        Ok(match signal? {
            Signal::Success(text) => Entered::Text(without_continuations(&text)),
            Signal::HostCommand(_) => Entered::SwitchMode,
            Signal::CtrlC => Entered::Interrupt,
            Signal::CtrlD => Entered::End,
            _ => Entered::Text(String::new()),
        })
    }
}

/// A line that ends in a backslash continues in the next one.
struct Backslash;

impl Validator for Backslash {
    fn validate(&self, line: &str) -> ValidationResult {
        match line.ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// Removes the backslashes that continued a line.
fn without_continuations(text: &str) -> String {
    text.replace("\\\n", "\n")
}

struct ConversationCompleter {
    queries: UnboundedSender<FileQuery>,
}

impl ConversationCompleter {
    fn files(&self, typed: &str) -> Vec<String> {
        let (reply, files) = mpsc::channel();
        let query = FileQuery { typed: typed.into(), reply };
        if self.queries.send(query).is_err() {
            return Vec::new();
        }
        files.recv_timeout(COMPLETION_WAIT).unwrap_or_default()
    }
}

/// What can be completed at the end of a line.
#[derive(Debug, PartialEq, Eq)]
enum Completable<'l> {
    Command(&'l str),
    /// The part after `@`.
    File(&'l str),
    Nothing,
}

fn completable(line: &str) -> Completable<'_> {
    if line.starts_with('/') && !line.contains(char::is_whitespace) {
        return Completable::Command(line);
    }
    let word = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    word.strip_prefix('@').map_or(Completable::Nothing, Completable::File)
}

impl Completer for ConversationCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let before = line.get(..pos).unwrap_or(line);
        let (values, typed): (Vec<String>, &str) = match completable(before) {
            Completable::Command(typed) => {
                let commands = COMMANDS.iter().filter(|(name, _)| name.starts_with(typed));
                (commands.map(|(name, _)| name.to_string()).collect(), typed)
            }
            Completable::File(typed) => (self.files(typed), typed),
            Completable::Nothing => (Vec::new(), ""),
        };
        let span = Span { start: before.len() - typed.len(), end: before.len() };
        let suggestion = |value: String| Suggestion {
            value,
            span,
            append_whitespace: true,
            ..Suggestion::default()
        };
        CompletionResult::fresh(values.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

/// The prompt of a conversation.
pub(super) struct ConversationPrompt {
    pub(super) accepts_edits: bool,
    /// Agent and model.
    pub(super) about: String,
}

impl Prompt for ConversationPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(if self.accepts_edits { "accepts edits" } else { "" })
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.about)
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(if self.accepts_edits { " › " } else { "› " })
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let state = match search.status {
            PromptHistorySearchStatus::Passing => "history",
            PromptHistorySearchStatus::Failing => "not in the history",
        };
        Cow::Owned(format!("({state}: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_as_files_or_commands() {
        for (line, expected) in [
            ("/un", Completable::Command("/un")),
            ("/model x", Completable::Nothing),
            ("look at @src/ma", Completable::File("src/ma")),
            ("@", Completable::File("")),
            ("mail me@example", Completable::Nothing),
            ("done @a ", Completable::Nothing),
            ("", Completable::Nothing),
        ] {
            assert_eq!(completable(line), expected, "{line}");
        }
    }

    #[test]
    fn a_backslash_continues_a_line() {
        assert!(matches!(Backslash.validate("a\\"), ValidationResult::Incomplete));
        assert!(matches!(Backslash.validate("a\\\nb"), ValidationResult::Complete));
        assert_eq!(without_continuations("a\\\nb"), "a\nb");
        assert_eq!(without_continuations("a\nb\\x"), "a\nb\\x");
    }
}
