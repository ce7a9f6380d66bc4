//! The person at the terminal during a run: answers questions, and may accept edits without being asked.
//!
//! Calls that run at the same time may wait for permission at the same time. They are shown together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve::{Action, Answer, Ask, BoxFuture, CallRef, Person, Question, Reply, Scope};
use tokio::sync::Mutex;

use super::keyboard::Keyboard;
use super::screen::Screen;
use crate::prompt::{self, Terminal};

/// How long a question waits for those of other calls that began at the same time.
const GATHERING_TIME: Duration = Duration::from_millis(30);

/// Whether edits need approval.
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
    pub(super) waiting: WaitingAsks,
}

/// The asks that wait for an answer, by their numbers.
#[derive(Default)]
pub(super) struct WaitingAsks(parking_lot::Mutex<BTreeMap<u64, WaitingAsk>>);

struct WaitingAsk {
    ask: Ask,
    reply: Option<Reply>,
    /// Whether the person wants to answer it separately.
    is_answered_separately: bool,
}

/// Keeps an ask in [`WaitingAsks`] until it is dropped.
struct WaitingGuard<'a> {
    asks: &'a WaitingAsks,
    number: u64,
}

impl WaitingAsks {
    fn add(&self, ask: &Ask) -> WaitingGuard<'_> {
        let mut asks = self.0.lock();
        let number = asks.last_key_value().map_or(0, |(number, _)| number + 1);
        asks.insert(
            number,
            WaitingAsk { ask: ask.clone(), reply: None, is_answered_separately: false },
        );
        WaitingGuard { asks: self, number }
    }

    /// The asks that can be answered together.
    fn together(&self) -> Vec<Ask> {
        let asks = self.0.lock();
        let open = asks.values().filter(|it| it.reply.is_none() && !it.is_answered_separately);
        open.map(|it| it.ask.clone()).collect()
    }

    /// Answers all of them, or with `None` lets the person answer each by itself.
    fn answer(&self, reply: Option<Reply>) {
        for waiting in self.0.lock().values_mut().filter(|it| it.reply.is_none()) {
            waiting.is_answered_separately |= reply.is_none();
            waiting.reply.clone_from(&reply);
        }
    }
}

impl WaitingGuard<'_> {
    fn reply(&self) -> Option<Reply> {
        self.asks.0.lock().get(&self.number)?.reply.clone()
    }

    fn is_answered_separately(&self) -> bool {
        self.asks.0.lock().get(&self.number).is_some_and(|it| it.is_answered_separately)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.asks.0.lock().remove(&self.number);
    }
}

impl RunPerson {
    /// Shows an ask, together with others that wait.
    async fn ask(&self, call: &CallRef, ask: &Ask, waiting: &WaitingGuard<'_>) -> Reply {
        tokio::time::sleep(GATHERING_TIME).await;
        let together = self.waiting.together();
        if waiting.is_answered_separately() || together.len() < 2 {
            return Terminal.approve(call, ask).await;
        }
        match prompt::approve_together(&together).await {
            Some('y') => self.waiting.answer(Some(Reply::Yes(Scope::Once))),
            Some('n') => self.waiting.answer(Some(Reply::No { note: None })),
            Some(_) => {
                self.waiting.answer(None);
                return Terminal.approve(call, ask).await;
            }
            None => return Reply::Unanswered,
        }
        waiting.reply().unwrap_or(Reply::Unanswered)
    }
}

impl Person for RunPerson {
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            if self.mode.accepts_edits() && is_plain_edit(ask) {
                return Reply::Yes(Scope::Once);
            }
            let waiting = self.waiting.add(ask);
            let _one_at_a_time = self.asking.lock().await;
            if let Some(reply) = waiting.reply() {
                return reply;
            }
            // It may have been switched while another question was open.
            if self.mode.accepts_edits() && is_plain_edit(ask) {
                return Reply::Yes(Scope::Once);
            }
            let _keys = self.keyboard.pause().await;
            let _output = Held::new(&self.screen);
            self.screen.mark_shown(&call.root_call);
            self.ask(call, ask, &waiting).await
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

/// Whether `--allow edit` would allow everything that needs approval: edits by tools, of files that are not protected
/// and that no rule names.
fn is_plain_edit(ask: &Ask) -> bool {
    let parts = ask.parts.iter().zip(&ask.actions).zip(&ask.can_be_allowed_by_option);
    let mut asked = parts.filter(|((_, action), _)| **action != Action::Allow).peekable();
    asked.peek().is_some()
        && asked.all(|((part, _), allowable)| {
            part.permission == "edit" && !part.via_shell && *allowable
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
            can_be_allowed_by_option: parts.iter().map(|(.., allowable)| *allowable).collect(),
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
