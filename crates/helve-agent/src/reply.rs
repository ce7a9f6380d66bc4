//! The reply of a model: pieces while it is streamed, and the complete reply.

use helve_core::transcript::TokenCounts;
use serde::{Deserialize, Serialize};

use crate::item::{Block, CallBlock, StopReason};

/// A piece of a reply that is still arriving, for display only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// A call begins. Its arguments follow.
    Call {
        name: String,
    },
    Arguments(String),
}

impl Delta {
    /// Returns the size of the piece in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Delta::Text(text) | Delta::Reasoning(text) | Delta::Arguments(text) => text.len(),
            Delta::Call { name } => name.len(),
        }
    }
}

/// A complete reply.
#[derive(Clone, Debug)]
pub struct ModelReply {
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub usage: Option<Usage>,
}

impl ModelReply {
    pub fn calls(&self) -> impl Iterator<Item = &CallBlock> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
        })
    }

    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Call(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
        });
        texts.collect()
    }

    pub fn has_text(&self) -> bool {
        let is_text = |block: &Block| matches!(block, Block::Text(text) if !text.trim().is_empty());
        self.blocks.iter().any(is_text)
    }
}

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Output without reasoning.
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output, self.reasoning]
            .iter()
            .fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// Converts to the form that is stored.
    pub fn counts(&self) -> TokenCounts {
        let Usage { input, cache_read, cache_write, output, reasoning } = *self;
        TokenCounts { input, cache_read, cache_write, output, reasoning }
    }

    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    /// Converts totals that include cached input and reasoning.
    pub(crate) fn from_totals(totals: UsageTotals) -> Self {
        let cache_read = totals.cache_read.min(totals.input);
        let cache_write = totals.cache_write.min(totals.input - cache_read);
        let reasoning = totals.reasoning.min(totals.output);
        Self {
            input: totals.input - cache_read - cache_write,
            cache_read,
            cache_write,
            output: totals.output - reasoning,
            reasoning,
        }
    }
}

/// Tokens as OpenAI counts them: `input` includes cached input, `output` includes reasoning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageTotals {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
}
