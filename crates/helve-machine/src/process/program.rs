//! One running program: what is known of it.

mod attend;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::{About, Keep, Output, Process, ProcessId, Spawn, State, Stdin, Withheld};
use parking_lot::Mutex;
use rustix::net::Shutdown;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::watch;

pub(super) use attend::{Recorded, Recording};

use super::kept::Kept;
use super::link::Warden;
use super::tree;
use crate::confine::Placeholders;

/// How long a line may be written before it is told though it has not ended. Until then what replaces
/// it, such as progress, leaves no trace; who sits at a terminal may be asked something.
const LINE: Duration = Duration::from_secs(2);
const LINE_AT_TERMINAL: Duration = Duration::from_millis(100);
const LINE_AFTER_END: Duration = Duration::from_millis(30);

#[derive(Debug)]
pub(super) struct Program {
    pub(super) id: ProcessId,
    pub(super) about: About,
    warden: Pid,
    /// Not known where the warden was killed before it could say.
    pid: Option<Pid>,
    pub(super) spool: Option<PathBuf>,
    pub(super) began: Instant,
    pub(super) is_terminal: bool,
    taken: Mutex<Taken>,
    news: watch::Sender<News>,
    /// How much was said. Not among the news, for it changes so often that only those should wake who wait for it.
    said: watch::Sender<u64>,
    /// Until it is over; what is remembered afterwards has nothing open.
    open: Mutex<Option<Open>>,
}

/// What was taken in so far.
#[derive(Debug)]
struct Taken {
    kept: Kept,
    /// How much of it the spool holds.
    spooled: u64,
    /// When something last came.
    heard: Instant,
    /// How much came, before it was made plain.
    came: u64,
    /// Whether something has been read that is not among the kept yet.
    is_taking: bool,
    /// Whether a line is held back that may still be rewritten.
    is_holding: bool,
    withheld: Vec<Withheld>,
}

#[derive(Debug)]
struct Open {
    link: Arc<UnixStream>,
    warden: Serving,
    source: Arc<AsyncFd<OwnedFd>>,
    /// What its confinement needs for as long as anything of it lives.
    held: Placeholders,
}

/// What a warden is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    /// It watches over the program.
    One,
    /// It has nothing to do any more, and can watch over another.
    Done,
    /// Who was told which process it is would mistake another program for this one.
    Known,
}

/// What changes while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) state: State,
    ended: Option<Instant>,
    /// Nothing more will be said, or not by the program itself.
    pub(super) is_drained: bool,
    pub(super) has_said_all: bool,
    /// Something stands in the workspace while it lives, and is to be gone when its end is told.
    is_confined: bool,
    /// Nothing that it started lives; so many were ended.
    pub(super) all_ended: Option<u32>,
    /// Others can find it.
    is_recorded: bool,
    /// It is over, and its record says so.
    is_attended: bool,
}

impl News {
    pub(super) fn has_ended(&self) -> bool {
        self.state != State::Running && (self.is_drained || self.has_closed())
    }

    /// It has said all, and what stood in the workspace for it is gone.
    fn has_closed(&self) -> bool {
        self.has_said_all && (!self.is_confined || self.all_ended.is_some())
    }

    /// Nothing is left to do for it.
    pub(super) fn is_attended(&self) -> bool {
        self.is_attended
    }

    /// Nothing will change any more.
    pub(super) fn is_over(&self) -> bool {
        self.all_ended.is_some() && self.has_said_all
    }
}

impl Program {
    pub(super) fn new(
        id: ProcessId,
        (warden, pid): (Warden, Option<Pid>),
        spawn: &Spawn,
        source: Arc<AsyncFd<OwnedFd>>,
        held: Placeholders,
    ) -> Arc<Program> {
        let now = Instant::now();
        let news = News {
            state: State::Running,
            ended: None,
            is_drained: false,
            has_said_all: false,
            is_confined: spawn.confine.is_some(),
            all_ended: None,
            is_recorded: false,
            is_attended: false,
        };
        let Keep { head, tail, spool, secrets: _ } = &spawn.keep;
        Arc::new(Program {
            id,
            about: spawn.about.clone(),
            warden: warden.pid,
            pid,
            spool: spool.as_ref().map(|spool| spool.path.clone()),
            began: now,
            is_terminal: matches!(spawn.stdin, Stdin::Terminal { .. }),
            taken: Mutex::new(Taken {
                kept: Kept::new(*head, *tail),
                spooled: 0,
                heard: now,
                came: 0,
                is_taking: false,
                is_holding: false,
                withheld: Vec::new(),
            }),
            news: watch::Sender::new(news),
            said: watch::Sender::new(0),
            open: Mutex::new(Some(Open {
                link: Arc::new(warden.link),
                warden: Serving::One,
                source,
                held,
            })),
        })
    }

