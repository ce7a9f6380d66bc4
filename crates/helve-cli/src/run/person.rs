//! The person at the terminal during a run: answers questions, and may accept edits without being asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve::{Action, Answer, Ask, BoxFuture, CallRef, Person, Question, Reply, Scope};
use tokio::sync::Mutex;

use super::keyboard::Keyboard;
use super::screen::Screen;
use crate::prompt::Terminal;

/// Whether edits are asked about.
#[derive(Default)]
pub(super) struct EditMode(AtomicBool);

impl EditMode {
    pub(super) fn accepts_edits(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches between asking about edits and accepting them.
    pub(super) fn toggle(&self) {
        self.0.fetch_xor(true, Ordering::Relaxed);
    }
}

/// Answers the questions of a run.
pub(super) struct RunPerson {
    pub(super) screen: Arc<Screen>,
    pub(super) keyboard: Arc<Keyboard>,
    pub(super) mode: Arc<EditMode>,
    /// Questions are asked one after the other.
    pub(super) asking: Mutex<()>,
}

impl Person for RunPerson {
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let _one_at_a_time = self.asking.lock().await;
            if self.mode.accepts_edits() && is_plain_edit(ask) {
                return Reply::Yes(Scope::Once);
            }
            let _keys = self.keyboard.pause().await;
            let _output = Held::new(&self.screen);
            self.screen.mark_shown(&call.root);
            Terminal.approve(call, ask).await
        })
    }

    fn takes_questions(&self) -> bool {
        true
    }

    fn question<'a>(
        &'a self,
        call: &'a CallRef,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Answer>> {
        Box::pin(async move {
            let _one_at_a_time = self.asking.lock().await;
            let _keys = self.keyboard.pause().await;
            let _output = Held::new(&self.screen);
            Terminal.question(call, question).await
        })
    }
}

/// Holds the output of a screen until it is dropped.
struct Held<'a>(&'a Screen);

impl<'a> Held<'a> {
    fn new(screen: &'a Screen) -> Self {
        screen.hold();
        Self(screen)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Whether everything that must be asked about is an edit that no rule singles out. Protected files and files that a
/// rule names are asked about in any mode.
fn is_plain_edit(ask: &Ask) -> bool {
    let parts = ask.parts.iter().zip(&ask.actions).zip(&ask.allow_flag_suffices);
    let mut asked = parts.filter(|((_, action), _)| **action != Action::Allow).peekable();
    asked.peek().is_some()
        && asked.all(|((part, _), no_rule_names_it)| {
            part.permission == "edit" && !part.via_shell && *no_rule_names_it
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve::Part;

    fn ask(parts: &[(&'static str, Action, bool)]) -> Ask {
        Ask {
            parts: parts.iter().map(|(permission, ..)| Part::new(*permission, "x")).collect(),
            actions: parts.iter().map(|(_, action, _)| *action).collect(),
            allow_flag_suffices: parts.iter().map(|(.., suffices)| *suffices).collect(),
            ..Ask::default()
        }
    }

    #[test]
    fn only_edits_without_a_rule_of_their_own_are_accepted() {
        for (parts, expected) in [
            (vec![("edit", Action::Ask, true)], true),
            (vec![("edit", Action::Ask, true), ("read", Action::Allow, false)], true),
            (vec![("edit", Action::Ask, false)], false),
            (vec![("edit", Action::Ask, true), ("external_directory", Action::Ask, true)], false),
            (vec![("bash", Action::Ask, true)], false),
            (vec![], false),
        ] {
            assert_eq!(is_plain_edit(&ask(&parts)), expected, "{parts:?}");
        }
    }
}
