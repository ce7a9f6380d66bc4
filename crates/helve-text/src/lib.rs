//! What Helve does with characters. Pure: no async, no I/O, no path is opened here.

pub mod cut;
pub mod lines;
pub mod near;
pub mod patch;
pub mod shell;
pub mod syntax;
pub mod visible;
pub mod wildcard;
pub mod diff;
pub mod edit;
pub mod merge;
pub mod view;
