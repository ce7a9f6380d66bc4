//! The way to the thread that owns the connection: notes never wait, questions are answered in turn.

use std::time::{Duration, Instant};

use helve_core::event::{CallOutcome, Event, EventKind, Progress};
use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value};

use super::keeper::Keeper;

pub(crate) enum Job {
    Note(Event),
    Set(Setting),
    Ask(Box<dyn FnOnce(&mut Keeper) + Send>),
}

/// A slot and the text to be in it.
pub(crate) struct Setting {
    pub(crate) session: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// How long notes are collected before they are written together.
const LINGER: Duration = Duration::from_millis(10);
/// How many bytes of notes may wait.
const ROOM: usize = 32 << 20;
/// The part of it for news of running calls, which the end of a call replaces anyway.
const ROOM_FOR_PROGRESS: usize = ROOM / 2;
/// From here on nothing is gained by collecting more.
const PLENTY: usize = 1 << 20;
/// What a note weighs besides its text.
const NOTE: usize = 256;

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    news: Condvar,
    over: Condvar,
}

#[derive(Default)]
struct State {
    stage: Stage,
    jobs: Vec<Job>,
    weight: usize,
    /// Somebody waits for an answer.
    urgent: bool,
    /// The thread sleeps and must be woken even for a note.
    asleep: bool,
    lost: Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No thread yet.
    #[default]
    New,
    Open,
    /// The last handle is gone; what waits is still done.
    Closing,
    /// There is no thread any more.
    Over,
}

/// What found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) progress: u64,
    pub(crate) others: u64,
}

/// Which part of the room a job may take.
#[derive(Clone, Copy)]
enum Room {
    ForProgress,
    ForAll,
}

/// Whether a thread has to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    Missing,
    Started,
}

/// Whether the thread has something to do when nobody wants anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chores {
    Waiting,
    Done,
}

impl Queue {
    /// Queues an event if there is room, otherwise counts it.
    pub(crate) fn note(&self, event: Event) -> Thread {
        let weight = text_length(&event.what);
        let is_progress = matches!(event.what, EventKind::Progress(_));
        let room = if is_progress { Room::ForProgress } else { Room::ForAll };
        self.push(Job::Note(event), weight, room)
    }

    /// Queues the setting of a slot if there is room, otherwise counts it.
    pub(crate) fn set(&self, setting: Setting) -> Thread {
        let weight = setting.session.len() + setting.key.len() + setting.value.len();
        self.push(Job::Set(setting), weight, Room::ForAll)
    }

    fn push(&self, job: Job, weight: usize, room: Room) -> Thread {
        let weight = NOTE + weight;
        let mut state = self.state.lock();
        let most = match room {
            Room::ForProgress => ROOM_FOR_PROGRESS,
            Room::ForAll => ROOM,
        };
        if state.stage == Stage::Over || state.weight + weight > most {
            match room {
                Room::ForProgress => state.lost.progress += 1,
                Room::ForAll => state.lost.others += 1,
            }
            return Thread::Started;
        }
        state.jobs.push(job);
        state.weight += weight;
        if std::mem::take(&mut state.asleep) || state.weight > PLENTY {
            self.news.notify_one();
        }
        state.enter()
    }

    /// Queues a question. It is dropped unanswered when there is no thread any more.
    pub(crate) fn ask(&self, question: Box<dyn FnOnce(&mut Keeper) + Send>) -> Thread {
        let mut state = self.state.lock();
        if state.stage == Stage::Over {
            return Thread::Started;
        }
        state.jobs.push(Job::Ask(question));
        state.urgent = true;
        state.asleep = false;
        self.news.notify_one();
        state.enter()
    }

    /// The next jobs, in order; none to let chores be done; `None` when the last handle is gone.
    pub(crate) fn take(&self, chores: Chores) -> Option<Vec<Job>> {
        let mut state = self.state.lock();
        while state.jobs.is_empty() {
            match (state.stage, chores) {
                (Stage::Closing | Stage::Over, _) => return None,
                (Stage::New | Stage::Open, Chores::Waiting) => return Some(Vec::new()),
                (Stage::New | Stage::Open, Chores::Done) => {}
            }
            state.asleep = true;
            self.news.wait(&mut state);
            state.asleep = false;
        }
        let until = Instant::now() + LINGER;
        while !state.urgent && state.stage == Stage::Open && state.weight < PLENTY {
            if self.news.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.urgent = false;
        state.weight = 0;
        Some(std::mem::take(&mut state.jobs))
    }

    pub(crate) fn lost(&self) -> Lost {
        self.state.lock().lost
    }

    /// Lets the thread finish what waits, for this long at most.
    pub(crate) fn close(&self, patience: Duration) {
        let mut state = self.state.lock();
        if state.stage != Stage::Open {
            return;
        }
        state.stage = Stage::Closing;
        self.news.notify_one();
        let until = Instant::now() + patience;
        while state.stage != Stage::Over {
            if self.over.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    /// Says that there is no thread any more, so that nobody waits for it.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Over;
        let unanswered = std::mem::take(&mut state.jobs);
        self.over.notify_all();
        drop(state);
        drop(unanswered);
    }
}

impl State {
    fn enter(&mut self) -> Thread {
        match self.stage {
            Stage::New => {
                self.stage = Stage::Open;
                Thread::Missing
            }
            Stage::Open | Stage::Closing | Stage::Over => Thread::Started,
        }
    }
}

/// About how much memory an event takes that is its own. Arguments are shared with the call.
fn text_length(what: &EventKind) -> usize {
    match what {
        EventKind::Progress(Progress { title, metadata, .. }) => {
            title.as_ref().map_or(0, String::len) + fields_length(metadata)
        }
        EventKind::Finished(CallOutcome::Completed { title, metadata, output }) => {
            title.len() + fields_length(metadata) + output.len()
        }
        EventKind::Finished(CallOutcome::Failed { error, .. }) => error.len(),
        EventKind::Started { .. }
        | EventKind::Running { .. }
        | EventKind::Edited { .. }
        | EventKind::Asked { .. }
        | EventKind::Answered { .. } => 0,
    }
}

/// Long texts in metadata, such as diffs, are at its top.
fn fields_length(metadata: &Map<String, Value>) -> usize {
    metadata.values().map(|value| NOTE + value.as_str().map_or(0, str::len)).sum()
}

#[cfg(test)]
mod tests;