    pub(super) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Takes in what was said. `spooled` and `redacted` are totals.
    pub(super) fn said(&self, bytes: &[u8], spooled: u64, redacted: u64) {
        if bytes.is_empty() {
            return;
        }
        let said = {
            let mut taken = self.taken.lock();
            taken.kept.push(bytes);
            taken.kept.redacted = redacted;
            taken.spooled = spooled;
            taken.kept.said
        };
        self.said.send_replace(said);
    }

    /// Follows how much was said.
    pub(super) fn saying(&self) -> watch::Receiver<u64> {
        self.said.subscribe()
    }

    /// Something may be read now.
    pub(super) fn takes(&self) {
        self.taken.lock().is_taking = true;
    }

    /// So much was read at this time, and is kept, or held back in part.
    pub(super) fn took(&self, bytes: usize, at: Instant, held: &[u8]) {
        let mut taken = self.taken.lock();
        taken.is_taking = false;
        taken.is_holding = !held.is_empty();
        if bytes > 0 {
            taken.heard = at;
            taken.came += bytes as u64;
        }
    }

    /// Until so long nothing came that what is held back of a line is all of it.
    pub(super) async fn quiet(&self, heard: Instant) {
        let mut news = self.news();
        loop {
            let has_ended = news.borrow_and_update().ended.is_some();
            let silence = match (has_ended, self.is_terminal) {
                (true, _) => LINE_AFTER_END,
                (false, true) => LINE_AT_TERMINAL,
                (false, false) => LINE,
            };
            let changed = news.wait_for(|news| news.ended.is_some() != has_ended);
            if !matches!(
                tokio::time::timeout_at((heard + silence).into(), changed).await,
                Ok(Ok(_))
            ) {
                return;
            }
        }
    }

    pub(super) fn said_all(&self) {
        self.news.send_modify(|news| news.has_said_all = true);
    }

    /// Some bytes of what was said, if they are in memory.
    pub(super) fn in_memory(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        self.taken.lock().kept.range(from, to)
    }

    /// How much of what was said is in memory.
    pub(super) fn in_memory_bytes(&self) -> usize {
        self.taken.lock().kept.bytes()
    }

    /// What is in memory of some bytes: from the beginning and from the end.
    pub(super) fn pieces(&self, from: u64, to: u64) -> [Vec<u8>; 2] {
        self.taken.lock().kept.pieces(from, to)
    }

    /// The newest bytes that are in memory, and where they begin.
    pub(super) fn newest(&self) -> (u64, Vec<u8>) {
        self.taken.lock().kept.newest()
    }

    /// The spool, and how much of what was said it holds.
    pub(super) fn spooled(&self) -> Option<(PathBuf, u64)> {
        self.spool.clone().map(|path| (path, self.taken.lock().spooled))
    }

    pub(super) fn output(&self) -> Output {
        let taken = self.taken.lock();
        let ends = taken.kept.ends();
        Output {
            head: ends.head,
            left_out: ends.left_out,
            tail: ends.tail,
            lines: taken.kept.lines(),
            bytes: taken.kept.said,
            spooled: self.spool.clone().map(|path| (path, taken.spooled)),
            redacted: taken.kept.redacted,
        }
    }

    /// As it is now. Looks at `/proc` unless everything has ended.
    pub(super) fn look(&self) -> Process {
        let news = *self.news.borrow();
        let life = self.beneath(|warden| tree::life(warden, self.pid)).unwrap_or_default();
        Process {
            id: self.id.clone(),
            about: self.about.clone(),
            state: news.state,
            children: life.children,
            waits: life.waits,
            worked: life.worked,
            took: news.ended.unwrap_or_else(Instant::now).duration_since(self.began),
            said: *self.said.borrow(),
            is_terminal: self.is_terminal,
            is_foreign: false,
            withheld: self.taken.lock().withheld.clone(),
            spool: self.spool.clone(),
        }
    }

    /// Looks at what lives beneath the warden. Nothing where all has ended: what is beneath it then may be another program.
    pub(super) fn beneath<T>(&self, look: impl FnOnce(Pid) -> T) -> Option<T> {
        if self.has_all_ended() {
            return None;
        }
        let seen = look(self.warden);
        (!self.has_all_ended()).then_some(seen)
    }

    /// The warden, for somebody who will know it from now on. Nothing where all has ended.
    pub(super) fn tell_warden(&self) -> Option<Pid> {
        let mut open = self.open.lock();
        open.as_mut()?.warden = Serving::Known;
        (!self.has_all_ended()).then_some(self.warden)
    }

    /// Whether looking takes no time.
    pub(super) fn has_all_ended(&self) -> bool {
        self.news.borrow().all_ended.is_some()
    }

    /// Asks the warden to end everything.
    pub(super) fn ask_to_end(&self) {
        if let Some(open) = &mut *self.open.lock() {
            open.warden = Serving::Known;
            // It fails where the warden is gone, and then there is nothing to ask.
            rustix::net::shutdown(&open.link, Shutdown::Write).ok();
        }
    }

    /// Where it can be typed into, while it lives.
    pub(super) fn terminal(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        let open = self.open.lock();
        open.as_ref().filter(|_| self.is_terminal).map(|open| open.source.clone())
    }
}
