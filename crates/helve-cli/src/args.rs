//! Command-line arguments, and the toolbox they describe.

use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use helve::{Input, MetadataMode, SchemaFlavour, Toolbox};
use serde_json::{Map, Value};

use crate::output;
use crate::prompt::Terminal;

/// The tools of a coding agent, at the terminal or as an MCP server for any agent.
#[derive(Parser)]
#[command(name = "helve", version, max_term_width = 100)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) common: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(clap::Args)]
pub(crate) struct GlobalArgs {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Continue this session; the default is one session per user and folder
    #[arg(short, long, global = true, env = "HELVE_SESSION", value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Answer every question with yes; denied calls stay denied
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// Allow something without asking, such as `edit` or `edit:docs/*`; can be repeated
    #[arg(long, global = true, value_name = "PERMISSION[:PATTERN]")]
    pub(crate) allow: Vec<String>,
    /// Read another configuration file or folder, trusted like your own; can be repeated
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Work as this agent, whose rules restrict what is allowed
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Dialect of the tools: their names, parameters and messages
    #[arg(long, global = true, value_name = "NAME", default_value = "opencode")]
    pub(crate) dialect: String,
    /// Work in this folder; the default is the git repository around the current folder
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Let a model work in this folder until it answers
    #[command(
        after_help = "Examples:\n  helve run --model openai/gpt-5 \"fix the failing test\"\n  git diff | helve run \"review this\"\n  helve run --base-url http://127.0.0.1:8080/v1 --model qwen \"explain src/main.rs\"\n  helve run -f screenshot.png \"why does it look like this?\"\n  helve run                       a conversation\n\nExit codes: 0 answered, 1 the provider failed, 2 bad usage, 3 a call was refused, 4 a limit was reached, 5 no answer, 130 interrupted."
    )]
    Run(Box<RunArgs>),
    /// List, show, export, search, undo, fork or delete the sessions of `helve run` in this folder
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// List the known models, with their limits and prices
    Models {
        /// Only models whose name contains this
        filter: Option<String>,
        /// Also models of providers for which there is no key
        #[arg(long)]
        all: bool,
    },
    /// List the skills that models can load, and what is wrong with others
    Skills,
    /// Save, list or remove keys of model providers
    Auth {
        #[command(subcommand)]
        command: AuthCommand,
    },
    /// Call a tool
    ///
    /// Arguments are one JSON object, `-` to read JSON from standard input, or pairs: `key=text` and `key:=json`.
    #[command(
        after_help = "Examples:\n  helve call read '{\"filePath\": \"README.md\"}'\n  helve call read filePath=README.md limit=20\n  echo '{\"filePath\": \"src\"}' | helve call read -\n\nExit codes: 0 done, 1 the tool failed, 2 bad usage, 3 refused by permission, 130 interrupted. A command that fails is not a failed tool; --exit-code passes its exit code on."
    )]
    Call {
        #[arg(value_parser = ToolName, hide_possible_values = true)]
        tool: String,
        #[arg(value_name = "JSON | - | KEY=VALUE")]
        input: Vec<String>,
        /// Show what a tool that changes files would change, without changing anything
        #[arg(long)]
        dry_run: bool,
        /// For bash: exit with the exit code of the command, or 1 if it has none
        #[arg(long, conflicts_with = "dry_run")]
        exit_code: bool,
    },
    /// List the available tools, describe one, or check a file with custom tools
    #[command(args_conflicts_with_subcommands = true)]
    Tools {
        /// Describe this tool: what it does, and its parameters
        #[arg(value_parser = ToolName, hide_possible_values = true)]
        name: Option<String>,
        /// With --json: adapt the schemas to a provider
        #[arg(long = "for", value_name = "PROVIDER")]
        provider: Option<Provider>,
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// Show whether a call would be allowed and which rule decides, without making the call
    Why {
        #[arg(value_parser = ToolName, hide_possible_values = true)]
        tool: String,
        #[arg(value_name = "JSON | - | KEY=VALUE")]
        input: Vec<String>,
    },
    /// List the lasting approvals that you gave, or withdraw some
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// List the changes that calls made in this folder, newest first
    History {
        /// Maximum number of changes to list
        #[arg(long, alias = "most", default_value_t = 20, value_name = "N")]
        limit: usize,
    },
    /// Show what a call changed, as a diff
    Show {
        /// The call; the default is the last one that changed a file
        call: Option<String>,
    },
    /// Undo the last change, or what a call changed; `helve redo` takes an undo back
    ///
    /// Run it again to go further back. Later changes to other lines are kept. If the same lines changed since, nothing
    /// is undone without `--force`.
    Undo {
        /// The call, or the beginning or end of its id; the default is the last change that is in effect
        call: Option<String>,
        /// Undo the last N changes
        #[arg(short = 'n', long, value_name = "N", conflicts_with = "call")]
        last: Option<usize>,
        /// Discard later changes to the same lines, including those made by commands and editors
        #[arg(long)]
        force: bool,
        /// Show what would change, without changing anything
        #[arg(long)]
        dry_run: bool,
    },
    /// Reapply the changes that the last undo reverted
    Redo {
        /// Show what would change, without changing anything
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the active configuration, the source of each value, and any problems
    Config {
        /// Also show the built-in rules and agents, and the values of keys that are not set
        #[arg(long)]
        defaults: bool,
    },
    /// Trust this folder: let its configuration allow things, and use the agents and servers it defines
    Trust {
        /// Withdraw the trust
        #[arg(long)]
        remove: bool,
    },
    /// Check that everything Helve needs works
    Doctor,
    /// Serve an MCP client over standard input and output, or inspect the configured MCP servers
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(flatten)]
        mcp: McpArgs,
        #[command(subcommand)]
        command: Option<McpCommand>,
    },
    /// Serve MCP clients over HTTP, each with its own session
    ///
    /// Clients connect to http://HOST:PORT/mcp, or to /mcp/NAME for the agent NAME, and send the token as
    /// `Authorization: Bearer TOKEN`. The token is created on the first start and stored in the data folder, unless
    /// --token-file or the variable HELVE_TOKEN provides one.
    Serve(ServeArgs),
    /// Add Helve to the configuration of another program, such as claude-code or codex
    ///
    /// Shows the change and writes it. Nothing else in the file is changed, and another server of the same name is
    /// never overwritten.
    Install(InstallArgs),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from standard input; without a prompt, a conversation starts at a terminal
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Run this configured command (or init, review, or a skill) with PROMPT as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Continue the newest session of this folder
    #[arg(short = 'c', long = "continue")]
    pub(crate) continue_last: bool,
    /// Continue a copy of the session that -c or --session names; the original stays as it is
    #[arg(long)]
    pub(crate) fork: bool,
    /// Attach a file: text, an image or a PDF; can be repeated
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Model, as PROVIDER/MODEL; with --base-url, as the provider calls it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// URL of a provider that is not configured, without the protocol's path, such as /chat/completions
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// With --base-url: protocol of the provider
    #[arg(long, value_enum, default_value_t = RunProtocol::Chat)]
    pub(crate) protocol: RunProtocol,
    /// With --base-url: environment variable with the key
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,
    /// With --json: also print text while it arrives
    #[arg(long)]
    pub(crate) stream: bool,
    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Stop after this many tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop once the requests have cost this much in total, in dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<f64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// JSON schema that the answer must follow
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the model's last message to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) last_message: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, newest first
    List {
        /// Maximum number of sessions to list
        #[arg(long, default_value_t = 20, value_name = "N")]
        limit: usize,
    },
    /// Show what was said and done in a session; with --json everything
    Show {
        /// The session; the default is the newest one
        id: Option<String>,
    },
    /// Write a session to standard output, or to a file
    Export {
        /// The session; the default is the newest one
        id: Option<String>,
        /// json contains everything; markdown and html are for reading
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
        /// File to write to
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take back your last message, with everything that followed and the files it changed
    ///
    /// Changes made by others since are kept. If the same lines changed since, nothing is undone. What commands changed
    /// stays as it is.
    Undo {
        /// The session; the default is the newest one
        id: Option<String>,
    },
    /// Restore what the last undo took back
    Redo {
        /// The session; the default is the newest one
        id: Option<String>,
    },
    /// Copy a session, to continue the copy with `helve run --session ID`
    Fork {
        /// The session; the default is the newest one
        id: Option<String>,
    },
    /// Search the sessions for words
    Search {
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of places to list
        #[arg(long, default_value_t = 20, value_name = "N")]
        limit: usize,
    },
    /// Show tokens, costs and calls, of a session or of all sessions of this folder
    Stats {
        /// The session; the default is all
        id: Option<String>,
    },
    /// Delete what was said in a session; file changes stay in the journal
    Delete { id: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Json,
    Markdown,
    Html,
}

#[derive(Subcommand)]
pub(crate) enum AuthCommand {
    /// Save a key; it is read from the terminal without being shown, or from standard input
    Login { provider: String },
    /// List the providers, and where their keys come from
    List,
    /// Remove a saved key
    Logout { provider: String },
}

#[derive(Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List all approvals: what is allowed, where, and since when
    List,
    /// Withdraw approvals
    Revoke {
        /// Numbers, as `helve approvals` lists them
        #[arg(value_name = "ID", required_unless_present_any = ["all", "end_session"])]
        ids: Vec<u64>,
        /// Withdraw every approval
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// End the default session of this folder, with all its approvals
        #[arg(long, conflicts_with_all = ["ids", "all"])]
        end_session: bool,
    },
}

