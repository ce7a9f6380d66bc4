//! A question of the model at the terminal: arrow keys choose, or the person writes an answer of their own.

use std::io::Write;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use helve::{Answer, Question, visible};

use crate::output::{BOLD, CYAN, DIM, GREEN, PLAIN};

/// Maximum length of an answer that a person writes, in characters.
const MAX_TEXT: usize = 10_000;
const OWN_ANSWER: &str = "Your own answer";

/// Shows a question and waits for the answer; `None` if the person dismisses it.
pub(super) fn answer(question: &Question) -> std::io::Result<Option<Answer>> {
    let mut out = anstream::stderr().lock();
    write!(out, "{}", introduction(question))?;
    let mut choice = Choice::new(question);
    enable_raw_mode()?;
    let answered = ask(&mut out, &mut choice);
    disable_raw_mode()?;
    let answered = answered?;
    let shown = match &answered {
        Some(answer) if answer.0.is_empty() => "no answer".to_string(),
        Some(answer) => visible::escape_line(&answer.0.join(", ")).into_owned(),
        None => "dismissed".into(),
    };
    writeln!(out, "{GREEN}›{PLAIN} {shown}")?;
    Ok(answered)
}

/// Draws the choice anew after each key, until it is made.
fn ask(out: &mut impl Write, choice: &mut Choice<'_>) -> std::io::Result<Option<Answer>> {
    loop {
        let width = size().map_or(80, |(columns, _)| usize::from(columns)).max(20);
        let lines = choice.lines(width);
        for line in &lines {
            write!(out, "{line}\r\n")?;
        }
        out.flush()?;
        let outcome = loop {
            if let Event::Key(key) = read()?
                && key.kind != KeyEventKind::Release
            {
                break choice.handle(key);
            }
        };
        // Back to the first line, and clear everything below.
        write!(out, "\x1b[{}A\r\x1b[J", lines.len())?;
        match outcome {
            Step::Continue => {}
            Step::Answered(answer) => return Ok(Some(answer)),
            Step::Dismissed => return Ok(None),
        }
    }
}

/// What is shown once: the text to read, and the question.
fn introduction(question: &Question) -> String {
    let mut text = String::from("\n");
    let preview = visible::escape(&question.preview);
    if !preview.trim().is_empty() {
        text.push_str(&format!("{}\n\n", preview.trim_end()));
    }
    if !question.header.trim().is_empty() {
        let header = visible::escape_line(&question.header);
        text.push_str(&format!("{CYAN}{header}{PLAIN}"));
    }
    if !question.from.is_empty() {
        let from = question.from.join(" › ");
        text.push_str(&format!(" {DIM}(asked by {}){PLAIN}", visible::escape_line(&from)));
    }
    let asked = visible::escape(&question.question);
    text.push_str(&format!("\n{BOLD}{}{PLAIN}\n", asked.trim_end()));
    text
}

/// What to do after a key press.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Continue,
    Answered(Answer),
    Dismissed,
}

/// The state of a choice.
struct Choice<'q> {
    question: &'q Question,
    /// The row that the cursor is in. The last row is for an answer of one's own, if that is possible.
    row: usize,
    marked: Vec<bool>,
    /// What the person writes, once they began to.
    text: Option<String>,
}

impl<'q> Choice<'q> {
    fn new(question: &'q Question) -> Self {
        let marked = vec![false; question.options.len()];
        let text = question.options.is_empty().then(String::new);
        Self { question, row: 0, marked, text }
    }

    fn rows(&self) -> usize {
        self.question.options.len() + usize::from(self.question.accepts_text)
    }

