//! Tests of calls that change one file at the same time.

use std::fs;

use futures::future::join_all;
use serde_json::json;

use crate::stage::{Stage, call};

const ROUNDS: usize = 30;
const EDITS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_adjacent_lines_all_succeed() {
    let stage = Stage::new();
    let toolbox = stage.toolbox().await;
    for round in 0..ROUNDS {
        let name = format!("{round}.txt");
        let line = |prefix: &str, at: usize| format!("{prefix} {at};\n");
        stage.put(&name, (0..EDITS).map(|at| line("old", at)).collect::<String>(), 0o644);
        let edits = (0..EDITS).map(|at| {
            let args = json!({
                "filePath": name, "oldString": line("old", at), "newString": line("new", at),
            });
            call(&toolbox, "edit", args)
        });
        for (at, result) in join_all(edits).await.into_iter().enumerate() {
            assert!(result.is_ok(), "edit {at} in round {round}: {result:?}");
        }
        let expected: String = (0..EDITS).map(|at| line("new", at)).collect();
        assert_eq!(fs::read_to_string(stage.path(&name)).unwrap(), expected);
    }
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_several_edits_of_a_line_succeeds() {
    let stage = Stage::new();
    let toolbox = stage.toolbox().await;
    for round in 0..ROUNDS {
        let name = format!("{round}.txt");
        stage.put(&name, "a\nvalue = 0\nb\n", 0o644);
        let edits = (1..=EDITS).map(|value| {
            let new = format!("value = {value}");
            let args = json!({"filePath": name, "oldString": "value = 0", "newString": new});
            call(&toolbox, "edit", args)
        });
        let results = join_all(edits).await;
        let succeeded: Vec<usize> =
            (1..=EDITS).filter(|value| results[value - 1].is_ok()).collect();
        let [winner] = succeeded[..] else { panic!("{succeeded:?} succeeded") };
        let content = fs::read_to_string(stage.path(&name)).unwrap();
        assert_eq!(content, format!("a\nvalue = {winner}\nb\n"));
    }
    toolbox.close().await;
}
