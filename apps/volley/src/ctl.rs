//! `volley ctl`: one command, the interactive command line, or a script on standard input.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use volley_cli::client::{ClientError, ScriptOptions, interactive, one_shot, script};
use volley_daemon::EngineSettings;

/// The control socket of the packaged service.
const SERVICE: &str = "/run/volley/volley.sock";

/// The default socket: that of `VOLLEY_SOCKET`, else the service's if the service runs, else that of a daemon of this user.
pub fn usual_socket() -> PathBuf {
    let named = std::env::var_os("VOLLEY_SOCKET").filter(|name| !name.is_empty());
    if let Some(socket) = named {
        return socket.into();
    }
    match std::path::Path::new(SERVICE).exists() {
        true => SERVICE.into(),
        false => EngineSettings::default().socket(),
    }
}

/// `volley ctl ...`
#[derive(clap::Args)]
pub struct Args {
    /// Unix socket of the daemon ($VOLLEY_SOCKET, else /run/volley/volley.sock if the service runs, else volley.sock in
    /// $XDG_RUNTIME_DIR).
    #[arg(long, default_value_os_t = usual_socket())]
    socket: PathBuf,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
    /// With commands on standard input: continue after a command that fails. The exit status is still 1.
    #[arg(long, conflicts_with = "words")]
    keep_going: bool,
    /// The command. Without one the command line is interactive; if standard input is not a terminal, commands are read from
    /// it, one a line, up to the first that fails.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Moves the options of this program out of the words of the command: an option may come after or inside the command.
fn take_options(args: &mut Args) {
    let words = std::mem::take(&mut args.words);
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        match word.strip_prefix("--socket") {
            Some("") if words.peek().is_some() => {
                args.socket = words.next().map(PathBuf::from).unwrap_or_default();
            }
            Some(value) if value.starts_with('=') => args.socket = value[1..].into(),
            _ if word == "--json" => args.json = true,
            _ => args.words.push(word),
        }
    }
}

/// Carries the command out.
pub fn main(mut args: Args) -> Result<(), ClientError> {
    take_options(&mut args);
    let mut out = std::io::stdout();
    let stdin = std::io::stdin();
    let done = if args.words.is_empty() && stdin.is_terminal() {
        let history = history();
        interactive(&args.socket, history.as_deref(), &mut out)
    } else if args.words.is_empty() {
        let options = ScriptOptions {
            keep_going: args.keep_going,
            json: args.json,
        };
        let mut errors = std::io::stderr();
        let input = &mut stdin.lock();
        script(&args.socket, input, options, &mut out, &mut errors)
    } else {
        one_shot(&args.socket, &args.words.join(" "), args.json, &mut out)
    };
    let _ = out.flush();
    done
}

/// `$XDG_STATE_HOME/volley/history`, else below `~/.local/state`; creates its folder.
fn history() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let state =
        named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    let folder = state.join("volley");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}
