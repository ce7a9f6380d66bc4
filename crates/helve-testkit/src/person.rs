//! A person who answers from a script and records the questions.

use std::collections::VecDeque;

use helve_core::CallRef;
use helve_core::Pattern;
use helve_core::{Ask, BoxFuture, Person, Reply};
use parking_lot::Mutex;

/// A person who gives the replies in order, and does not answer questions after the last reply.
#[derive(Default)]
pub struct ScriptedPerson {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedPerson {
    pub fn with_replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), asked: Mutex::default() }
    }

    /// Returns the questions asked since the last call of this function, formatted for a log.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

impl Person for ScriptedPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let reply = self.replies.lock().pop_front().unwrap_or(Reply::Unanswered);
        self.asked.lock().push(format!("{}-> {reply:?}\n", format_ask(ask)));
        Box::pin(async { reply })
    }
}

fn format_ask(ask: &Ask) -> String {
    let mut text = String::new();
    for agent in &ask.from {
        text.push_str(&format!("for {agent}\n"));
    }
    for part in &ask.parts {
        let tool = part.tool.as_ref().map(|tool| format!(" by {tool}")).unwrap_or_default();
        let lasting = match &part.remember_as {
            None => String::new(),
            Some(Pattern::Exact(_)) => " [lasting approval: exactly this]".into(),
            Some(pattern) => format!(" [lasting approval: {}]", pattern.as_str()),
        };
        text.push_str(&format!(
            "{} {}{tool}{lasting}\n",
            part.permission,
            part.subjects.join(" = ")
        ));
    }
    if !ask.preview.is_empty() {
        text.push_str(&format!("{}\n", ask.preview.trim_end()));
    }
    text
}
