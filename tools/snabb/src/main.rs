//! `volley-snabb`: runs a Lua program that wires a graph of apps (docs/lua.md).
#![forbid(unsafe_code)]

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use volley_snabb::{Options, Router, run};

/// The longest program in bytes.
const LONGEST: u64 = 16 << 20;

/// Run a Lua program that wires a graph, as users of Snabb write it.
#[derive(Parser)]
#[command(name = "volley-snabb", version, about, arg_required_else_help = true)]
struct Args {
    /// Control socket of a daemon that runs (default: start a daemon that ends with the program).
    #[arg(long, conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// Configuration of the daemon that is started.
    #[arg(long, short)]
    config: Option<PathBuf>,
    /// The program `volley` (default: the one beside this program, else that of the path).
    #[arg(long)]
    volley: Option<PathBuf>,
    /// Lua program.
    program: PathBuf,
    /// Arguments of the program, in the table `arg`.
    #[arg(trailing_var_arg = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    match carry_out(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("volley-snabb: {why}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(args: Args) -> Result<(), String> {
    let name = args.program.display().to_string();
    let text = volley_file::read_text(&args.program, LONGEST);
    let text = text.map_err(|why| format!("{name}: {why}"))?;
    let options = Options {
        socket: args.socket,
        volley: args.volley.unwrap_or_else(volley),
        config: args.config,
    };
    let router = Router::new(options).map_err(|why| why.to_string())?;
    let (router, done) = run(&name, &text, &args.arguments, router);
    let closed = router.close().map_err(|why| why.to_string());
    done.and(closed)
}

/// The program beside this one, if it is there.
fn volley() -> PathBuf {
    let here = std::env::current_exe().ok();
    let beside = here.map(|it| it.with_file_name("volley"));
    beside
        .filter(|it| it.exists())
        .unwrap_or_else(|| "volley".into())
}
