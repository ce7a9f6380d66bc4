//! One running program: what is known of it, and the task that attends to it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::{About, Keep, Output, Process, ProcessId, Spawn, State, Stdin};
use parking_lot::Mutex;
use rustix::net::Shutdown;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::kept::Kept;
use super::link::Warden;
use super::pump::Pump;
use super::records::{self, Record};
use super::tree::{self, Stat};
use super::wire::Word;

/// How long nothing must be said, once the program itself has ended, for what it said to be all.
const SILENCE: Duration = Duration::from_millis(50);

/// And how long this is waited for, while others go on talking.
const DRAIN: Duration = Duration::from_millis(500);

/// How long a line may be written before it is told though it has not ended. Until then what replaces
/// it, such as progress, leaves no trace; who sits at a terminal may be asked something.
const LINE: Duration = Duration::from_secs(2);
const LINE_AT_TERMINAL: Duration = Duration::from_millis(100);
const LINE_AFTER_END: Duration = Duration::from_millis(30);

/// What is over by then needs no record.
const RECORDED_AFTER: Duration = Duration::from_millis(100);

/// Where other Helves find a program.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    pub(super) folder: PathBuf,
    pub(super) until: Recorded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    WhileItLives,
    /// So that others learn how it ended.
    AndAfter,
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) id: ProcessId,
    pub(super) about: About,
    pub(super) warden: Pid,
    pub(super) pid: Pid,
    pub(super) spool: Option<PathBuf>,
    pub(super) began: Instant,
    pub(super) is_terminal: bool,
    kept: Mutex<(Kept, u64)>,
    news: watch::Sender<News>,
    /// Until it is over; what is remembered afterwards has nothing open.
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    link: Arc<UnixStream>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
}

/// What changes while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) state: State,
    ended: Option<Instant>,
    /// When something was last said, and how much in all.
    heard: Instant,
    pub(super) said: u64,
    /// Nothing more will be said, or not by the program itself.
    pub(super) is_drained: bool,
    pub(super) has_said_all: bool,
    /// Nothing that it started lives; so many were ended.
    pub(super) all_ended: Option<u32>,
    /// Others can find it.
    is_recorded: bool,
    /// It is over, and its record says so.
    is_attended: bool,
}

impl News {
    pub(super) fn has_ended(&self) -> bool {
        self.state != State::Running && (self.is_drained || self.has_said_all)
    }

    /// Nothing will change any more.
    pub(super) fn is_over(&self) -> bool {
        self.all_ended.is_some() && self.has_said_all
    }
}

