//! The gate between a call and its effects: judges parts, asks the person once, makes the grant.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use helve_policy::ask::UNSANDBOXED;
use helve_policy::{
    Act, Action, Ask, MissingApproval, Part, Policy, Reason, Refusal, Reply, Rule, Scope, Verdict,
    Wall,
};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, watch};

use crate::BoxFuture;
use crate::call::{CallRef, Origin};
use crate::event::EventKind;
use crate::question::{Answer, Question};
use crate::store::{ApprovalScopeRef, Store};

/// Answers asks for a session. Implemented by whatever connects the person: a terminal, an MCP client, an embedding
/// program.
pub trait Person: Send + Sync {
    /// Asks the person and returns the reply. `call.root_call` is the outermost call, which the client is waiting for;
    /// it is also set for asks of sub-agents and nested calls. Dropping the future withdraws the question.
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply>;

    /// Whether [`Person::question`] reaches somebody. If not, tools that ask questions are not offered.
    fn takes_questions(&self) -> bool {
        false
    }

    /// Asks the person a question of the model. `None` if they do not answer. Dropping the future withdraws the
    /// question.
    fn question<'a>(
        &'a self,
        _call: &'a CallRef,
        _question: &'a Question,
    ) -> BoxFuture<'a, Option<Answer>> {
        Box::pin(async { None })
    }
}

/// Used where nobody can answer: leaves every ask unanswered, so the call is refused.
pub struct Nobody;

impl Person for Nobody {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async { Reply::Unanswered })
    }
}

/// Name of the permission to repeat the same call again and again.
pub const DOOM_LOOP: &str = "doom_loop";

/// Approves every ask, for `--yes`. What a rule denies is never asked, so it stays denied.
pub struct AlwaysYes;

impl Person for AlwaysYes {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        // Two permissions are left to a person. Repeating a call: always answering yes would let a model go on forever.
        // And leaving the sandbox: a sandbox that a model can leave at will protects nothing.
        let is_for_person = |part: &Part| [DOOM_LOOP, UNSANDBOXED].contains(&&*part.permission);
        let is_asked =
            ask.parts.iter().enumerate().any(|(at, part)| {
                is_for_person(part) && ask.actions.get(at) != Some(&Action::Allow)
            });
        let reply = if is_asked { Reply::Unanswered } else { Reply::Yes(Scope::Once) };
        Box::pin(async { reply })
    }
}

/// Proof that a person or a rule permitted certain acts. Only the gate can make a grant, and it cannot outlive its
/// call.
#[derive(Debug)]
pub struct Grant<'call> {
    acts: Vec<Act>,
    _call: PhantomData<&'call ()>,
}

impl Grant<'_> {
    fn from_ask(ask: Ask) -> Self {
        Self { acts: ask.acts, _call: PhantomData }
    }

    /// Whether exactly this act was granted.
    pub fn covers(&self, act: &Act) -> bool {
        self.acts.contains(act)
    }
}

/// A session's gate.
///
/// A sub-agent's gate shares the policy, so that a new approval counts there at once. It adds walls of its own; a wall
/// is a list of rules, and the strictest of all walls decides.
pub struct Gate {
    shared: Arc<SharedGate>,
    /// Walls of the nested sub-agents, in addition to those of the policy.
    subagent_walls: Vec<Wall>,
    /// Names of the nested sub-agents, outermost first; empty for the main agent.
    agent_chain: Vec<String>,
}

/// What the gates of a session and of its sub-agents share.
struct SharedGate {
    policy: watch::Sender<Policy>,
    /// Set when the lasting approvals have been loaded from the store.
    approvals_loaded: OnceCell<()>,
    person: Arc<dyn Person>,
    store: Arc<dyn Store>,
    session: String,
    root: PathBuf,
    mode: Mode,
}

