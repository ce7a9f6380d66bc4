//! The gate between a call and its effects: judges parts, asks the person once, makes the grant.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use helve_policy::{Act, Action, Ask, Part, Policy, Refusal, Reply, Rule, Scope, Verdict, Wall};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, watch};

use crate::BoxFuture;
use crate::call::{CallRef, Origin};
use crate::event::EventKind;
use crate::store::{ApprovalOwner, Store};

/// Answers asks for a session. Provided by the door: a terminal, an MCP client, an embedding program.
pub trait Person: Send + Sync {
    /// `call.root` is the wire call that waits; asks of sub-agents and nested calls appear there too. Dropping the
    /// future withdraws the question.
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply>;
}

/// Nobody can answer: every ask is refused, with the rule that would allow it.
pub struct Nobody;

impl Person for Nobody {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async { Reply::Unanswered })
    }
}

/// `--yes`: approves every ask. A deny never becomes an ask, so it stays denied.
pub struct AlwaysYes;

impl Person for AlwaysYes {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async { Reply::Yes(Scope::Once) })
    }
}

/// Proof that a person or a rule permitted certain acts. Only the gate makes one; it cannot outlive its call.
#[derive(Debug)]
pub struct Grant<'call> {
    acts: Vec<Act>,
    _call: PhantomData<&'call ()>,
}

impl Grant<'_> {
    fn of(ask: Ask) -> Self {
        Self { acts: ask.acts, _call: PhantomData }
    }

    /// Whether exactly this act was granted.
    pub fn covers(&self, act: &Act) -> bool {
        self.acts.contains(act)
    }
}

/// A session's gate.
///
/// The policy is shared with every sub-agent below, so that a new approval reaches them at once. The walls of
/// sub-agents belong to their own gates.
pub struct Gate {
    shared: Arc<Shared>,
    more: Vec<Wall>,
    from: Vec<String>,
}

struct Shared {
    policy: watch::Sender<Policy>,
    recalled: OnceCell<()>,
    person: Arc<dyn Person>,
    store: Arc<dyn Store>,
    session: String,
    root: PathBuf,
    mode: Mode,
}

/// Whether parts are asked about or only explained.
enum Mode {
    Live,
    Explain(Mutex<Vec<(Part, Verdict)>>),
}

impl Gate {
    pub fn new(
        policy: Policy,
        person: Arc<dyn Person>,
        store: Arc<dyn Store>,
        session: &str,
        root: PathBuf,
    ) -> Self {
        Self::in_mode(Mode::Live, policy, person, store, session, root)
    }

    /// A gate that judges like [`Gate::new`] and never grants, so nothing behind it has an effect.
    pub fn explaining(policy: Policy, store: Arc<dyn Store>, session: &str, root: PathBuf) -> Self {
        let mode = Mode::Explain(Mutex::default());
        Self::in_mode(mode, policy, Arc::new(Nobody), store, session, root)
    }

    fn in_mode(
        mode: Mode,
        policy: Policy,
        person: Arc<dyn Person>,
        store: Arc<dyn Store>,
        session: &str,
        root: PathBuf,
    ) -> Self {
        let shared = Shared {
            policy: watch::Sender::new(policy),
            recalled: OnceCell::new(),
            person,
            store,
            session: session.into(),
            root,
            mode,
        };
        Self { shared: Arc::new(shared), more: Vec::new(), from: Vec::new() }
    }

    /// The gate of a sub-agent: one more wall, the same person, who is shown which agent asks.
    pub fn child(&self, agent: &str, rules: Vec<Rule>) -> Self {
        let wall = Wall::restricting(format!("agent {agent}"), rules);
        Self {
            shared: self.shared.clone(),
            more: self.more.iter().cloned().chain([wall]).collect(),
            from: self.from.iter().cloned().chain([agent.to_string()]).collect(),
        }
    }

    /// Whether asks are only explained, so that no call behind this gate has an effect.
    pub(crate) fn is_explaining(&self) -> bool {
        matches!(self.shared.mode, Mode::Explain(_))
    }

    /// The parts that an explaining gate was asked about, with their verdicts.
    pub fn explained(&self) -> Vec<(Part, Verdict)> {
        match &self.shared.mode {
            Mode::Live => Vec::new(),
            Mode::Explain(seen) => seen.lock().clone(),
        }
    }