/// The API protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunProtocol {
    /// OpenAI's Chat Completions API, which most servers understand
    Chat,
    /// OpenAI's Responses API
    Responses,
    /// Anthropic's Messages API
    Messages,
}

/// Options for serving MCP clients.
#[derive(clap::Args)]
pub(crate) struct McpArgs {
    /// Also send tool metadata as structured content, together with the text
    ///
    /// For programs: most agents show structured content to their model instead of the text.
    #[arg(long)]
    structured: bool,
}

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 7467)]
    pub(crate) port: u16,
    /// Address to listen on; anything but a loopback address lets other machines connect
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub(crate) host: String,
    /// File with the token, readable only by you
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
}

impl McpArgs {
    pub(crate) fn metadata(&self) -> MetadataMode {
        if self.structured { MetadataMode::Structured } else { MetadataMode::Hidden }
    }
}

#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    /// Program whose configuration to change
    pub(crate) client: Option<InstallClient>,
    /// What is allowed without asking
    #[arg(long, value_enum, default_value_t = InstallPermission::Ask)]
    pub(crate) permission: InstallPermission,
    /// Name of the server entry
    #[arg(long, default_value = "helve")]
    pub(crate) name: String,
    /// Also switch off the program's own file and shell tools, so that a model does not see two of each
    #[arg(long, conflicts_with_all = ["remove", "print"])]
    pub(crate) replace: bool,
    /// Remove Helve, restoring the file exactly; also switches the program's own tools on again
    #[arg(long, conflicts_with = "print")]
    pub(crate) remove: bool,
    /// Print what would be written, without writing it; without a program, print the common `mcpServers` JSON
    #[arg(long)]
    pub(crate) print: bool,
}

