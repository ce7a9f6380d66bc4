//! The texts that the agent loop writes for the model, except the system prompt.

/// The result of a call that was interrupted, if nothing else is known about it.
pub(crate) const INTERRUPTED: &str = "interrupted: the program ended before this call finished";
pub(crate) const NO_OUTPUT: &str = "(no output)";
/// The first message of a request that would otherwise start with a message of the model. Providers require a user
/// message.
pub(crate) const CONTINUES: &str = "(The conversation continues.)";
pub(crate) const OLDER_IMAGE: &str = "[an older image is left out]";
pub(crate) const REJECTED_MEDIA: &str = "[left out: the provider rejected this image or document]";

pub(crate) const LAST_STEP: &str = "This is the last step. Answer now, without calls.";
pub(crate) const NO_MORE_CALLS: &str = "Not run: no more calls are possible in this turn.";
pub(crate) const ABORTED: &str = "The user aborted the previous turn.";
pub(crate) const OUT_OF_TIME: &str =
    "The time limit ended the previous turn before it was complete.";
pub(crate) const EMPTY_REPLY: &str = "Your previous reply was empty. Answer, or make a call.";
pub(crate) const REPLY_CUT: &str =
    "Your reply was cut at the output limit. Go on where it stopped.";
pub(crate) const CALL_CUT: &str = "Not run: the reply was cut at the output limit, so the arguments may be incomplete. \
                                   Make the change in smaller pieces.";
pub(crate) const REPEATED_CALL: &str = "Not run: this call was already made several times with the same arguments. \
                                        Use the earlier results, or try something else.";

/// The prompt for a summary of the conversation.
pub(crate) const SUMMARIZE: &str = "\
Summarize the conversation above for another agent that will continue the work without seeing it. Write only the \
summary, in this order: the user's goal and their constraints, in their own words where they matter; decisions and \
why; what is done, what is in progress, what is blocked; exact paths, names, commands and error messages that are \
still needed; the next step. Keep facts of an earlier summary unless they are outdated.";

pub(crate) fn unreadable_media(name: Option<&str>, mime: &str) -> String {
    let name = name.unwrap_or("an attachment");
    format!("[{name} ({mime}) is left out: this model cannot read it]")
}

/// Returns the line that replaces an old output.
pub(crate) fn cleared(title: &str, lines: usize, saved: Option<&str>) -> String {
    let saved = saved.map(|path| format!(", saved at {path}")).unwrap_or_default();
    format!("[{title}: {lines} lines, left out{saved}]")
}

/// Returns the message that replaces the older part of a conversation. `session_state` is what the model must still
/// know besides the summary, such as the to-do list.
pub(crate) fn summary(summary: &str, session_state: &str) -> String {
    let text = format!("Summary of the conversation so far:\n{summary}\n\n{session_state}");
    text.trim_end().to_string()
}

/// Returns the result of an interrupted call, with the files that it had changed or was changing.
pub fn interrupted(changed: &[String], uncertain: &[String]) -> String {
    let mut text = String::from(INTERRUPTED);
    if !changed.is_empty() {
        text.push_str(&format!("; it had already changed: {}", changed.join(", ")));
    }
    if !uncertain.is_empty() {
        text.push_str(&format!(
            "; it was about to change: {} (read them again before relying on their content)",
            uncertain.join(", ")
        ));
    }
    text
}

/// Returns a note that another agent takes over.
pub fn agent_switched(from: &str, to: &str) -> String {
    format!(
        "The user switched from the agent \"{from}\" to the agent \"{to}\". The tools and rules of \"{to}\" apply from now on."
    )
}

/// Returns a note that an answer does not match the required schema.
pub(crate) fn answer_not_matching(problems: &str) -> String {
    format!(
        "Your answer does not follow the required JSON schema: {problems}. Answer again with only the corrected JSON."
    )
}

/// Returns a message with the report of a task that the user gave to a sub-agent.
pub fn task_report(description: &str, agent: &str, report: &str) -> String {
    format!(
        "I gave this task to the agent \"{agent}\": {description}\nIts report:\n\n{report}\n\nSummarize the result, and continue \
         with your work if there is any."
    )
}

/// Advice for a person whose conversation does not fit.
pub(crate) const LARGER_WINDOW: &str = "begin a new session, or use a model with a larger window";

/// Advice for a person whose key was rejected. An endpoint without configuration has its URL as its name.
pub(crate) fn check_key(provider: &str) -> String {
    match provider.contains("://") {
        true => "check the key".into(),
        false => {
            format!("check the key for {provider}; `helve auth list` shows where it comes from")
        }
    }
}

/// Advice for a person whose model does not exist. `near` are known models with similar names.
pub(crate) fn check_model(model: &str, near: &[&str]) -> String {
    match near.is_empty() {
        true => format!("check the name of the model, {model}"),
        false => format!("check the name of the model, {model}; similar: {}", near.join(", ")),
    }
}

/// Asks a model for the title of a conversation.
pub fn title_request(prompt: &str) -> String {
    format!(
        "Write a title of at most eight words for a conversation that begins with this message. Write only the title, in \
         the language of the message.\n\n{prompt}"
    )
}
