//! A gigabyte of lines, and a gigabyte in one line: an answer, in bounded memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::stage::Stage;

const MOST_KIB: u64 = 64 << 10;

fn fill(path: &Path, block: &[u8], times: usize) {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    for _ in 0..times {
        file.write_all(block).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn the_end_of_ten_million_lines() {
    let stage = Stage::new();
    // 100 bytes a line, 10,000 lines a block: 10,000,000 lines in 1 GB.
    let line = format!("{}\n", "x".repeat(99));
    fill(&stage.path("app/big.txt"), line.repeat(10_000).as_bytes(), 1_000);
    let (ran, peak) =
        stage.measured(&["call", "read", "filePath=big.txt", "offset=9999990", "limit=10"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("9999990| x"), "{}", ran.out);
    assert!(ran.out.contains("9999999| x"), "{}", ran.out);
    assert!(peak < MOST_KIB, "peak {peak} KiB");
}

#[test]
fn one_line_of_a_gigabyte() {
    let stage = Stage::new();
    fill(&stage.path("app/line.txt"), "y".repeat(1 << 20).as_bytes(), 1 << 10);
    let (ran, peak) = stage.measured(&["call", "read", "filePath=line.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("(line cut at 2000 characters)"), "{:.200}", ran.out);
    assert!(ran.out.contains("(End of file, 1 line)"), "{:.200}", ran.out);
    assert!(peak < MOST_KIB, "peak {peak} KiB");
}
