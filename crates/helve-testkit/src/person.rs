//! A person who answers from a script and records the questions.

use std::collections::VecDeque;

use helve_core::CallRef;
use helve_core::permission::Pattern;
use helve_core::{Ask, BoxFuture, Person, Reply};
use parking_lot::Mutex;

/// Gives the replies in order. After the last one, nobody answers.
#[derive(Default)]
pub struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    pub fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), asked: Mutex::default() }
    }

    /// Takes the questions asked since the last call, as a person would read them.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

impl Person for Scripted {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let reply = self.replies.lock().pop_front().unwrap_or(Reply::Unanswered);
        self.asked.lock().push(format!("{}-> {reply:?}\n", shown(ask)));
        Box::pin(async { reply })
    }
}

fn shown(ask: &Ask) -> String {
    let mut text = String::new();
    for agent in &ask.from {
        text.push_str(&format!("for {agent}\n"));
    }
    for part in &ask.parts {
        let tool = part.tool.as_ref().map(|tool| format!(" by {tool}")).unwrap_or_default();
        let always = match &part.remember_as {
            None => String::new(),
            Some(Pattern::Exact(_)) => " [lasting: this]".into(),
            Some(wide) => format!(" [lasting: {}]", wide.as_str()),
        };
        text.push_str(&format!(
            "{} {}{tool}{always}\n",
            part.permission,
            part.subjects.join(" = ")
        ));
    }
    if !ask.preview.is_empty() {
        text.push_str(&format!("{}\n", ask.preview.trim_end()));
    }
    text
}