/// Whether a gate grants, or only explains its verdicts.
enum Mode {
    /// Grants or refuses.
    Enforce,
    /// Collects the judged parts and grants nothing.
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
        Self::in_mode(Mode::Enforce, policy, person, store, session, root)
    }

    /// A gate that judges like [`Gate::new`] but never grants, so that calls have no effect.
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
        let shared = SharedGate {
            policy: watch::Sender::new(policy),
            approvals_loaded: OnceCell::new(),
            person,
            store,
            session: session.into(),
            root,
            mode,
        };
        Self { shared: Arc::new(shared), subagent_walls: Vec::new(), agent_chain: Vec::new() }
    }

    /// Returns the gate of a sub-agent. It has one more wall for each list of rules, asks the same person, and names
    /// the agent in asks.
    pub fn child(&self, agent: &str, lists: Vec<Vec<Rule>>) -> Self {
        let walls =
            lists.into_iter().map(|rules| Wall::restricting(format!("agent {agent}"), rules));
        Self {
            shared: self.shared.clone(),
            subagent_walls: self.subagent_walls.iter().cloned().chain(walls).collect(),
            agent_chain: self.agent_chain.iter().cloned().chain([agent.to_string()]).collect(),
        }
    }

    /// Whether somebody answers questions of the model.
    pub(crate) fn takes_questions(&self) -> bool {
        self.shared.person.takes_questions()
    }

    /// Asks the person a question of the model.
    pub(crate) async fn question(
        &self,
        mut question: Question,
        call: &CallRef,
        emit: impl Fn(EventKind),
    ) -> Option<Answer> {
        question.from.clone_from(&self.agent_chain);
        if self.is_explaining() || !self.takes_questions() {
            return None;
        }
        emit(EventKind::Asked { summary: question.question.clone() });
        let answer = self.shared.person.question(call, &question).await;
        emit(EventKind::Answered { yes: answer.is_some() });
        answer
    }

    /// Whether this gate only explains and never grants.
    pub(crate) fn is_explaining(&self) -> bool {
        matches!(self.shared.mode, Mode::Explain(_))
    }

    /// Returns the parts that an explaining gate has judged, with their verdicts.
    pub fn explained_parts(&self) -> Vec<(Part, Verdict)> {
        match &self.shared.mode {
            Mode::Enforce => Vec::new(),
            Mode::Explain(judged) => judged.lock().clone(),
        }
    }

    /// Whether every call of a tool is denied, regardless of its arguments.
    pub fn forbids(&self, tool: &Part) -> bool {
        self.shared.policy.borrow().forbids(&self.subagent_walls, tool)
    }

    /// Returns the verdict on one part, with lasting approvals taken into account.
    pub async fn judge(&self, part: &Part) -> Verdict {
        let verdict = self.shared.policy.borrow().judge(&self.subagent_walls, part);
        if verdict.action != Action::Ask {
            return verdict;
        }
        // Approvals can only lift an ask, so they are loaded when the first ask comes up.
        self.shared.load_approvals().await;
        self.shared.policy.borrow().judge(&self.subagent_walls, part)
    }

    /// Returns the policy and the walls of sub-agents, for operations on too many files to judge each by
    /// [`Gate::judge`].
    pub(crate) async fn policy_and_walls(&self) -> (Policy, Vec<Wall>) {
        self.shared.load_approvals().await;
        (self.shared.policy.borrow().clone(), self.subagent_walls.clone())
    }

    /// Judges all parts of an ask, asks the person if necessary, and returns the grant. `preview` is awaited only if
    /// the person has to be asked. `explain` returns the reason for a verdict as text. `emit` receives an event when a
    /// person is asked, and one when they have answered.
    pub(crate) async fn ask<'call>(
        &self,
        mut ask: Ask,
        preview: impl Future<Output = String>,
        call: &'call CallRef,
        explain: impl Fn(&Part, &Verdict) -> String,
        emit: impl Fn(EventKind),
    ) -> Result<Grant<'call>, Refusal> {
        ask.from.clone_from(&self.agent_chain);
        let mut pending = Vec::new();
        let mut judged = Vec::new();
        for part in std::mem::take(&mut ask.parts) {
            let mut verdict = self.judge(&part).await;
            if let (Action::Allow, Some(hook)) = (verdict.action, &ask.required_by) {
                let reason = Reason::Hook(hook.to_string());
                verdict = Verdict { action: Action::Ask, rule: None, wall: "hooks".into(), reason };
            }
            // Commands like `cd` are not worth mentioning unless a rule covers them.
            if !part.is_exempt() || verdict.action != Action::Allow {
                ask.parts.push(part.clone());
                judged.push((part, verdict));
            }
        }
        ask.actions = judged.iter().map(|(_, verdict)| verdict.action).collect();
        let explain = |(part, verdict): &(Part, Verdict)| match verdict.action {
            Action::Allow => String::new(),
            Action::Ask | Action::Deny => explain(part, verdict),
        };
        ask.reasons = judged.iter().map(explain).collect();
        let policy = self.shared.policy.borrow().clone();
        let can_be_allowed_by_option = |(part, verdict): &(Part, Verdict)| {
            verdict.action == Action::Ask
                && policy.can_be_allowed_by_option(&self.subagent_walls, part)
        };
        ask.can_be_allowed_by_option = judged.iter().map(can_be_allowed_by_option).collect();
        if let Mode::Explain(explained) = &self.shared.mode {
            explained.lock().extend(judged);
            return Err(Refusal::ExplainOnly);
        }
        for (part, verdict) in judged {
            match verdict.action {
                Action::Allow => {}
                Action::Ask => pending.push((part, verdict)),
                Action::Deny => return Err(Refusal::Forbidden(Box::new((part, verdict)))),
            }
        }
        if pending.is_empty() || call.origin == Origin::Person {
            return Ok(Grant::from_ask(ask));
        }
        ask.preview = preview.await;
        let reply = match call.answers.get(&ask.key()) {
            Some(reply) => reply.clone(),
            None => self.ask_person(&ask, call, emit).await,
        };
        match reply {
            Reply::Yes(scope) => {
                self.remember(scope, &pending).await;
                Ok(Grant::from_ask(ask))
            }
            // See [`Reply`] for how these three differ.
            Reply::No { note } => Err(Refusal::Rejected { note }),
            Reply::Declined => Err(Refusal::Declined(self.with_advice(pending))),
            Reply::Unanswered => Err(Refusal::Unanswered(self.with_advice(pending))),
        }
    }

    /// Returns the parts of a refused call together with the rules that would allow them.
    fn with_advice(&self, parts: Vec<(Part, Verdict)>) -> MissingApproval {
        let asked: Vec<&Part> = parts.iter().map(|(part, _)| part).collect();
        let advice = self.shared.policy.borrow().advice(&self.subagent_walls, &asked);
        MissingApproval { parts, advice }
    }

    async fn ask_person(&self, ask: &Ask, call: &CallRef, emit: impl Fn(EventKind)) -> Reply {
        emit(EventKind::Asked { summary: summary(ask) });
        let mut policy = self.shared.policy.subscribe();
        let allowed_meanwhile = policy
            .wait_for(|policy| policy.judge_all(&self.subagent_walls, &ask.parts) == Action::Allow);
        let reply = tokio::select! {
            reply = self.shared.person.approve(call, ask) => reply,
            // A lasting approval of another call may cover this ask too.
            _ = allowed_meanwhile, if ask.required_by.is_none() => Reply::Yes(Scope::Once),
        };
        emit(EventKind::Answered { yes: matches!(reply, Reply::Yes(_)) });
        reply
    }

    /// Remembers a lasting approval: exactly the patterns that were shown to the person.
    async fn remember(&self, scope: Scope, approved: &[(Part, Verdict)]) {
        let Some(lasting_scope) =
            ApprovalScopeRef::of(scope, &self.shared.session, &self.shared.root)
        else {
            return;
        };
        let rules: Vec<Rule> =
            approved.iter().flat_map(|(part, _)| part.approval_rules(scope)).collect();
        for rule in &rules {
            // Even if the store fails, the approval is valid in this process.
            self.shared.store.remember(lasting_scope, rule).await.ok();
        }
        self.shared.policy.send_modify(|policy| policy.remembered.extend(rules));
    }
}

impl SharedGate {
    /// Loads lasting approvals from the store, once.
    async fn load_approvals(&self) {
        let load = || async {
            let rules = self.store.approvals(&self.session, &self.root).await.unwrap_or_default();
            if !rules.is_empty() {
                self.policy.send_modify(|policy| policy.remembered.extend(rules));
            }
        };
        self.approvals_loaded.get_or_init(load).await;
    }
}

fn summary(ask: &Ask) -> String {
    let parts = ask.parts.iter().map(|part| format!("{} {}", part.permission, part.subject()));
    parts.collect::<Vec<_>>().join(", ")
}
