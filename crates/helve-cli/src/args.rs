//! What can be typed, and the toolbox it asks for.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand, ValueEnum};
use helve::{Flavour, Input, Metadata, Toolbox};
use serde_json::{Map, Value};

use crate::install::{Client, Permission};
use crate::paint;
use crate::prompt::Terminal;

/// The tools of a coding agent: at the terminal, and behind any agent as an MCP server.
#[derive(Parser)]
#[command(name = "helve", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Args)]
pub(crate) struct Common {
    /// Print JSON for programs to read
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The session to go on with; otherwise one per user and folder
    #[arg(long, global = true, env = "HELVE_SESSION", value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Answer every question with yes; what a rule denies stays denied
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// Allow something without asking, such as `edit` or `edit:docs/*`; may be given several times
    #[arg(long, global = true, value_name = "PERMISSION[:PATTERN]")]
    pub(crate) allow: Vec<String>,
    /// A further configuration file, which counts as your own
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// The agent whose rules narrow what may be done
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The folder to work in; otherwise the git repository around the current one
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Call a tool
    ///
    /// The arguments are one JSON object, `-` for JSON from standard input, or pairs: `key=text` and `key:=json`.
    #[command(
        after_help = "Examples:\n  helve call read '{\"filePath\": \"README.md\"}'\n  helve call read filePath=README.md limit=20\n  echo '{\"filePath\": \"src\"}' | helve call read -\n\nExit codes: 0 done, 1 the tool failed, 2 bad usage, 3 refused by permission, 130 interrupted."
    )]
    Call {
        tool: String,
        #[arg(value_name = "JSON | - | KEY=VALUE")]
        input: Vec<String>,
    },
    /// List the tools on offer
    Tools {
        /// With --json: fit the schemas for a provider
        #[arg(long = "for", value_name = "PROVIDER")]
        flavour: Option<Provider>,
    },
    /// Say what permission would answer to a call, and by which rule, without making it
    Why {
        tool: String,
        #[arg(value_name = "JSON | - | KEY=VALUE")]
        input: Vec<String>,
    },
    /// List what calls changed in this folder, newest first
    History {
        /// How many to list
        #[arg(long, default_value_t = 20, value_name = "N")]
        most: usize,
    },
    /// Show what a call changed, as a diff
    Show {
        /// The call; the last one that changed a file, unless given
        call: Option<String>,
    },
    /// Take back what a call changed; itself a call that can be taken back
    ///
    /// Later changes to other lines stay. Where the same lines changed since, nothing is done.
    Undo {
        /// The call; the last one that changed a file, unless given
        call: Option<String>,
        /// Say what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the configuration in force, where each value comes from, and what is wrong with it
    Config,
    /// Trust this folder: let its configuration allow things and what it brings be used
    Trust {
        /// Take the trust back
        #[arg(long)]
        remove: bool,
    },
    /// Check that everything Helve needs is in order
    Doctor,
    /// Serve an MCP client over standard input and output; or look at the MCP servers set up here
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(flatten)]
        speaking: Speaking,
        #[command(subcommand)]
        servers: Option<Servers>,
    },
    /// Serve MCP clients over HTTP, each with a session of its own
    ///
    /// Clients connect to http://HOST:PORT/mcp, or to /mcp/NAME for the agent NAME, and send the token as
    /// `Authorization: Bearer TOKEN`. The token is made at the first start and kept in the data folder, unless
    /// --token-file or the variable HELVE_TOKEN gives one.
    Serve(Serving),
    /// Put Helve into another program's configuration: claude-code, codex or opencode
    ///
    /// Shows what would change and writes it. Nothing else in the file is touched, and another server of the same name is
    /// never overwritten.
    Install(Install),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}

/// How MCP clients are spoken to.
#[derive(clap::Args)]
pub(crate) struct Speaking {
    /// Whose tools and words to use
    #[arg(long, value_name = "NAME", default_value = "opencode")]
    dialect: Dialect,
    /// Also send what tools tell programs as structured content, with the text in it
    ///
    /// For programs: most agents show their model structured content instead of the text.
    #[arg(long)]
    structured: bool,
}

