//! What the benches act on: the binary, generated files, and one server that they share.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use super::tree;
use crate::helve::Helve;
use crate::mcp::Server;
use crate::options::Options;
use crate::scratch::Scratch;

pub(super) const LONG_LINES: usize = 1_000_000;

pub(super) struct Stage {
    server: Option<Server>,
    editor: Option<Server>,
    pub helve: Helve,
    /// Dropped last, when nothing runs in it any more.
    _scratch: Scratch,
}

impl Stage {
    pub(super) fn set(options: &Options) -> Result<Stage, String> {
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
        Ok(Stage { server: None, editor: None, helve, _scratch: scratch })
    }

    pub(super) fn small(&self) -> PathBuf {
        self.helve.workspace.join("small.txt")
    }

    pub(super) fn long(&self) -> PathBuf {
        self.helve.workspace.join("long.txt")
    }

    /// A tree as large projects have it, written at the first use.
    pub(super) fn large_tree(&self) -> Result<PathBuf, String> {
        let folder = self.helve.workspace.join("large");
        if !folder.exists() {
            tree::large(&folder)?;
        }
        Ok(folder)
    }

    pub(super) fn very_large_tree(&self) -> Result<PathBuf, String> {
        let folder = self.helve.workspace.join("very-large");
        if !folder.exists() {
            tree::very_large(&folder)?;
        }
        Ok(folder)
    }

    /// The server that all calls go to, started and greeted at the first use.
    pub(super) fn server(&mut self) -> Result<&mut Server, String> {
        let server = match self.server.take() {
            Some(server) => server,
            None => greeted(self.helve.serve()?)?,
        };
        Ok(self.server.insert(server))
    }

    /// A server that may edit without asking.
    pub(super) fn editor(&mut self) -> Result<&mut Server, String> {
        let server = match self.editor.take() {
            Some(server) => server,
            None => greeted(self.helve.serve_with(&["--allow", "edit"])?)?,
        };
        Ok(self.editor.insert(server))
    }
}

fn greeted(mut server: Server) -> Result<Server, String> {
    server.client()?.initialize()?;
    server.client()?.list_tools()?;
    Ok(server)
}

pub(super) fn long_line(number: usize) -> String {
    format!("line {number:07} abcdefgh")
}

fn write(path: PathBuf, text: &str) -> Result<(), String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
