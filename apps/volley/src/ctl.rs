//! `volley ctl`: one command, or the interactive command line.

use std::io::Write;
use std::path::PathBuf;
use volley_cli::client::{ClientError, interactive, one_shot};
use volley_model::EngineSettings;

/// Where the service of the package has its control socket.
const SERVICE: &str = "/run/volley/volley.sock";

/// The socket of the daemon that is meant when none is named: the service's where that runs, else a daemon's own.
pub fn usual_socket() -> PathBuf {
    match std::path::Path::new(SERVICE).exists() {
        true => SERVICE.into(),
        false => EngineSettings::default().socket,
    }
}

/// `volley ctl ...`
#[derive(clap::Args)]
pub struct Args {
    /// Unix socket of the daemon (/run/volley/volley.sock where the service runs).
    #[arg(long, default_value_os_t = usual_socket())]
    socket: PathBuf,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
    /// The command; none: interactive.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Carry it out.
pub fn main(args: Args) -> Result<(), ClientError> {
    let mut out = std::io::stdout();
    let done = if args.words.is_empty() {
        let history = history();
        interactive(&args.socket, history.as_deref(), &mut out)
    } else {
        one_shot(&args.socket, &args.words.join(" "), args.json, &mut out)
    };
    let _ = out.flush();
    done
}

/// `$XDG_STATE_HOME/volley/history`, else below `~/.local/state`; its folder is made.
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
