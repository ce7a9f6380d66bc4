//! Programs: started through a keeper, so that none can hang a call and none is left behind.
#![expect(
    clippy::disallowed_methods,
    reason = "this room starts programs, reads /proc, and writes spools and records in the data folder"
)]

mod detached;
mod foreign;
pub mod keeper;
mod kept;
mod link;
mod port;
mod program;
mod pump;
mod records;
mod spool;
mod starting;
mod sys;
mod tree;
mod watching;
mod wire;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::process::{
    Confinement, Output, Process, ProcessError, ProcessId, Processes, Signal, Spawn, SpawnError,
    Support, Watch, Watched,
};
use parking_lot::Mutex;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

pub use link::Keeper;

use crate::confine;
use link::Link;
use program::{News, Program};
use records::Record;

/// How long a warden may take to end its tree before Helve does it itself.
const ENDING: Duration = Duration::from_millis(800);

/// How long typing may wait for somebody to read it.
const TYPING: Duration = Duration::from_secs(5);

/// How programs are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What becomes the keeper, or why there is none.
    pub keeper: Result<Keeper, String>,
    /// A private folder where the Helves of a user tell each other what runs.
    pub records: PathBuf,
    /// How many may run at once.
    pub most_running: usize,
    /// How many are remembered, those that ended included.
    pub most_remembered: usize,
}

impl Settings {
    pub fn new(keeper: Keeper, records: impl Into<PathBuf>) -> Self {
        Settings {
            keeper: Ok(keeper),
            records: records.into(),
            most_running: 64,
            most_remembered: 512,
        }
    }
}

/// The programs of this machine. Dropping it ends those that this Helve started.
#[derive(Clone, Debug)]
pub struct Programs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    link: Arc<Link>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    starting: usize,
    running: Vec<Entry>,
    /// What is remembered of those that are over, in the order in which this was found.
    over: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    program: Arc<Program>,
    attending: AbortHandle,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // With the task goes the link to the warden, and with that the program.
        self.attending.abort();
    }
}

impl Programs {
    pub fn new(settings: Settings) -> Self {
        let link = Link::new(settings.keeper.clone());
        Programs { shared: Arc::new(Shared { settings, link, table: Mutex::default() }) }
    }

    async fn find(&self, id: &ProcessId) -> Result<Found, ProcessError> {
        if let Some(program) = self.shared.table.lock().find(id) {
            return Ok(Found::Own(program));
        }
        let (folder, id) = (self.shared.settings.records.clone(), id.clone());
        blocking(move || foreign::find(&folder, &id))
            .await?
            .map(|record| Found::Foreign(Box::new(record)))
    }
}

/// Whose program it is.
enum Found {
    Own(Arc<Program>),
    Foreign(Box<Record>),
}

impl Processes for Programs {
    fn spawn(&self, want: Spawn) -> BoxFuture<'static, Result<ProcessId, SpawnError>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.spawn(want).await })
    }

    fn watch<'a>(
        &'a self,
        id: &'a ProcessId,
        want: Watch,
    ) -> BoxFuture<'a, Result<Watched, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                Found::Own(program) => watching::watch(program, want).await,
                Found::Foreign(record) => {
                    foreign::watch(self.shared.settings.records.clone(), *record, want).await
                }
            }
        })
    }

    fn output<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<Output, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                Found::Own(program) => Ok(program.output()),
                Found::Foreign(record) => blocking(move || foreign::output(&record)).await,
            }
        })
    }

    fn type_in<'a>(
        &'a self,
        id: &'a ProcessId,
        bytes: Bytes,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                Found::Own(program) => type_in(&program, &bytes).await,
                Found::Foreign(record) if !record.is_terminal => Err(ProcessError::NoTerminal),
                Found::Foreign(_) => Err(ProcessError::Foreign),
            }
        })
    }

    fn signal<'a>(
        &'a self,
        id: &'a ProcessId,
        signal: Signal,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async move {
            let signals = numbers(signal);
            match self.find(id).await? {
                Found::Own(program) => {
                    let warden = program.tell_warden();
                    let warden = warden.ok_or(ProcessError::Ended)?;
                    let told = blocking(move || tree::signal(warden, signals)).await?;
                    if told.is_empty() { Err(ProcessError::Ended) } else { Ok(()) }
                }
                Found::Foreign(record) => {
                    blocking(move || foreign::signal(&record, signals)).await?
                }
            }
        })
    }

    fn end<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<usize, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                Found::Own(program) => end(program).await,
                Found::Foreign(record) => blocking(move || foreign::end(&record)).await?,
            }
        })
    }

    fn list(&self) -> BoxFuture<'_, Vec<Process>> {
        Box::pin(async move {
            let programs = self.shared.table.lock().all();
            let folder = self.shared.settings.records.clone();
            blocking(move || list(&programs, &folder)).await.unwrap_or_default()
        })
    }

    fn confinement(&self) -> BoxFuture<'_, Confinement> {
        let keeper = self.shared.settings.keeper.clone();
        Box::pin(async move {
            let found = match keeper {
                Ok(_) => blocking(confine::probe).await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
            match found {
                Ok(found) => Confinement { processes: keeper::bounds_processes(), ..found },
                Err(why) => {
                    let no = || Support::No(why.clone());
                    Confinement { writes: no(), protected: no(), network: no(), processes: no() }
                }
            }
        })
    }
}

