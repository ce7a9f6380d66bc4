//! Words: one file per tool, one folder per dialect. No algorithm and no effect lives here.

pub mod opencode;
mod unclear;

pub use unclear::unclear;