#[derive(clap::Args)]
pub(crate) struct Serving {
    /// The port to listen at; 0 for any
    #[arg(long, default_value_t = 7467)]
    pub(crate) port: u16,
    /// The address to listen at; others than this machine's own let other machines in
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub(crate) host: String,
    /// A file with the token, which only you can read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) speaking: Speaking,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    Opencode,
}

impl Speaking {
    pub(crate) fn metadata(&self) -> Metadata {
        // There is one, so that naming it changes nothing yet.
        match self.dialect {
            Dialect::Opencode => {}
        }
        if self.structured { Metadata::Structured } else { Metadata::Hidden }
    }
}

#[derive(clap::Args)]
pub(crate) struct Install {
    /// The program whose configuration to change
    pub(crate) client: Option<Client>,
    /// What may be done without being asked about
    #[arg(long, value_enum, default_value_t = Permission::Ask)]
    pub(crate) permission: Permission,
    /// The name that Helve gets there
    #[arg(long, default_value = "helve")]
    pub(crate) name: String,
    /// Take Helve out again, exactly
    #[arg(long, conflicts_with = "print")]
    pub(crate) remove: bool,
    /// Print what would be written, and write nothing; without a program, what most others take
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Subcommand)]
pub(crate) enum Servers {
    /// List the MCP servers that are set up; starts none
    List,
    /// Start one server and say what it offers, or what is wrong
    Check { name: String },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
    OpenaiStrict,
    Gemini,
}

impl From<Provider> for Flavour {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Flavour::Anthropic,
            Provider::OpenaiStrict => Flavour::OpenAiStrict,
            Provider::Gemini => Flavour::Gemini,
        }
    }
}

impl Common {
    /// The toolbox for a command at the terminal, with a person if there is one.
    pub(crate) async fn toolbox(&self) -> anyhow::Result<Toolbox> {
        let mut builder = self.builder().client("cli").one_shot();
        // Only where both the question can be seen and the answer typed.
        if !self.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            builder = builder.person(Terminal);
        }
        let toolbox = builder.build().await?;
        paint::problems(&toolbox);
        Ok(toolbox)
    }

    /// Everything but the client and the person.
    pub(crate) fn builder(&self) -> helve::Builder {
        let mut builder = Toolbox::builder();
        if let Ok(program) = std::env::current_exe() {
            builder = builder.keeper(program);
        }
        if let Some(dir) = &self.dir {
            builder = builder.dir(dir);
        }
        builder = match &self.session {
            Some(session) => builder.session(session),
            None => builder.usual_session(),
        };
        if let Some(agent) = &self.agent {
            builder = builder.agent(agent);
        }
        builder = self.config.iter().fold(builder, helve::Builder::config);
        builder = self.allow.iter().fold(builder, helve::Builder::allow);
        if self.yes { builder.yes() } else { builder }
    }
}

/// More than the engine takes, so that the engine is the one to say so.
const MOST_STDIN: u64 = 9 << 20;

/// The arguments of a call as they were typed.
pub(crate) fn input(typed: &[String]) -> anyhow::Result<Input> {
    match typed {
        [] => Ok(Input::Raw("{}".into())),
        [only] if only == "-" => {
            let mut text = String::new();
            let stdin = std::io::stdin().lock();
            stdin.take(MOST_STDIN).read_to_string(&mut text).context("standard input")?;
            Ok(Input::Raw(text))
        }
        [only] if !is_pair(only) => Ok(Input::Raw(only.clone())),
        pairs => Ok(Input::Json(Value::Object(self::pairs(pairs)?))),
    }
}

/// `filePath=x`: a name, then an equals sign.
fn is_pair(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    let name = name.strip_suffix(':').unwrap_or(name);
    text.contains('=')
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

fn pairs(typed: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut members = Map::new();
    for pair in typed {
        let Some((name, value)) = pair.split_once('=').filter(|_| is_pair(pair)) else {
            bail!(
                "`{pair}` is not KEY=VALUE; give one JSON object, or pairs such as filePath=README.md"
            );
        };
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => {
                let parsed = serde_json::from_str(value);
                (name, parsed.with_context(|| format!("the value of `{name}` is not JSON"))?)
            }
            None => (name, Value::from(value)),
        };
        if members.insert(name.into(), value).is_some() {
            bail!("`{name}` is given twice");
        }
    }
    Ok(members)
}