/// Our own and those of others, oldest first.
fn list(programs: &[Arc<Program>], folder: &Path) -> Vec<Process> {
    let now = records::now();
    let mut all: Vec<_> =
        programs.iter().map(|program| (program.began.elapsed(), program.look())).collect();
    for record in Record::all(folder) {
        if !programs.iter().any(|program| program.id == record.id) {
            let age = Duration::from_millis(now.saturating_sub(record.began));
            all.push((age, foreign::look(&record)));
        }
    }
    all.sort_by_key(|(age, _)| Reverse(*age));
    all.into_iter().map(|(_, process)| process).collect()
}

/// How much of what ended programs said is kept in memory, of all together.
const MOST_KEPT: usize = 32 << 20;

impl Table {
    fn add(&mut self, entry: Entry, most: usize) {
        self.running.push(entry);
        let over = self.running.extract_if(.., |entry| entry.program.news().borrow().is_attended());
        self.over.extend(over);
        let mut kept: usize = self.over.iter().map(|entry| entry.program.in_memory_bytes()).sum();
        while self.running.len() + self.over.len() > most || kept > MOST_KEPT {
            let Some(oldest) = self.over.pop_front() else { break };
            kept -= oldest.program.in_memory_bytes();
        }
    }

    /// Those that were asked for last are mostly the newest.
    fn find(&self, id: &ProcessId) -> Option<Arc<Program>> {
        let mut all = self.running.iter().rev().chain(self.over.iter().rev());
        all.find(|entry| entry.program.id == *id).map(|entry| entry.program.clone())
    }

    fn all(&self) -> Vec<Arc<Program>> {
        self.over.iter().chain(&self.running).map(|entry| entry.program.clone()).collect()
    }

    fn running(&self) -> usize {
        self.running.iter().filter(|entry| !entry.program.has_all_ended()).count() + self.starting
    }
}

async fn type_in(program: &Program, bytes: &[u8]) -> Result<(), ProcessError> {
    if !program.is_terminal {
        return Err(ProcessError::NoTerminal);
    }
    let open = program.terminal().filter(|_| !program.has_all_ended());
    let terminal = open.ok_or(ProcessError::Ended)?;
    match tokio::time::timeout(TYPING, write_all(&terminal, bytes)).await {
        Ok(typed) => typed.map_err(|error| ProcessError::Other(error.to_string())),
        Err(_) => Err(ProcessError::Other("it does not read what is typed".into())),
    }
}

async fn write_all(terminal: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = terminal.writable().await?;
        if let Ok(written) = ready.try_io(|terminal| Ok(rustix::io::write(terminal, bytes)?)) {
            bytes = &bytes[written?..];
        }
    }
    Ok(())
}

async fn end(program: Arc<Program>) -> Result<usize, ProcessError> {
    let warden = program.tell_warden();
    if let Some(warden) = warden
        && program.is_terminal
    {
        // A shell at a terminal ignores what others end at.
        blocking(move || tree::signal(warden, &[rustix::process::Signal::HUP])).await?;
    }
    program.ask_to_end();
    if let Some(warden) = warden {
        // What it watches over may have stopped it. To anybody else this would mean nothing.
        rustix::process::kill_process(warden, rustix::process::Signal::CONT).ok();
    }
    let mut news = program.news();
    let all_ended = news.wait_for(|news| news.all_ended.is_some());
    if let Ok(Ok(news)) = tokio::time::timeout(ENDING, all_ended).await {
        return Ok(counted(&news));
    }
    // The warden does not do it, so it is done from here.
    let record = program.record_now();
    let done = blocking(move || foreign::end(&record)).await?;
    if !matches!(done, Err(ProcessError::Ended) | Ok(0)) {
        return done;
    }
    // It was late, no more, and says itself how many there were.
    let all_ended = news.wait_for(|news| news.all_ended.is_some());
    match tokio::time::timeout(ENDING, all_ended).await {
        Ok(Ok(news)) => Ok(counted(&news)),
        Ok(Err(_)) | Err(_) => done,
    }
}

fn counted(news: &News) -> usize {
    usize::try_from(news.all_ended.unwrap_or_default()).unwrap_or(usize::MAX)
}

fn numbers(signal: Signal) -> &'static [rustix::process::Signal] {
    use rustix::process::Signal as Number;
    match signal {
        Signal::Interrupt => &[Number::INT],
        Signal::Hangup => &[Number::HUP],
        Signal::Terminate => &[Number::TERM],
        Signal::Kill => &[Number::KILL],
        Signal::Stop => &[Number::STOP],
        Signal::Continue => &[Number::CONT],
        Signal::User1 => &[Number::USR1],
        Signal::User2 => &[Number::USR2],
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ProcessError::Other(error.to_string()))
}
