//! The thread that owns the connection: what it does with jobs, and with trouble.

use std::path::PathBuf;
use std::time::Duration;

use helve_core::store::StoreError;

use super::base::{Base, Place};
use super::calls::Pruned;
use super::journal::sweep::Turn;
use super::ledger::{Ledger, Unwritten};
use super::open::{self, Opened};
use super::owner::Owner;
use super::queue::{Chores, Job, Lost, Queue};
use super::trouble::{self, Failure, Trouble};
use super::{calls, journal, rules, slots};

pub(crate) struct Keeper {
    data: PathBuf,
    patience: Duration,
    base: Option<Base>,
    owner: Option<Owner>,
    notices: Vec<String>,
    ledger: Ledger,
    untidy: Untidy,
    /// When the journal is swept.
    turn: Turn,
    pub(super) open: journal::Open,
}

/// What is left to tidy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Untidy {
    /// Nothing, but so many batches of calls were written since.
    Nothing(u32),
    Calls,
    Everything,
}

/// How often trouble is met anew for one question.
const TRIES: usize = 4;
/// After how many batches of calls the history is pruned.
const TIDY_AFTER: u32 = 64;
/// How many notices are kept.
const NOTICES: usize = 4;

impl Keeper {
    pub(crate) fn new(data: PathBuf, patience: Duration) -> Self {
        Self {
            data,
            patience,
            base: None,
            owner: None,
            notices: Vec::new(),
            ledger: Ledger::default(),
            untidy: Untidy::Everything,
            turn: Turn::default(),
            open: journal::Open::default(),
        }
    }

    /// Works until the last handle is gone and everything is written.
    pub(crate) fn run(mut self, queue: &Queue) {
        while let Some(jobs) = queue.take(self.chores()) {
            if jobs.is_empty() {
                self.tidy();
            }
            for job in jobs {
                match job {
                    Job::Note(event) => self.ledger.note(&event),
                    Job::Set(setting) => self.ledger.set(setting),
                    Job::Ask(question) => {
                        self.write_slots();
                        question(&mut self);
                    }
                }
            }
            self.write(Unwritten::Much);
        }
        self.write_all();
        if let Some(base) = self.base {
            base.close(&self.data);
        }
    }

    /// Does something with the database, and again after mending what is wrong with it.
    pub(crate) fn attempt<T>(
        &mut self,
        work: impl Fn(&Base) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.attempt_with_ledger(|base, _| work(base))
    }

    fn attempt_with_ledger<T>(
        &mut self,
        work: impl Fn(&Base, &Ledger) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let gone = |failure: Failure| StoreError::other(failure.why);
        for _ in 0..TRIES {
            self.open().map_err(gone)?;
            let Some(base) = &self.base else { continue };
            if base.has_moved(&self.data) {
                let why = "another process replaced it".to_owned();
                self.mend(Failure { trouble: Trouble::Changed, why }).map_err(gone)?;
                continue;
            }
            let error = match work(base, &self.ledger) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match Failure::of(&error) {
                Some(failure) => self.mend(failure).map_err(gone)?,
                None => return Err(trouble::refused(&error)),
            }
        }
        Err(StoreError::other("The store failed again and again."))
    }

