//! Keys that a person presses while a turn runs: a line of text for the model, or Escape to abort.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use helve::agent_loop::inbox::Inbox;
use helve::visible;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

use super::screen::Screen;
use crate::call;
use crate::output::{self, BOLD, DIM, PLAIN};

/// How long the keyboard is watched before others get a chance to read it.
const POLL: Duration = Duration::from_millis(50);
/// Maximum length of a line typed during a turn.
const MAX_TYPED: usize = 10_000;

/// The keyboard, which one reader at a time may use.
#[derive(Default)]
pub(super) struct Keyboard {
    /// Whether reading is paused. The reader holds this lock while it reads.
    is_paused: Mutex<bool>,
    resumed: Condvar,
    /// The terminal's original settings; `Some` while ours are in force.
    original: Mutex<Option<Termios>>,
}

/// Aborts the turn at the first Ctrl-C. At the second, ends the process.
pub(super) async fn abort_on_ctrl_c(keyboard: Arc<Keyboard>, cancel: CancellationToken) {
    call::first_ctrl_c(&cancel).await;
    if tokio::signal::ctrl_c().await.is_ok() {
        keyboard.restore_terminal();
        #[expect(clippy::exit, reason = "second Ctrl-C: exit without waiting")]
        std::process::exit(130);
    }
}

/// Keeps the keys of a turn from being read until it is dropped.
pub(super) struct PausedKeyboard(Arc<Keyboard>);

impl Drop for PausedKeyboard {
    fn drop(&mut self) {
        *self.0.is_paused.lock() = false;
        self.0.resumed.notify_all();
    }
}

impl Keyboard {
    /// Stops the reading of keys, and waits until nobody reads.
    pub(super) async fn pause(self: &Arc<Self>) -> PausedKeyboard {
        let keyboard = self.clone();
        // The lock is released within the time of one poll.
        let paused = tokio::task::spawn_blocking(move || *keyboard.is_paused.lock() = true);
        let keyboard = PausedKeyboard(self.clone());
        paused.await.ok();
        keyboard
    }

    /// Reads the next key, unless the keyboard is paused or no key is pressed within a short time.
    fn read(&self) -> std::io::Result<Option<Event>> {
        let mut is_paused = self.is_paused.lock();
        if *is_paused {
            self.resumed.wait_for(&mut is_paused, POLL);
            return Ok(None);
        }
        let key = match poll(POLL)? {
            true => Some(read()?),
            false => None,
        };
        MutexGuard::unlock_fair(is_paused);
        Ok(key)
    }
}

/// Reads keys during a turn, until it is stopped.
pub(super) struct Typing {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

/// Handles the keys of a turn.
pub(super) struct KeyHandler {
    pub(super) keyboard: Arc<Keyboard>,
    pub(super) screen: Arc<Screen>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) cancel: CancellationToken,
}

impl Typing {
    pub(super) fn start(handler: KeyHandler) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = std::thread::spawn(move || watch(&handler, &is_stopped));
        Self { stop, thread }
    }

    /// Stops reading keys and restores the terminal.
    pub(super) async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        tokio::task::spawn_blocking(move || self.thread.join().ok()).await.ok();
    }
}

impl Keyboard {
    /// Makes the terminal pass on each key at once, without showing it. Ctrl-C still sends a signal.
    fn change_terminal(&self) {
        let stdin = std::io::stdin();
        let Ok(original) = tcgetattr(&stdin) else { return };
        let mut changed = original.clone();
        changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        if tcsetattr(&stdin, OptionalActions::Now, &changed).is_ok() {
            *self.original.lock() = Some(original);
        }
    }

    fn restore_terminal(&self) {
        if let Some(original) = self.original.lock().take() {
            // A terminal that is gone needs no restoring.
            tcsetattr(std::io::stdin(), OptionalActions::Now, &original).ok();
        }
    }
}

fn watch(handler: &KeyHandler, stop: &AtomicBool) {
    handler.keyboard.change_terminal();
    let mut typed = String::new();
    while !stop.load(Ordering::Relaxed) {
        match handler.keyboard.read() {
            Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                handler.handle(key, &mut typed);
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    handler.keyboard.restore_terminal();
    if !typed.is_empty() {
        // The turn has ended, so the inbox hands this back to the editor, which offers it at the next prompt.
        output::note("");
        handler.inbox.steer(typed);
        handler.screen.release();
    }
}

impl KeyHandler {
    fn handle(&self, key: KeyEvent, typed: &mut String) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let was_empty = typed.is_empty();
        match key.code {
            KeyCode::Esc if was_empty => return self.cancel.cancel(),
            KeyCode::Enter if was_empty => return,
            KeyCode::Enter => {
                output::status("");
                self.screen.release();
                let note = format!("{DIM}(the model sees this before its next reply){PLAIN}");
                self.screen.line(format!("{BOLD}›{PLAIN} {} {note}", visible::escape_line(typed)));
                return self.inbox.steer(std::mem::take(typed));
            }
            KeyCode::Esc => typed.clear(),
            KeyCode::Char('u') if is_control => typed.clear(),
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Char(c) if !is_control && typed.len() < MAX_TYPED => typed.push(c),
            _ => return,
        }
        if typed.is_empty() {
            output::status("");
            return self.screen.release();
        }
        if was_empty {
            self.screen.hold();
        }
        output::typed_line(&format!("{BOLD}›{PLAIN} "), &visible::escape_line(typed));
    }
}
