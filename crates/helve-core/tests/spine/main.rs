//! The spine as a whole: engine, gate, hooks, sessions and events around small tools.

mod bounds;
mod cancelling;
mod denies;
mod events;
mod hooks;
mod nesting;
mod stage;