    /// What a person should know, as sentences.
    pub(crate) fn notice(&mut self, lost: Lost) -> Option<String> {
        let mut sentences = match self.open() {
            Ok(()) => self.notices.clone(),
            Err(failure) => vec![format!("There is no store: {}.", failure.why)],
        };
        let missing = lost.others + self.ledger.unheeded;
        if missing > 0 {
            sentences.push(format!(
                "The history of calls lacks {missing} events that came faster than they could be written."
            ));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Takes note that the journal has grown by so many bytes.
    pub(crate) fn added(&mut self, bytes: u64) {
        if let Some(base) = &self.base {
            self.turn.added(base.place, bytes);
        }
    }

    /// Writes everything that was noted so far.
    pub(crate) fn write_all(&mut self) {
        self.write(Unwritten::Little);
    }

    /// Whoever asks must find what was set before.
    fn write_slots(&mut self) {
        if self.ledger.has_slots() {
            self.write(Unwritten::Much);
        }
    }

    fn write(&mut self, least: Unwritten) {
        if !self.ledger.has(least) {
            return;
        }
        match self.attempt_with_ledger(|base, ledger| ledger.write(base, least)) {
            Ok(written) => self.ledger.wrote(written),
            Err(_) => self.ledger.give_up(),
        }
        self.untidy = match self.untidy {
            Untidy::Nothing(batches) if batches < TIDY_AFTER => Untidy::Nothing(batches + 1),
            Untidy::Nothing(_) | Untidy::Calls => Untidy::Calls,
            Untidy::Everything => Untidy::Everything,
        };
    }

    fn open(&mut self) -> Result<(), Failure> {
        if self.base.is_none() {
            let opened = open::open(&self.data, self.patience, &mut self.owner, None)?;
            self.take_in(opened);
        }
        Ok(())
    }

    fn take_in(&mut self, opened: Opened) {
        self.base = Some(opened.base);
        self.notices.extend(opened.notice);
        self.notices.truncate(NOTICES);
    }

    /// Replaces a database that failed by one that works.
    fn mend(&mut self, failure: Failure) -> Result<(), Failure> {
        let Some(base) = self.base.take() else { return Ok(()) };
        let (trouble, identity) = match (failure.trouble, base.place) {
            (_, Place::Memory) => {
                self.base = Some(base);
                return Err(failure);
            }
            (trouble, Place::File(identity)) => (trouble, identity),
        };
        let damaged = match trouble {
            Trouble::Damaged => Some((identity, failure.why)),
            Trouble::Changed => None,
            Trouble::Locked | Trouble::Unwritable | Trouble::Newer { .. } => {
                let notice = trouble::in_memory(&open::file_in(&self.data), &failure);
                self.take_in(Opened { base: base.into_memory()?, notice: Some(notice) });
                return Ok(());
            }
        };
        drop(base);
        let opened = open::open(&self.data, self.patience, &mut self.owner, damaged)?;
        self.take_in(opened);
        Ok(())
    }

    fn chores(&self) -> Chores {
        match (&self.base, self.untidy) {
            (None, _) => Chores::Done,
            (Some(_), Untidy::Nothing(_)) if !self.turn.has_come() => Chores::Done,
            (Some(_), Untidy::Nothing(_) | Untidy::Calls | Untidy::Everything) => Chores::Waiting,
        }
    }

    /// Removes a little of what is too old or too much, while nobody waits.
    fn tidy(&mut self) {
        let (work, next): (fn(&Base) -> rusqlite::Result<Pruned>, _) = match self.untidy {
            Untidy::Nothing(_) => return self.sweep(),
            Untidy::Calls => (calls::prune, Untidy::Nothing(0)),
            Untidy::Everything => (prune_slots_and_rules, Untidy::Calls),
        };
        let Some(base) = &self.base else { return };
        let pruned = base.unhurried(self.patience, work);
        match pruned {
            Ok(Pruned::Some) => {}
            // Not being able to tidy is no reason to try over and over, nor to leave the file.
            Ok(Pruned::All) | Err(_) => self.untidy = next,
        }
    }

    fn sweep(&mut self) {
        let Some(base) = &self.base else { return };
        let folder = journal::folder_in(&self.data);
        // After an error whoever adds to the journal next tries again.
        base.unhurried(self.patience, |base| self.turn.go_on(base, &folder)).ok();
    }
}

fn prune_slots_and_rules(base: &Base) -> rusqlite::Result<Pruned> {
    slots::prune(base)?;
    rules::prune(base)?;
    Ok(Pruned::All)
}