/// Programs whose configuration format is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallClient {
    ClaudeCode,
    Codex,
    Opencode,
    Cursor,
    Vscode,
    Zed,
    GeminiCli,
}

/// What is allowed without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallPermission {
    /// Helve's default rules: reading is allowed, changes need approval
    Ask,
    /// Also changes to files in the folder
    Workspace,
    /// Everything that no rule denies
    Yes,
}

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    /// List the configured MCP servers, without starting any
    List,
    /// Start one server and show what it offers, or what is wrong
    Check { name: String },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
    OpenaiStrict,
    Gemini,
}

impl From<Provider> for SchemaFlavour {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => SchemaFlavour::Anthropic,
            Provider::OpenaiStrict => SchemaFlavour::OpenAiStrict,
            Provider::Gemini => SchemaFlavour::Gemini,
        }
    }
}

impl GlobalArgs {
    /// Builds the toolbox for a command at the terminal. Questions are asked there if the terminal is interactive.
    pub(crate) async fn toolbox(&self) -> anyhow::Result<Toolbox> {
        self.build(self.builder()).await
    }

    /// Builds the toolbox for a command that must work even if there is no usable agent.
    pub(crate) async fn toolbox_to_inspect(&self) -> anyhow::Result<Toolbox> {
        self.build(self.builder().inspect()).await
    }