    fn handle(&mut self, key: KeyEvent) -> Step {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Step::Dismissed;
        }
        match self.text.take() {
            Some(text) => self.handle_text(key.code, text, is_control),
            None => self.handle_choice(key.code),
        }
    }

    fn handle_text(&mut self, key: KeyCode, mut text: String, is_control: bool) -> Step {
        match key {
            KeyCode::Enter if !text.trim().is_empty() => {
                let mut chosen = self.chosen();
                chosen.push(text.trim().to_string());
                return Step::Answered(Answer(chosen));
            }
            KeyCode::Esc if self.question.options.is_empty() => return Step::Dismissed,
            // Back to the options.
            KeyCode::Esc => return Step::Continue,
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) if !is_control && text.chars().count() < MAX_TEXT => text.push(c),
            _ => {}
        }
        self.text = Some(text);
        Step::Continue
    }

    fn handle_choice(&mut self, key: KeyCode) -> Step {
        let rows = self.rows();
        match key {
            KeyCode::Esc => return Step::Dismissed,
            KeyCode::Up | KeyCode::Char('k') => self.row = (self.row + rows - 1) % rows,
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab => self.row = (self.row + 1) % rows,
            KeyCode::Char(' ') if self.question.allows_several => self.toggle_row(),
            KeyCode::Char(digit @ '1'..='9') => {
                let row = digit as usize - '1' as usize;
                if row < rows {
                    self.row = row;
                    return if self.question.allows_several {
                        self.toggle()
                    } else {
                        self.confirm()
                    };
                }
            }
            KeyCode::Enter => return self.confirm(),
            _ => {}
        }
        Step::Continue
    }

    fn toggle(&mut self) -> Step {
        self.toggle_row();
        Step::Continue
    }

    /// Marks the option in this row, or removes the mark. The last row begins an answer of one's own.
    fn toggle_row(&mut self) {
        match self.marked.get_mut(self.row) {
            Some(marked) => *marked = !*marked,
            None => self.text = Some(String::new()),
        }
    }

    fn confirm(&mut self) -> Step {
        if self.row >= self.question.options.len() {
            self.text = Some(String::new());
            return Step::Continue;
        }
        let chosen = self.chosen();
        if !chosen.is_empty() {
            return Step::Answered(Answer(chosen));
        }
        let label = self.question.options.get(self.row).map(|option| option.label.clone());
        Step::Answered(Answer(label.into_iter().collect()))
    }

    /// The labels of the marked options.
    fn chosen(&self) -> Vec<String> {
        let options = self.question.options.iter().zip(&self.marked);
        options.filter(|(_, marked)| **marked).map(|(option, _)| option.label.clone()).collect()
    }

    /// The rows and a line of help, each cut to the width of the terminal.
    fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, option) in self.question.options.iter().enumerate() {
            let mark = match (self.question.allows_several, self.marked.get(index)) {
                (true, Some(true)) => "[x] ",
                (true, _) => "[ ] ",
                (false, _) => "",
            };
            let label = format!("{}. {mark}{}", index + 1, visible::escape_line(&option.label));
            lines.push(self.line(index, &label, &option.description, width));
        }
        if self.question.accepts_text {
            let index = self.question.options.len();
            let label = match &self.text {
                Some(text) => format!("› {}", tail(&visible::escape_line(text), width - 4)),
                None => format!("{}. {OWN_ANSWER}", index + 1),
            };
            lines.push(self.line(index, &label, "", width));
        }
        let help = match (&self.text, self.question.allows_several) {
            (Some(_), _) => "Enter sends the answer, Esc goes back",
            (None, true) => "↑↓ move, Space marks, Enter confirms, Esc dismisses",
            (None, false) => "↑↓ move, Enter chooses, Esc dismisses",
        };
        let help: String = help.chars().take(width - 1).collect();
        lines.push(format!("{DIM}{help}{PLAIN}"));
        lines
    }

    fn line(&self, index: usize, label: &str, about: &str, width: usize) -> String {
        let current = if self.text.is_some() { self.marked.len() } else { self.row };
        let is_current = index == current;
        let cursor = if is_current { "›" } else { " " };
        let label: String = label.chars().take(width - 3).collect();
        let left = (width - 3).saturating_sub(label.chars().count() + 2);
        let about: String = visible::escape_line(about).chars().take(left).collect();
        let bold = if is_current { BOLD } else { "" };
        format!("{CYAN}{cursor}{PLAIN} {bold}{label}{PLAIN}  {DIM}{about}{PLAIN}")
    }
}

/// The end of a text, at most `width` characters.
fn tail(text: &str, width: usize) -> String {
    let skipped = text.chars().count().saturating_sub(width);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use helve::QuestionOption;

    use super::*;

    fn question(allows_several: bool, accepts_text: bool) -> Question {
        let option = |label: &str| QuestionOption { label: label.into(), ..Default::default() };
        let options = vec![option("red"), option("green"), option("blue")];
        Question { options, allows_several, accepts_text, ..Question::default() }
    }

    /// Keys are `d` for down, `u` for up, `e` for Enter, `x` for Escape, `_` for Space, digits, and capitals for text.
    #[track_caller]
    fn check(question: &Question, keys: &str, expected: Option<Step>) {
        let mut choice = Choice::new(question);
        let mut last = None;
        for key in keys.chars() {
            let code = match key {
                'd' => KeyCode::Down,
                'u' => KeyCode::Up,
                'e' => KeyCode::Enter,
                'x' => KeyCode::Esc,
                'b' => KeyCode::Backspace,
                '_' => KeyCode::Char(' '),
                other => KeyCode::Char(other),
            };
            let step = choice.handle(KeyEvent::new(code, KeyModifiers::NONE));
            choice.lines(40).iter().for_each(|line| assert!(!line.contains('\n')));
            if step != Step::Continue {
                last = Some(step);
                break;
            }
        }
        assert_eq!(last, expected, "{keys}");
    }

    #[test]
    fn options_are_chosen_with_keys() {
        let answer = |labels: &[&str]| {
            Some(Step::Answered(Answer(labels.iter().map(|label| label.to_string()).collect())))
        };
        let (one, several) = (question(false, false), question(true, true));
        check(&one, "e", answer(&["red"]));
        check(&one, "de", answer(&["green"]));
        check(&one, "ue", answer(&["blue"]));
        check(&one, "ddde", answer(&["red"]));
        check(&one, "2", answer(&["green"]));
        check(&one, "9_d", None);
        check(&one, "x", Some(Step::Dismissed));
        check(&several, "_d_e", answer(&["red", "green"]));
        check(&several, "1133e", answer(&["blue"]));
        check(&several, "de", answer(&["green"]));
        check(&several, "_ueHIe", answer(&["red", "HI"]));
        check(&several, "4HIbe", answer(&["H"]));
        check(&several, "4ee", None);
        check(&several, "4Hxx", Some(Step::Dismissed));
        let open = Question { accepts_text: true, ..Question::default() };
        check(&open, "YESe", answer(&["YES"]));
        check(&open, "x", Some(Step::Dismissed));
    }

    #[test]
    fn nothing_of_a_question_controls_the_terminal() {
        let evil = "a\u{1b}[2J\u{202e}\nb".to_string();
        let option = QuestionOption { label: evil.clone(), description: evil.clone() };
        let question = Question {
            header: evil.clone(),
            question: evil.clone(),
            options: vec![option],
            preview: evil.clone(),
            from: vec![evil],
            ..Question::default()
        };
        let shown = introduction(&question) + &Choice::new(&question).lines(80).join("|");
        assert!(!shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}'), "{shown:?}");
    }
}
