//! Hooks of a conversation: they see and change what a person says and what a model is sent.

use helve_core::BoxFuture;

use crate::item::{Entry, MessagePart, ModelRef};
use crate::request::ModelSettings;

/// The session, agent and model for which a hook is called.
#[derive(Clone, Copy, Debug)]
pub struct ChatContext<'a> {
    pub session: &'a str,
    pub agent: &'a str,
    pub model: &'a ModelRef,
}

/// The result of a hook. An error ends the turn, and is shown to the person.
pub type ChatHookResult = Result<(), String>;

/// A hook of a conversation. Every method that is not implemented changes nothing.
///
/// Requests stay valid whatever a hook does: calls and results are paired after [`ChatHook::entries`]. A hook that
/// changes the beginning of a request invalidates the provider's prompt cache.
pub trait ChatHook: Send + Sync {
    /// Changes a person's message before it is stored.
    fn message<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _parts: &'a mut Vec<MessagePart>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes the settings of a request, such as the temperature.
    fn params<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _settings: &'a mut ModelSettings,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes the additional headers of a request. Those of the protocol and the key cannot be changed.
    fn headers<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _headers: &'a mut Vec<(String, String)>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes the system prompt of a request.
    fn system<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _system: &'a mut Vec<String>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes the prompt for a summary of the conversation.
    fn summary<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _prompt: &'a mut String,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes a text of the model before it is stored. Text that was already shown while it arrived does not change.
    /// Unlike in other hooks, an error does not end the turn: the text stays unchanged.
    fn reply_text<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _text: &'a mut String,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Changes the conversation of a request. The stored conversation stays as it is.
    fn entries<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _entries: &'a mut Vec<Entry>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Ok(()) })
    }
}