    async fn build(&self, builder: helve::Builder) -> anyhow::Result<Toolbox> {
        let mut builder = builder.client("cli").one_shot();
        // The question must be visible, and it must be possible to type the answer.
        if !self.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            builder = builder.person(Terminal);
        }
        let toolbox = builder.build().await?;
        output::summarize_problems(&toolbox);
        Ok(toolbox)
    }

    /// Returns a builder with all settings but the client and the person.
    pub(crate) fn builder(&self) -> helve::Builder {
        let mut builder = Toolbox::builder().dialect(&self.dialect);
        if let Ok(program) = std::env::current_exe() {
            builder = builder.keeper(program);
        }
        if let Some(dir) = &self.dir {
            builder = builder.dir(dir);
        }
        builder = match &self.session {
            Some(session) => builder.session(session),
            None => builder.default_session(),
        };
        if let Some(agent) = &self.agent {
            builder = builder.agent(agent);
        }
        builder = self.config.iter().fold(builder, helve::Builder::config);
        builder = self.allow.iter().fold(builder, helve::Builder::allow);
        if self.yes { builder.yes() } else { builder }
    }
}

/// How much is read from standard input. More than the engine accepts, so that the engine reports its own limit.
const MAX_STDIN: u64 = 9 << 20;

/// Parses the arguments of a call.
pub(crate) fn parse_input(raw_args: &[String]) -> anyhow::Result<Input> {
    match raw_args {
        [] => Ok(Input::Raw("{}".into())),
        [only] if only == "-" => {
            let mut text = String::new();
            let stdin = std::io::stdin().lock();
            stdin
                .take(MAX_STDIN)
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            Ok(Input::Raw(text))
        }
        [only] if !is_pair(only) => Ok(Input::Raw(only.clone())),
        pairs => Ok(Input::Json(Value::Object(parse_pairs(pairs)?))),
    }
}

/// Whether a text is a pair such as `filePath=x`.
fn is_pair(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    let name = name.strip_suffix(':').unwrap_or(name);
    text.contains('=')
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

fn parse_pairs(raw_args: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut members = Map::new();
    for pair in raw_args {
        let Some((name, value)) = pair.split_once('=').filter(|_| is_pair(pair)) else {
            bail!(
                "`{pair}` is not KEY=VALUE; pass one JSON object, or pairs such as filePath=README.md"
            );
        };
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => {
                let parsed = serde_json::from_str(value);
                (name, parsed.with_context(|| format!("the value of `{name}` is not valid JSON"))?)
            }
            None => (name, Value::from(value)),
        };
        if members.insert(name.into(), value).is_some() {
            bail!("`{name}` is given twice");
        }
    }
    Ok(members)
}

#[derive(clap::Subcommand)]
pub(crate) enum ToolsCommand {
    /// Load a file with custom tools, which runs it, and show the tools and their problems
    Check { file: PathBuf },
}

/// Names of built-in tools that are offered for shell completion.
const TOOL_NAMES: &[&str] = &[
    "apply_patch",
    "bash",
    "batch",
    "edit",
    "glob",
    "grep",
    "list",
    "lsp",
    "multiedit",
    "process",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "write",
];

/// Accepts any tool name, and completes those of built-in tools.
#[derive(Clone)]
struct ToolName;

impl TypedValueParser for ToolName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(TOOL_NAMES.iter().map(PossibleValue::new)))
    }
}
