//! Wording about plans.

/// The feature that offers the tools for plans. Only a conversation can switch agents.
pub const PLAN_MODE: &str = "plan_mode";

/// Returns the file for the plan of a session, relative to the workspace.
pub(crate) fn plan_file(session: &str) -> String {
    const KEPT: usize = 12;
    let name: String = session.chars().filter(char::is_ascii_alphanumeric).collect();
    // The end of an id is its random part.
    let name = &name[name.len().saturating_sub(KEPT)..];
    format!(".helve/plans/{}.md", if name.is_empty() { "plan" } else { name })
}

/// Returns what the system prompt of the plan agent says about its work.
pub fn plan_prompt(session: &str) -> String {
    format!(
        "You are planning. Read and search as much as you need, and ask the user about decisions that are theirs to make, but \
         change nothing: the only file that you may write is the plan, {}. In it, write what is to be done and why, which \
         files change, and how to check the result. When the plan is complete, call plan_exit if you have it, or answer with a \
         summary of the plan.",
        plan_file(session)
    )
}

/// Returns the message with which the plan agent begins.
pub(crate) fn plan_message(file: &str) -> String {
    format!(
        "Plan the work that we talked about, and write the plan to {file}. Change nothing else yet."
    )
}

/// Returns the message with which the build agent begins.
pub(crate) fn approved_message(file: &str) -> String {
    format!("I approved the plan in {file}. Carry it out.")
}
