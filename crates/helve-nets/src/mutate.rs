//! Mutates scripts: blanks, quotes, escapes, names, nesting, wrappers, look-alike characters.
//!
//! Most mutations preserve what the script does, some change it. Either way, an allowed script may only do what the
//! decision lists.

mod edit;
mod surround;

use crate::random::Random;
use edit::{
    blanks, braces, continue_line, dollar_quote, double_char, drop_char, end_of_line, glob,
    insert_metacharacter, insert_word, invisible, look_alike, quote_word, respell_word, splice,
    split_word, swap_chars,
};
use surround::{
    alias, append, as_argument, as_positional, function, here_document, here_string,
    join_with_harmless, nest, prepend, redirect, store_in_two_variables, store_in_variable, wrap,
};

type Mutation = fn(&str, &mut Random) -> String;

const MUTATIONS: &[Mutation] = &[
    prepend,
    append,
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
    store_in_variable,
    store_in_two_variables,
    alias,
    glob,
    look_alike,
    invisible,
    here_document,
    here_string,
    function,
    as_argument,
    as_argument,
    drop_char,
    double_char,
    swap_chars,
    insert_metacharacter,
    insert_metacharacter,
    insert_word,
    join_with_harmless,
    redirect,
    respell_word,
    end_of_line,
    as_positional,
    splice,
];

/// Applies a few random mutations in sequence, and sometimes joins the script with `other`.
pub(crate) fn mutate(script: &str, other: &str, random: &mut Random) -> String {
    let mut text = script.to_string();
    for _ in 0..=random.below(4) {
        let change = MUTATIONS[random.below(MUTATIONS.len())];
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
    let separator = random.pick(&[";", "\n", " && ", " || ", " | ", " & ", " |& ", "\r\n", " ;; "]);
    if random.below(2) == 0 {
        format!("{one}{separator}{other}")
    } else {
        format!("{other}{separator}{one}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_reproducible_and_accept_any_text() {
        for text in ["", "ls", "ü'\n", "touch made; echo \"$(x)\""] {
            for (at, change) in MUTATIONS.iter().enumerate() {
                for seed in 0..50 {
                    let make = || change(text, &mut Random::new(seed));
                    assert_eq!(make(), make(), "{at} {seed}");
                }
            }
        }
    }
}
