//! Asks for permission at the terminal: shows what would happen, then reads one key.

mod question;

use std::io::{BufRead, Write};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use helve::{Action, Answer, Ask, BoxFuture, CallRef, Person, Question, Reply, Scope, visible};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::output::{self, BOLD, CYAN, DIM, PLAIN};

/// The person at the terminal.
pub(crate) struct Terminal;

/// Notified when Ctrl-C is pressed at a question. In raw mode Ctrl-C is a key and sends no signal.
pub(crate) static INTERRUPT: Notify = Notify::const_new();

/// The preview that the last question showed, so that a result need not repeat it.
static SHOWN: Mutex<String> = Mutex::new(String::new());

/// Whether the last question showed this diff.
pub(crate) fn was_shown(diff: &str) -> bool {
    !diff.is_empty() && SHOWN.lock().contains(diff)
}

/// What [`read_key`] returns for Ctrl-C.
const CTRL_C: char = '\u{3}';

impl Person for Terminal {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let question = ask_text(ask);
        let lasting = ask.parts.iter().any(|part| part.remember_as.is_some());
        SHOWN.lock().clone_from(&ask.preview);
        Box::pin(async move {
            let answered = tokio::task::spawn_blocking(move || answer(&question, lasting)).await;
            match answered {
                Ok(Ok(reply)) => reply,
                // A terminal that cannot be read gives no answer.
                Ok(Err(_)) | Err(_) => Reply::Unanswered,
            }
        })
    }

    fn takes_questions(&self) -> bool {
        true
    }

    fn question<'a>(
        &'a self,
        _call: &'a CallRef,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Answer>> {
        let question = question.clone();
        Box::pin(async move {
            let answered = tokio::task::spawn_blocking(move || question::answer(&question)).await;
            // A terminal that cannot be read gives no answer.
            answered.ok()?.ok()?
        })
    }
}

/// Shows a question and waits for one of these keys. Returns `None` for Ctrl-C or a terminal that cannot be read. `n`
/// and Escape also give `None`, unless `n` is one of `keys`.
pub(crate) async fn choose(question: &str, keys: &'static [char]) -> Option<char> {
    let question = question.to_string();
    let chosen = tokio::task::spawn_blocking(move || -> std::io::Result<Option<char>> {
        let mut err = anstream::stderr().lock();
        write!(err, "{question}")?;
        err.flush()?;
        let chosen = loop {
            match read_key()? {
                key if keys.contains(&key) => break Some(key),
                'n' | CTRL_C => break None,
                _ => {}
            }
        };
        writeln!(err, "{}", chosen.unwrap_or('n'))?;
        Ok(chosen)
    });
    chosen.await.ok()?.ok()?
}

/// Shows the asks of several calls. Returns `y` for all, `n` for none, `o` for one by one, and `None` for Ctrl-C or a
/// terminal that cannot be read.
pub(crate) async fn approve_together(asks: &[Ask]) -> Option<char> {
    let listed: String = asks.iter().map(listed).collect();
    let calls = asks.len();
    let question = format!(
        "\n{BOLD}{calls} calls are waiting for permission:{PLAIN}\n{listed}{BOLD}[y] allow all once{PLAIN}  [o] one by one  [n] none: "
    );
    choose(&question, &['y', 'o', 'n']).await
}

/// Lists everything that would happen, with invisible characters escaped.
fn ask_text(ask: &Ask) -> String {
    format!("\n{BOLD}Allow this?{PLAIN}\n{}", listed(ask))
}

/// Lists the parts of an ask, and who asks.
fn listed(ask: &Ask) -> String {
    let mut text = String::new();
    if !ask.from.is_empty() {
        text.push_str(&format!("  {DIM}asked by {}{PLAIN}\n", ask.from.join(" › ")));
    }
    for (index, part) in ask.parts.iter().enumerate() {
        let subjects: Vec<_> =
            part.subjects.iter().map(|subject| visible::escape_line(subject)).collect();
        let is_allowed = ask.actions.get(index) == Some(&Action::Allow);
        let remark = match ask.reasons.get(index) {
            _ if is_allowed => format!(" {DIM}(allowed by a rule){PLAIN}"),
            Some(reason) if !reason.is_empty() => {
                format!(" {DIM}({}){PLAIN}", visible::escape_line(reason))
            }
            Some(_) | None => String::new(),
        };
        text.push_str(&format!(
            "  {CYAN}{}{PLAIN} {}{remark}\n",
            part.permission,
            subjects.join(&format!(" {DIM}given as{PLAIN} "))
        ));
        if is_allowed {
            continue;
        }
        if let Some(always) = &part.remember_as
            && always.as_str() != part.subject()
        {
            let shown = visible::escape_line(always.as_str());
            text.push_str(&format!(
                "    {DIM}a lasting approval would add the rule: {shown}{PLAIN}\n"
            ));
        }
    }
    text.push_str(&output::colour_diff(&ask.preview, "  "));
    text
}

fn answer(question: &str, lasting: bool) -> std::io::Result<Reply> {
    let lasting_answers =
        if lasting { "[s] this session  [p] this project  [e] everywhere  " } else { "" };
    let mut err = anstream::stderr().lock();
    // The terminal's current line may still show the progress of the call, so it is cleared.
    write!(err, "\x1b[2K{question}")?;
    err.flush()?;
    // Enabled before the choices are written, so that a key pressed early is not echoed.
    enable_raw_mode()?;
    let written =
        write!(err, "{BOLD}[y] once{PLAIN}  {lasting_answers}[n] no  [w] no, with a note: ")
            .and_then(|()| err.flush());
    if let Err(error) = written {
        disable_raw_mode()?;
        return Err(error);
    }
    let reply = loop {
        match read_key()? {
            'y' => break Reply::Yes(Scope::Once),
            's' if lasting => break Reply::Yes(Scope::Session),
            'p' if lasting => break Reply::Yes(Scope::Project),
            'e' if lasting => break Reply::Yes(Scope::Everywhere),
            'n' => break Reply::No { note: None },
            CTRL_C => {
                INTERRUPT.notify_one();
                break Reply::Unanswered;
            }
            'w' => {
                write!(err, "\nNote for the model: ")?;
                err.flush()?;
                let mut note = String::new();
                std::io::stdin().lock().read_line(&mut note)?;
                let note = Some(note.trim().to_string()).filter(|note| !note.is_empty());
                return Ok(Reply::No { note });
            }
            _ => {}
        }
    };
    let shown = match &reply {
        Reply::Yes(Scope::Once) => "yes, once",
        Reply::Yes(Scope::Session) => "yes, for this session",
        Reply::Yes(Scope::Project) => "yes, for this project",
        Reply::Yes(Scope::Everywhere) => "yes, everywhere",
        Reply::No { .. } | Reply::Declined | Reply::Unanswered => "no",
    };
    writeln!(err, "{shown}")?;
    Ok(reply)
}

/// Reads the next key in raw mode, then disables raw mode. Escape means no.
fn read_key() -> std::io::Result<char> {
    enable_raw_mode()?;
    let pressed = loop {
        match read() {
            Ok(Event::Key(KeyEvent { code, modifiers, .. })) => {
                if code == KeyCode::Esc {
                    break Ok('n');
                }
                if code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
                    break Ok(CTRL_C);
                }
                if let KeyCode::Char(typed) = code {
                    break Ok(typed.to_ascii_lowercase());
                }
            }
            Ok(_) => {}
            Err(err) => break Err(err),
        }
    };
    disable_raw_mode()?;
    pressed
}
