//! Questions that a model asks a person.

/// A question with answers to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// A very short label.
    pub header: String,
    pub question: String,
    pub options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    pub allows_several: bool,
    /// Whether the person may write an answer of their own.
    pub accepts_text: bool,
    /// Text to read before answering, such as a plan.
    pub preview: String,
    /// The nested sub-agents that ask, outermost first; empty for the main agent.
    pub from: Vec<String>,
}

/// One of the answers that a question offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionOption {
    pub label: String,
    pub description: String,
}

/// The labels that a person chose, and what they wrote; empty if they skipped the question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer(pub Vec<String>);
