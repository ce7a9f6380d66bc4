//! A broken data folder is reported, and the tools still work.

use std::fs;

use crate::stage::{RunOutput, Stage};

const DATABASE: &str = "home/.local/share/helve/store.db";

fn check_read_works(stage: &Stage) -> RunOutput {
    let output = stage.run(&["call", "read", "filePath=README.md"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.out.contains("00001| # app"), "{}", output.out);
    output
}

#[test]
fn a_corrupt_database_is_moved_aside() {
    let stage = Stage::new();
    stage.write(DATABASE, &"not a database ".repeat(1000));
    let output = check_read_works(&stage);
    assert!(output.err.contains("store.db.corrupt-"), "{}", output.err);
    assert_eq!(check_read_works(&stage).err, "");
}

#[test]
fn a_newer_database_is_not_changed() {
    let stage = Stage::new();
    check_read_works(&stage);
    let path = stage.path(DATABASE);
    // The schema's version is the big-endian number at offset 60 of the header.
    let mut bytes = fs::read(&path).unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        fs::remove_file(path.with_file_name(name)).ok();
    }
    bytes[60..64].copy_from_slice(&9999u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let output = check_read_works(&stage);
    assert!(!output.err.is_empty(), "a newer database is reported");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_data_folder_that_cannot_be_created_is_reported() {
    let stage = Stage::new();
    stage.write("home/.local", "a file where a folder should be");
    let output = check_read_works(&stage);
    assert!(output.err.contains(".local"), "{}", output.err);
    let doctor = stage.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.transcript());
}

#[test]
fn nothing_is_written_into_the_project() {
    let stage = Stage::new();
    check_read_works(&stage);
    let mut names: Vec<_> = fs::read_dir(stage.root().join("app"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".env", "README.md", "src"]);
}
