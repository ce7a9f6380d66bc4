//! Why no rule can allow a part of a command, in a phrase.

use helve_core::Unclear;
use helve_text::shell::DoubtKind;

/// A phrase that completes "no rule can allow …".
pub fn unclear(why: &Unclear) -> &'static str {
    match why {
        Unclear::Doubt(doubt) => doubt_phrase(doubt.kind),
        Unclear::Target => "a file that is only known when the command runs",
        Unclear::Flag => "a file name that would act as a flag",
        Unclear::Tree => "a folder with too many files to check each of them against the rules",
        Unclear::WordSplitting => "a file name that would be split into words; quote the variable",
    }
}

fn doubt_phrase(kind: DoubtKind) -> &'static str {
    match kind {
        DoubtKind::TooLong => "a script too long to analyse",
        DoubtKind::TooDeep => "a script nested too deeply to analyse",
        DoubtKind::TooMany => "a script with too many commands to analyse",
        DoubtKind::Syntax => "syntax that is not understood",
        DoubtKind::Disagreement => "a script that can be read in more than one way",
        DoubtKind::Hidden => "hidden characters",
        DoubtKind::Program => "a program whose name is only known when the command runs",
        DoubtKind::Indirect => "text that is expanded again",
        DoubtKind::Arithmetic => "arithmetic on a value that may not be a number",
        DoubtKind::Function => "a function in place of a program",
        DoubtKind::Variable => "a variable that changes how programs run",
        DoubtKind::State => "a change to how the shell works",
        DoubtKind::ExternalCode => "code that comes in as data",
        DoubtKind::Wrapper => "a program that runs another",
        DoubtKind::Network => "a network connection",
    }
}
