//! What an agent and its sub-agents may use together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::event::BudgetKind;
use crate::reply::Usage;

/// The limits of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnLimits {
    pub steps: Option<u32>,
    pub tokens: Option<u64>,
    /// In dollars.
    pub cost: Option<f64>,
    pub time: Option<Duration>,
}

/// The limits of a turn that an agent and its sub-agents share, and what they used so far.
#[derive(Debug)]
pub struct TreeBudget {
    pub limits: TurnLimits,
    started: Instant,
    spent: Mutex<Spent>,
}

/// What was used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Requests to models, without those for summaries.
    pub steps: u32,
    pub usage: Usage,
    /// In dollars, of the requests whose price is known.
    pub cost: f64,
    /// Whether the price of some request is not known.
    pub is_cost_incomplete: bool,
    /// Whether a call was refused, by a person or because nobody could be asked.
    pub was_refused: bool,
}

impl TreeBudget {
    pub fn new(limits: TurnLimits) -> Self {
        Self { limits, started: Instant::now(), spent: Mutex::default() }
    }

    pub fn spent(&self) -> Spent {
        *self.spent.lock()
    }

    pub(crate) fn begin_step(&self) {
        let mut spent = self.spent.lock();
        spent.steps = spent.steps.saturating_add(1);
    }

    /// Resets the step count, because the person sent a new message.
    pub(crate) fn reset_steps(&self) {
        self.spent.lock().steps = 0;
    }

    pub(crate) fn add(&self, usage: &Usage, cost: Option<f64>) {
        let mut spent = self.spent.lock();
        spent.usage = spent.usage.plus(usage);
        spent.cost += cost.unwrap_or(0.0);
        spent.is_cost_incomplete |= cost.is_none();
    }

    /// Records that a call was refused, so the work may be incomplete.
    pub(crate) fn note_refusal(&self) {
        self.spent.lock().was_refused = true;
    }

    /// Whether the step that has begun is the last one.
    pub(crate) fn is_last_step(&self) -> bool {
        self.limits.steps.is_some_and(|limit| self.spent().steps >= limit)
    }

    /// Returns the limit that is reached. The last step is kept for the main agent, so that it can answer.
    pub(crate) fn exhausted(&self, is_child: bool) -> Option<BudgetKind> {
        let (spent, limits) = (self.spent(), self.limits);
        let steps = spent.steps.saturating_add(u32::from(is_child));
        if limits.steps.is_some_and(|limit| steps >= limit) {
            return Some(BudgetKind::Steps);
        }
        if limits.tokens.is_some_and(|limit| spent.usage.total() >= limit) {
            return Some(BudgetKind::Tokens);
        }
        if limits.cost.is_some_and(|limit| spent.cost >= limit) {
            return Some(BudgetKind::Cost);
        }
        let is_late = limits.time.is_some_and(|limit| self.started.elapsed() >= limit);
        is_late.then_some(BudgetKind::Time)
    }
}
