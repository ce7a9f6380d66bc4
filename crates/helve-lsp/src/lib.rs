//! Language servers and formatters: diagnostics after an edit, and questions about code.
//!
//! ```text
//! LanguageServers     one per workspace: finds or starts the servers for a file
//!  LanguageChecks     diagnostics after a write; implements `AfterWrite`
//!  query              questions about code, for the tool `lsp`
//!  Formatters         formats files after a write; implements `AfterWrite` too
//!  table              known servers as data, with the user's overrides
//!  Projects           finds the folder that a server is started for, and its program
//!  Client             one server process in one folder, started when first needed, stopped when idle
//!   Connection        requests, answers and notifications over the pipes of a process
//! ```
//!
//! Servers are started only in trusted folders, with `Processes::connect`, so they run on the machine that has the
//! files, and end when Helve ends. Everything that a server sends is limited in size and count. If a server crashes,
//! hangs or sends nonsense, only its own answers are missing: an edit waits for diagnostics until a deadline and never
//! fails because of them.

mod after_write;
mod client;
mod compare;
mod connection;
mod formatters;
mod frame;
mod projects;
mod query;
mod readiness;
mod servers;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use helve_core::{AfterWrite, BoxFuture, DiagnosticReport, Resolved, WrittenFile};

pub use formatters::{
    FormatterDefinition, FormatterInput, FormatterOverride, FormatterProbe, Formatters,
    formatter_definitions,
};
pub use query::LanguageQueries;
pub use servers::{LanguageLimits, LanguageServers, LanguagesSetup, SuggestedServer, TrustCheck};
pub use table::{RootRule, ServerDefinition, ServerOverride, server_definitions};

/// Reports diagnostics after a write.
pub struct LanguageChecks(pub Arc<LanguageServers>);

impl AfterWrite for LanguageChecks {
    fn format<'a>(
        &'a self,
        _path: &'a Resolved,
        _bytes: &'a Bytes,
    ) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async { None })
    }

    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, DiagnosticReport> {
        Box::pin(self.0.check_written(written))
    }
}
