//! Mutates scripts: changes white space, quotes, escapes, names, nesting, wrappers and characters.
//!
//! Most mutations preserve what the script does, some change it. In both cases, if the shell decision of helve-policy
//! allows the script, it must have only the effects that the analysis listed.

mod edit;
mod surround;

use crate::random::Random;
use edit::{
    add_braces, add_glob, continue_line, dollar_quote, double_char, drop_char, insert_expansion,
    insert_invisible, insert_metacharacter, insert_word, quote_word, replace_newlines,
    replace_spaces, replace_with_look_alike, respell_word, splice, swap_chars,
};
use surround::{
    append, join_with_harmless_command, nest, pass_as_argument, pass_as_here_document,
    pass_as_here_string, prepend, redirect, run_as_alias, run_as_function, run_from_parameters,
    store_in_two_variables, store_in_variable, wrap,
};

type Mutation = fn(&str, &mut Random) -> String;

const MUTATIONS: &[Mutation] = &[
    prepend,
    append,
    replace_spaces,
    nest,
    nest,
    wrap,
    quote_word,
    quote_word,
    dollar_quote,
    insert_expansion,
    continue_line,
    add_braces,
    store_in_variable,
    store_in_two_variables,
    run_as_alias,
    add_glob,
    replace_with_look_alike,
    insert_invisible,
    pass_as_here_document,
    pass_as_here_string,
    run_as_function,
    pass_as_argument,
    pass_as_argument,
    drop_char,
    double_char,
    swap_chars,
    insert_metacharacter,
    insert_metacharacter,
    insert_word,
    join_with_harmless_command,
    redirect,
    respell_word,
    replace_newlines,
    run_from_parameters,
    splice,
];

/// Applies a few random mutations in sequence, and sometimes joins the script with `other`.
pub(crate) fn mutate(script: &str, other: &str, random: &mut Random) -> String {
    let mut text = script.to_string();
    for _ in 0..=random.below(4) {
        let mutation = MUTATIONS[random.below(MUTATIONS.len())];
        text = mutation(&text, random);
        if random.below(24) == 0 {
            text = join(&text, other, random);
        }
        if text.len() > 4_000 {
            break;
        }
    }
    text
}

fn join(script: &str, other: &str, random: &mut Random) -> String {
    let separator = random.pick(&[";", "\n", " && ", " || ", " | ", " & ", " |& ", "\r\n", " ;; "]);
    if random.below(2) == 0 {
        format!("{script}{separator}{other}")
    } else {
        format!("{other}{separator}{script}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_reproducible_and_accept_any_text() {
        for text in ["", "ls", "ü'\n", "touch made; echo \"$(x)\""] {
            for (index, mutation) in MUTATIONS.iter().enumerate() {
                for seed in 0..50 {
                    let mutate = || mutation(text, &mut Random::new(seed));
                    assert_eq!(mutate(), mutate(), "mutation {index}, seed {seed}");
                }
            }
        }
    }
}
