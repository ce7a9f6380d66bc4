//! Keeps the secrets of an endpoint out of replies and errors: a provider may repeat them.

use helve_text::redact::{Redactor, redact_text};

use crate::failure::Failure;
use crate::item::Block;
use crate::reply::{Delta, ModelReply};

/// Minimum length of a secret. Shorter ones would also match ordinary text.
const MIN_SECRET: usize = 8;

/// The secrets of an endpoint: its key, and the values of configured headers.
#[derive(Clone)]
pub(crate) struct EndpointSecrets(Vec<String>);

impl EndpointSecrets {
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let secrets = secrets.filter(|secret| secret.len() >= MIN_SECRET);
        Self(secrets.map(str::to_string).collect())
    }

    fn redact(&self, text: &mut String) {
        if self.is_in(text) {
            *text = redact_text(text, &self.0);
        }
    }

    pub(crate) fn redact_failure(&self, mut failure: Failure) -> Failure {
        self.redact(&mut failure.message);
        failure
    }

    fn is_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret))
    }

    /// Removes the secrets from texts and calls. Blocks in the provider's own form cannot be changed, because they may
    /// be signed; one that contains a secret is dropped.
    pub(crate) fn redact_reply(&self, mut reply: ModelReply) -> ModelReply {
        reply.blocks.retain(|block| !matches!(block, Block::Other(raw) if self.is_in(raw.get())));
        for block in &mut reply.blocks {
            match block {
                Block::Text(text) => self.redact(text),
                Block::Reasoning { text, raw } => {
                    self.redact(text);
                    *raw = raw.take().filter(|raw| !self.is_in(raw.get()));
                }
                Block::Call(call) => {
                    self.redact(&mut call.arguments);
                    self.redact(&mut call.name);
                    self.redact(&mut call.id);
                }
                Block::Phase(phase) => self.redact(phase),
                Block::Other(_) => {}
            }
        }
        reply
    }
}

/// Removes secrets from the pieces of a reply, even if a secret is split between pieces.
pub(crate) struct DeltaRedactor {
    text: Redactor,
    reasoning: Redactor,
}

impl DeltaRedactor {
    pub(crate) fn new(secrets: &EndpointSecrets) -> Self {
        Self { text: Redactor::new(&secrets.0), reasoning: Redactor::new(&secrets.0) }
    }

    /// Returns the piece without secrets; `None` if all of it may be the beginning of one.
    pub(crate) fn push(&mut self, delta: Delta) -> Option<Delta> {
        match delta {
            Delta::Text(text) => push_text(&mut self.text, &text).map(Delta::Text),
            Delta::Reasoning(text) => push_text(&mut self.reasoning, &text).map(Delta::Reasoning),
            delta @ (Delta::Call { .. } | Delta::Arguments(_)) => Some(delta),
        }
    }

    /// Returns what was held back, at the end of a reply.
    pub(crate) fn finish(mut self) -> impl Iterator<Item = Delta> {
        let text = finish_text(&mut self.text).map(Delta::Text);
        let reasoning = finish_text(&mut self.reasoning).map(Delta::Reasoning);
        reasoning.into_iter().chain(text)
    }
}

fn push_text(redactor: &mut Redactor, text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    redactor.push(text.as_bytes(), &mut bytes);
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn finish_text(redactor: &mut Redactor) -> Option<String> {
    let mut bytes = Vec::new();
    redactor.finish(&mut bytes);
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text that is shown for these pieces.
    fn shown(pieces: &[&str]) -> String {
        let mut mask =
            DeltaRedactor::new(&EndpointSecrets::new(["sk-12345678", "short"].into_iter()));
        let text = |delta: Delta| match delta {
            Delta::Text(text) => text,
            Delta::Reasoning(_) | Delta::Call { .. } | Delta::Arguments(_) => String::new(),
        };
        let mut shown = String::new();
        for piece in pieces {
            shown.extend(mask.push(Delta::Text(piece.to_string())).map(text));
        }
        shown.extend(mask.finish().map(text));
        shown
    }

    #[test]
    fn secrets_are_removed_however_they_are_split() {
        for (pieces, expected) in [
            (&["a sk-12345678 b"][..], "a [redacted] b"),
            (&["a sk-", "1234", "5678", "b"][..], "a [redacted]b"),
            (&["é sk-", "12é"][..], "é sk-12é"),
            (&["ends with sk-123"][..], "ends with sk-123"),
            (&["a short one"][..], "a short one"),
        ] {
            assert_eq!(shown(pieces), expected);
        }
    }
}
