//! The binary, the generated files and the servers that the benchmarks share.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use super::library::LibraryProcess;
use super::tree;
use crate::helve::Helve;
use crate::mcp::McpProcess;
use crate::options::Options;
use crate::scratch::Scratch;

/// Number of lines of the long file.
pub(super) const LONG_LINES: usize = 1_000_000;

pub(super) struct Fixture {
    server: Option<McpProcess>,
    editing_server: Option<McpProcess>,
    library: Option<LibraryProcess>,
    pub helve: Helve,
    /// Dropped last, after the servers that use it.
    _scratch: Scratch,
}

impl Fixture {
    pub(super) fn new(options: &Options) -> Result<Fixture, String> {
        let scratch = Scratch::new("bench")?;
        let helve = Helve::prepare(options, &scratch)?;
        let small: String =
            (1..=50).map(|number| format!("line {number} of the small file\n")).collect();
        write(helve.workspace.join("small.txt"), &small)?;
        let mut long = String::with_capacity(LONG_LINES * 22);
        for number in 1..=LONG_LINES {
            writeln!(long, "{}", long_line(number)).map_err(|error| error.to_string())?;
        }
        write(helve.workspace.join("long.txt"), &long)?;
        let (server, editing_server, library) = (None, None, None);
        Ok(Fixture { server, editing_server, library, helve, _scratch: scratch })
    }

    pub(super) fn small_file(&self) -> PathBuf {
        self.helve.workspace.join("small.txt")
    }

    pub(super) fn long_file(&self) -> PathBuf {
        self.helve.workspace.join("long.txt")
    }

    /// Returns a tree of the size of a large project. It is created on first use.
    pub(super) fn large_tree(&self) -> Result<PathBuf, String> {
        let folder = self.helve.workspace.join("large");
        if !folder.exists() {
            tree::create_large(&folder)?;
        }
        Ok(folder)
    }

    pub(super) fn very_large_tree(&self) -> Result<PathBuf, String> {
        let folder = self.helve.workspace.join("very-large");
        if !folder.exists() {
            tree::create_very_large(&folder)?;
        }
        Ok(folder)
    }

    /// Returns the server that most benchmarks call. It is started on first use.
    pub(super) fn server(&mut self) -> Result<&mut McpProcess, String> {
        let server = match self.server.take() {
            Some(server) => server,
            None => initialize(self.helve.start_mcp()?)?,
        };
        Ok(self.server.insert(server))
    }

    /// Returns a server that may edit without asking.
    pub(super) fn editing_server(&mut self) -> Result<&mut McpProcess, String> {
        let server = match self.editing_server.take() {
            Some(server) => server,
            None => initialize(self.helve.start_mcp_with(&["--allow", "edit"])?)?,
        };
        Ok(self.editing_server.insert(server))
    }

    /// Returns a process that calls the library, and may edit without asking.
    pub(super) fn library(&mut self) -> Result<&mut LibraryProcess, String> {
        let library = match self.library.take() {
            Some(library) => library,
            None => LibraryProcess::start(&self.helve)?,
        };
        Ok(self.library.insert(library))
    }
}

fn initialize(mut server: McpProcess) -> Result<McpProcess, String> {
    server.client()?.initialize()?;
    server.client()?.list_tools()?;
    Ok(server)
}

/// Returns a line of the long file.
pub(super) fn long_line(number: usize) -> String {
    format!("line {number:07} abcdefgh")
}

fn write(path: PathBuf, text: &str) -> Result<(), String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
