//! The task that attends to a program: takes in what its warden says, and keeps its record.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::State;
use tokio::net::UnixStream;

use super::{News, Open, Program, Serving};
use crate::process::link::Warden;
use crate::process::pump::{PIPE, Pump};
use crate::process::records::{self, Record};
use crate::process::tree::Stat;
use crate::process::wire::Word;
use crate::process::{blocking, keeper};

/// How long nothing must be said, once the program itself has ended, for what it said to be all.
const SILENCE: Duration = Duration::from_millis(50);

/// And how long this is waited for, while others go on talking.
const DRAIN: Duration = Duration::from_millis(500);

/// How often this is looked at, where it is late.
const LOOK: Duration = Duration::from_millis(5);

/// Who kills a warden may kill the keeper by then.
const KEEPER_TOO: Duration = Duration::from_millis(200);

/// What is over by then needs no record.
const RECORDED_AFTER: Duration = Duration::from_millis(100);

/// Where other Helves find a program.
#[derive(Clone, Debug)]
pub(in crate::process) struct Recording {
    pub(in crate::process) folder: PathBuf,
    pub(in crate::process) until: Recorded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum Recorded {
    WhileItLives,
    /// So that others learn how it ended.
    AndAfter,
}

impl Program {
    /// Until nothing of the program lives and all it said has been taken in. Answers with the warden
    /// where it can watch over another one.
    pub(in crate::process) async fn attend(
        self: Arc<Self>,
        pump: Pump,
        recording: Recording,
    ) -> Option<Warden> {
        let listening = async {
            self.listen().await;
            let came = self.taken.lock().came;
            let mut news = self.news();
            // Somebody who is no part of the tree may hold the other end for ever.
            loop {
                let all = news.wait_for(|news| news.has_said_all);
                if tokio::time::timeout(DRAIN, all).await.is_ok() || self.has_taken_since(came) {
                    break;
                }
            }
        };
        let pumping = pump.run();
        let (mut listening, mut pumping) = (Box::pin(listening), Box::pin(pumping));
        let work = async {
            tokio::select! {
                () = &mut pumping => { listening.await; }
                () = &mut listening => {}
            }
        };
        let closing = async {
            work.await;
            // Whatever is still said by those who are out of reach is not listened to.
            self.said_all();
            self.let_go()
        };
        let (warden, (), ()) = tokio::join!(closing, self.drain(), self.record(recording));
        self.news.send_modify(|news| news.is_attended = true);
        warden
    }

    fn let_go(&self) -> Option<Warden> {
        let Open { link, warden, .. } = self.open.lock().take()?;
        // A confined program can reach its warden's limits, and that one the next program.
        let is_confined = self.news.borrow().is_confined;
        let link = Arc::into_inner(link).filter(|_| warden == Serving::Done && !is_confined)?;
        Some(Warden { pid: self.warden, link })
    }

    /// Until others can find it.
    pub(in crate::process) async fn recorded(&self) {
        self.news().wait_for(|news| news.is_recorded).await.ok();
    }

    /// Until there is nothing left to do for it.
    pub(in crate::process) async fn attended(&self) {
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
        let started = self.warden_started();
        loop {
            let now = *news.borrow_and_update();
            let folder = recording.folder.clone();
            if now.is_over() && recording.until == Recorded::WhileItLives {
                let id = self.id.clone();
                blocking(move || records::remove(&folder, &id)).await.ok();
                return;
            }
            let record = self.as_record(&now, started);
            // A record that cannot be written is one that others do not find; the program runs all the same.
            blocking(move || record.write(&folder).ok()).await.ok();
            self.news.send_modify(|news| news.is_recorded = true);
            let changed = |news: &News| news.state != now.state || news.is_over();
            if now.is_over() || news.wait_for(changed).await.is_err() {
                return;
            }
        }
    }

    pub(in crate::process) fn record_now(&self) -> Record {
        let started = self.warden_started();
        self.as_record(&self.news.borrow(), started)
    }

    /// With its id, what others know the warden by.
    fn warden_started(&self) -> u64 {
        self.tell_warden().and_then(Stat::of).map_or(0, |stat| stat.started)
    }

    fn as_record(&self, news: &News, started: u64) -> Record {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Record {
            id: self.id.clone(),
            about: self.about.clone(),
            warden: self.warden.as_raw_nonzero().get(),
            started,
            boot: records::boot(),
            program: self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
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
            // The warden was killed; the keeper ends what it left, unless it was killed, too.
            for pause in [Duration::ZERO, KEEPER_TOO] {
                tokio::time::sleep(pause).await;
                blocking(keeper::end_lost).await.ok();
            }
            self.all_ended(0);
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
        match word {
            Word::Withheld(what) => self.taken.lock().withheld.push(what),
            Word::Ended(state) => self.news.send_modify(|news| {
                news.state = state;
                news.ended = Some(Instant::now());
            }),
            Word::AllEnded(count) => {
                self.all_ended(count);
                // Whoever says this has nothing left to do.
                if let Some(open) = &mut *self.open.lock()
                    && open.warden == Serving::One
                {
                    open.warden = Serving::Done;
                }
            }
        }
    }

    fn all_ended(&self, count: u32) {
        // Before it is told: whoever hears of it may be gone with this process in the next moment.
        let held = self.open.lock().as_mut().map(|open| std::mem::take(&mut open.held));
        drop(held);
        self.news.send_modify(|news| {
            news.all_ended = Some(count);
            if news.state == State::Running {
                news.state = State::Lost;
                news.ended = Some(Instant::now());
            }
        });
    }

    /// Decides when the program itself has said all, though others may hold its pipe.
    async fn drain(&self) {
        let mut news = self.news();
        let Ok(ended) = news.wait_for(|news| news.ended.is_some()).await.map(|news| news.ended)
        else {
            return;
        };
        let (ended, came) = (ended.unwrap_or_else(Instant::now), self.taken.lock().came);
        loop {
            let (heard, is_holding) = {
                let taken = self.taken.lock();
                (taken.heard, taken.is_holding)
            };
            let due = match is_holding {
                true => ended + DRAIN,
                false => (heard.max(ended) + SILENCE).min(ended + DRAIN),
            };
            let now = Instant::now();
            if now >= due && self.has_taken_since(came) {
                break;
            }
            let closed = news.wait_for(News::has_closed);
            let next = due.min(now + SILENCE).max(now + LOOK);
            if tokio::time::timeout_at(next.into(), closed).await.is_ok() {
                break;
            }
        }
        self.news.send_modify(|news| news.is_drained = true);
    }

    /// Whether everything has been taken in that was said when so much had come: nothing waits to be
    /// read, or more has come since than can have waited.
    fn has_taken_since(&self, came: u64) -> bool {
        let source = self.open.lock().as_ref().map(|open| open.source.clone());
        let waits = source.is_some_and(|source| {
            rustix::io::ioctl_fionread(source.get_ref()).is_ok_and(|waiting| waiting > 0)
        });
        let taken = self.taken.lock();
        taken.came - came >= PIPE as u64 || (!waits && !taken.is_taking)
    }
}
