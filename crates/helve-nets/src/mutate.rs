//! Makes many scripts of one: other blanks, quotes, escapes, names, nesting, wrappers, look-alikes.
//!
//! Most changes keep what the script does; some do not. Either way a script that is allowed may only do what it lists.

mod around;
mod within;

use crate::random::Random;
use around::{
    after, alias, before, function, here_document, here_string, hold_in_pieces, hold_in_variable,
    in_text, join_with_daily, nest, positional, redirect, wrap,
};
use within::{
    blanks, braces, case_of_letters, continue_line, dollar_quote, double_char, drop_char,
    end_of_line, glob, insert_sign, insert_word, invisible, look_alike, quote_word, splice,
    split_word, swap_chars,
};

type Change = fn(&str, &mut Random) -> String;

const CHANGES: &[Change] = &[
    before,
    after,
    blanks,
    nest,
    nest,
    wrap,
    quote_word,
    quote_word,
    dollar_quote,
    split_word,
    continue_line,
    braces,
    hold_in_variable,
    hold_in_pieces,
    alias,
    glob,
    look_alike,
    invisible,
    here_document,
    here_string,
    function,
    in_text,
    in_text,
    drop_char,
    double_char,
    swap_chars,
    insert_sign,
    insert_sign,
    insert_word,
    join_with_daily,
    redirect,
    case_of_letters,
    end_of_line,
    positional,
    splice,
];

/// Some changes, one after the other. `other` is a second script, to be joined with.
pub(crate) fn several(script: &str, other: &str, random: &mut Random) -> String {
    let mut text = script.to_string();
    for _ in 0..=random.below(4) {
        let change = CHANGES[random.below(CHANGES.len())];
        text = change(&text, random);
        if random.below(24) == 0 {
            text = join(&text, other, random);
        }
        if text.len() > 4_000 {
            break;
        }
    }
    text
}

fn join(one: &str, other: &str, random: &mut Random) -> String {
    let sign = random.pick(&[";", "\n", " && ", " || ", " | ", " & ", " |& ", "\r\n", " ;; "]);
    if random.below(2) == 0 { format!("{one}{sign}{other}") } else { format!("{other}{sign}{one}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_every_change_takes_any_text() {
        for text in ["", "ls", "ü'\n", "touch made; echo \"$(x)\""] {
            for (at, change) in CHANGES.iter().enumerate() {
                for seed in 0..50 {
                    let make = || change(text, &mut Random::new(seed));
                    assert_eq!(make(), make(), "{at} {seed}");
                }
            }
        }
    }
}
