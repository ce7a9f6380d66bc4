//! The spine as a whole: engine, gate, hooks, sessions and events around small tools.

mod bounds;
mod cancelling;
mod changing;
mod denies;
mod events;
mod hooks;
mod nesting;
mod stage;