impl Program {
    pub(super) fn new(
        id: ProcessId,
        warden: Warden,
        spawn: &Spawn,
        source: &Arc<AsyncFd<OwnedFd>>,
    ) -> Arc<Program> {
        let Warden { pid, program, link } = warden;
        let now = Instant::now();
        let news = News {
            state: State::Running,
            ended: None,
            heard: now,
            said: 0,
            is_drained: false,
            has_said_all: false,
            all_ended: None,
            is_recorded: false,
            is_attended: false,
        };
        let Keep { head, tail, spool, secrets: _ } = &spawn.keep;
        let terminal = match spawn.stdin {
            Stdin::Closed => None,
            Stdin::Terminal { .. } => Some(source.clone()),
        };
        Arc::new(Program {
            id,
            about: spawn.about.clone(),
            warden: pid,
            pid: program,
            spool: spool.as_ref().map(|spool| spool.path.clone()),
            began: now,
            is_terminal: terminal.is_some(),
            kept: Mutex::new((Kept::new(*head, *tail), 0)),
            news: watch::Sender::new(news),
            open: Mutex::new(Some(Open { link: Arc::new(link), terminal })),
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
            let mut kept = self.kept.lock();
            kept.0.push(bytes);
            kept.0.redacted = redacted;
            kept.1 = spooled;
            kept.0.said
        };
        self.news.send_modify(|news| news.said = said);
    }

    /// Something came, though it may be held back.
    pub(super) fn hears(&self, at: Instant) {
        self.news.send_modify(|news| news.heard = at);
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
        self.kept.lock().0.range(from, to)
    }

    /// What is in memory of some bytes: from the beginning and from the end.
    pub(super) fn pieces(&self, from: u64, to: u64) -> [Vec<u8>; 2] {
        self.kept.lock().0.pieces(from, to)
    }

    /// The newest bytes that are in memory, and where they begin.
    pub(super) fn newest(&self) -> (u64, Vec<u8>) {
        self.kept.lock().0.newest()
    }

    /// The spool, and how much of what was said it holds.
    pub(super) fn spooled(&self) -> Option<(PathBuf, u64)> {
        self.spool.clone().map(|path| (path, self.kept.lock().1))
    }

    pub(super) fn output(&self) -> Output {
        let kept = self.kept.lock();
        let ends = kept.0.ends();
        Output {
            head: ends.head,
            left_out: ends.left_out,
            tail: ends.tail,
            lines: kept.0.lines(),
            bytes: kept.0.said,
            spooled: self.spool.clone().map(|path| (path, kept.1)),
            redacted: kept.0.redacted,
        }
    }

    /// As it is now. Looks at `/proc` unless everything has ended.
    pub(super) fn look(&self) -> Process {
        let news = *self.news.borrow();
        Process {
            id: self.id.clone(),
            about: self.about.clone(),
            state: news.state,
            children: match news.all_ended {
                Some(_) => Vec::new(),
                None => tree::members(self.warden, Some(self.pid)),
            },
            took: news.ended.unwrap_or_else(Instant::now).duration_since(self.began),
            said: news.said,
            is_terminal: self.is_terminal,
            is_foreign: false,
            spool: self.spool.clone(),
        }
    }

    /// Whether looking takes no time.
    pub(super) fn has_all_ended(&self) -> bool {
        self.news.borrow().all_ended.is_some()
    }

    /// Asks the warden to end everything.
    pub(super) fn ask_to_end(&self) {
        if let Some(open) = &*self.open.lock() {
            // It fails where the warden is gone, and then there is nothing to ask.
            rustix::net::shutdown(&open.link, Shutdown::Write).ok();
        }
    }

    /// Where it can be typed into, while it lives.
    pub(super) fn terminal(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        self.open.lock().as_ref().and_then(|open| open.terminal.clone())
    }

    /// Until nothing of the program lives and all it said has been taken in.
    pub(super) async fn attend(self: Arc<Self>, pump: Pump, recording: Recording) {
        let listening = async {
            self.listen().await;
            // Somebody who is no part of the tree may hold the other end for ever.
            let mut news = self.news();
            let all = news.wait_for(|news| news.has_said_all);
            tokio::time::timeout(DRAIN, all).await.is_ok()
        };
        let pumping = pump.run();
        let (mut listening, mut pumping) = (Box::pin(listening), Box::pin(pumping));
        let work = async {
            tokio::select! {
                () = &mut pumping => { listening.await; }
                _ = &mut listening => {}
            }
        };
        let closing = async {
            work.await;
            self.open.lock().take();
        };
        tokio::join!(closing, self.drain(), self.record(recording));
        self.news.send_modify(|news| news.is_attended = true);
    }

    /// Until others can find it.
    pub(super) async fn recorded(&self) {
        self.news().wait_for(|news| news.is_recorded).await.ok();
    }

    /// Until there is nothing left to do for it.
    pub(super) async fn attended(&self) {
        self.news().wait_for(|news| news.is_attended).await.ok();
    }

    /// Keeps a record of what lives on.
    async fn record(&self, recording: Recording) {
        let mut news = self.news();
        if recording.until == Recorded::WhileItLives {
            let over = news.wait_for(News::is_over);
            if tokio::time::timeout(RECORDED_AFTER, over).await.is_ok() {
                return;
            }
        }
        let started = Stat::of(self.warden).map_or(0, |stat| stat.started);
        loop {
            let now = *news.borrow_and_update();
            let folder = recording.folder.clone();
            if now.is_over() && recording.until == Recorded::WhileItLives {
                let id = self.id.clone();
                super::blocking(move || records::remove(&folder, &id)).await.ok();
                return;
            }
            let record = self.as_record(&now, started);
            // A record that cannot be written is one that others do not find; the program runs all the same.
            super::blocking(move || record.write(&folder).ok()).await.ok();
            self.news.send_modify(|news| news.is_recorded = true);
            let changed = |news: &News| news.state != now.state || news.is_over();
            if now.is_over() || news.wait_for(changed).await.is_err() {
                return;
            }
        }
    }

    pub(super) fn record_now(&self) -> Record {
        let started = Stat::of(self.warden).map_or(0, |stat| stat.started);
        self.as_record(&self.news.borrow(), started)
    }

    fn as_record(&self, news: &News, started: u64) -> Record {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Record {
            id: self.id.clone(),
            about: self.about.clone(),
            warden: self.warden.as_raw_nonzero().get(),
            started,
            boot: records::boot(),
            program: self.pid.as_raw_nonzero().get(),
            began: records::now().saturating_sub(milliseconds(self.began.elapsed())),
            spool: self.spool.clone(),
            is_terminal: self.is_terminal,
            state: news.state,
            took: news.ended.map(|ended| milliseconds(ended.duration_since(self.began))),
            is_over: news.is_over(),
        }
    }

    async fn listen(&self) {
        let link = self.open.lock().as_ref().map(|open| open.link.clone());
        if let Some(link) = link {
            self.listen_to(&link).await;
        }
        if !self.has_all_ended() {
            // The warden was killed; the keeper ends what it left.
            self.heard(Word::AllEnded(0));
        }
    }

    async fn listen_to(&self, link: &UnixStream) {
        let mut bytes = Vec::new();
        loop {
            let mut buffer = [0; 4 * Word::SIZE];
            match link.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if link.readable().await.is_err() {
                        break;
                    }
                    continue;
                }
                Err(_) => break,
            }
            while let Some((word, rest)) = bytes.split_first_chunk() {
                if let Some(word) = Word::decode(*word) {
                    self.heard(word);
                }
                bytes = rest.to_vec();
            }
            if self.has_all_ended() {
                break;
            }
        }
    }

    fn heard(&self, word: Word) {
        let now = Instant::now();
        self.news.send_modify(|news| match word {
            Word::Ended(state) => {
                news.state = state;
                news.ended = Some(now);
            }
            Word::AllEnded(count) => {
                news.all_ended = Some(count);
                if news.state == State::Running {
                    news.state = State::Lost;
                    news.ended = Some(now);
                }
            }
        });
    }

    /// Decides when the program itself has said all, though others may hold its pipe.
    async fn drain(&self) {
        let mut news = self.news();
        loop {
            let now = *news.borrow_and_update();
            let Some(ended) = now.ended else {
                if news.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let due = (now.heard.max(ended) + SILENCE).min(ended + DRAIN);
            if now.has_said_all || Instant::now() >= due {
                break;
            }
            let said_all = news.wait_for(|news| news.has_said_all);
            if tokio::time::timeout_at(due.into(), said_all).await.is_ok() {
                break;
            }
        }
        self.news.send_modify(|news| news.is_drained = true);
    }
}