    /// Whether a tool is denied whatever its arguments.
    pub fn forbids(&self, tool: &Part) -> bool {
        self.shared.policy.borrow().forbids(&self.more, tool)
    }

    pub async fn judge(&self, part: &Part) -> Verdict {
        let verdict = self.shared.policy.borrow().judge(&self.more, part);
        if verdict.action != Action::Ask {
            return verdict;
        }
        // Approvals can only lift an ask, so they are loaded when the first ask comes up.
        self.shared.recall().await;
        self.shared.policy.borrow().judge(&self.more, part)
    }

    /// Returns all rules, for operations on more files than can be judged one by one.
    pub(crate) async fn rules(&self) -> (Policy, Vec<Wall>) {
        self.shared.recall().await;
        (self.shared.policy.borrow().clone(), self.more.clone())
    }

    /// Asks for everything at once. `tell` is called when a person is asked and when they answer.
    pub(crate) async fn ask<'call>(
        &self,
        mut ask: Ask,
        call: &'call CallRef,
        tell: impl Fn(EventKind),
    ) -> Result<Grant<'call>, Refusal> {
        ask.from.clone_from(&self.from);
        let mut open = Vec::new();
        let mut judged = Vec::new();
        for part in &ask.parts {
            judged.push((part.clone(), self.judge(part).await));
        }
        ask.actions = judged.iter().map(|(_, verdict)| verdict.action).collect();
        if let Mode::Explain(seen) = &self.shared.mode {
            seen.lock().extend(judged);
            return Err(Refusal::Explained);
        }
        for (part, verdict) in judged {
            match verdict.action {
                Action::Allow => {}
                Action::Ask => open.push((part, verdict)),
                Action::Deny => return Err(Refusal::Forbidden(Box::new((part, verdict)))),
            }
        }
        if open.is_empty() || call.origin == Origin::Person {
            return Ok(Grant::of(ask));
        }
        let reply = match call.answers.get(&ask.key()) {
            Some(reply) => reply.clone(),
            None => self.put_to_person(&ask, call, tell).await,
        };
        match reply {
            Reply::Yes(scope) => {
                self.remember(scope, &open).await;
                Ok(Grant::of(ask))
            }
            Reply::No { note } => Err(Refusal::Rejected { note }),
            Reply::Unanswered => Err(Refusal::Unanswered { parts: open }),
        }
    }

    async fn put_to_person(&self, ask: &Ask, call: &CallRef, tell: impl Fn(EventKind)) -> Reply {
        tell(EventKind::Asked { summary: summary(ask) });
        let mut policy = self.shared.policy.subscribe();
        let settled =
            policy.wait_for(|policy| policy.judge_all(&self.more, &ask.parts) == Action::Allow);
        let reply = tokio::select! {
            reply = self.shared.person.approve(call, ask) => reply,
            // A lasting approval of another call covers this one too.
            _ = settled => Reply::Yes(Scope::Once),
        };
        tell(EventKind::Answered { yes: matches!(reply, Reply::Yes(_)) });
        reply
    }

    /// Remembers a lasting approval: exactly the patterns that were shown for the open parts.
    async fn remember(&self, scope: Scope, open: &[(Part, Verdict)]) {
        let Some(owner) = ApprovalOwner::of(scope, &self.shared.session, &self.shared.root) else {
            return;
        };
        let rules: Vec<Rule> =
            open.iter().flat_map(|(part, _)| part.approval_rules(scope)).collect();
        for rule in &rules {
            // The approval holds in this process even if the store cannot keep it.
            self.shared.store.remember(owner, rule).await.ok();
        }
        self.shared.policy.send_modify(|policy| policy.remembered.extend(rules));
    }
}

impl Shared {
    async fn recall(&self) {
        let fetch = || async {
            let rules = self.store.remembered(&self.session, &self.root).await.unwrap_or_default();
            if !rules.is_empty() {
                self.policy.send_modify(|policy| policy.remembered.extend(rules));
            }
        };
        self.recalled.get_or_init(fetch).await;
    }
}

fn summary(ask: &Ask) -> String {
    let parts = ask.parts.iter().map(|part| format!("{} {}", part.permission, part.subject()));
    parts.collect::<Vec<_>>().join(", ")
}
