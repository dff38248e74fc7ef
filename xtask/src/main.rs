//! `cargo xtask`: the development tools. Every command ends with a line that states its result.
//!
//! Exit code: 0 if nothing failed, 1 if something did, 2 for an error in the command line or the machine.
#![forbid(unsafe_code)]

use pico_args::Arguments;
use std::process::ExitCode;
use xtask::command::{SHOW, exit_code, finish, rest, tool, values};
use xtask::error::Error;
use xtask::home::Home;
use xtask::{
    bench, budget, ci, deb, docs, guest, install, new_node, new_object, readme, report, tidy,
};

const HELP: &str = "\
cargo xtask COMMAND

  ci [--quick | --long] [--only STAGE]...  everything that must hold before a change lands
  install                                  what the tests need beyond cargo; says SKIP for what cannot be had
  tidy                                     sizes, layers, unsafe code, banned words, dependencies
  new-node NAME --crate CRATE              a new node with its test, from the template
  new-object NAME --crate CRATE            a new class of objects with its owner and test, from the template
  bench [--from DIR] [--quick]             write the tables of docs/bench.md and README.md from a run of the lab
  budget [--update]                        instructions per packet against bench/budgets.toml
  path-curves                              the curves of docs/path-batcher.md, counted by callgrind (minutes)
  scaling                                  docs/scaling.md: what more cores would give, measured and simulated (minutes)
  contended [--only SCENARIO]... [--steps N] [--binary FILE] [--update]
                                           cache lines that workers contend for, seen instruction by instruction
  guest [--seconds N] -- PROGRAM [ARGS...] run it in an emulated guest, whose kernel has VLANs, VRFs, bonds
  docs [--update]                          generated pages: stale or not
  deb [--binary FILE] [--out DIR]          the Debian package, unpacked and tried
  readme [--update]                        run the commands of README.md and look at their output
  show NAME [--long] [--only ITEM]...      items of an issue, measured: `show engine`, `show interfaces`, `show control`,
                                           `show router`, `show batcher`, `show workers`, `show operator`, `show hostile`,
                                           `show speed`, `show objects`, `show house`, `show lab`,
                                           `show nodes`
";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_env();
    exit_code(Home::find().and_then(|home| dispatch(&home, &mut arguments)))
}

fn dispatch(home: &Home, arguments: &mut Arguments) -> Result<u8, Error> {
    let command = arguments.subcommand().map_err(Error::usage)?;
    let word = command.as_deref().unwrap_or_default();
    match word {
        // The only command whose status and words belong to another program.
        "guest" => guest::command(home, rest(arguments)),
        "show" => tool(home, SHOW, &rest(arguments)),
        "contended" | "path-curves" | "scaling" => {
            let words = [vec![word.into()], rest(arguments)].concat();
            tool(home, "house-experiments", &words)
        }
        _ => chore(home, command.as_deref(), arguments).map(|fine| u8::from(!fine)),
    }
}

fn chore(home: &Home, command: Option<&str>, arguments: &mut Arguments) -> Result<bool, Error> {
    match command {
        Some("ci") => {
            let depth =
                ci::Depth::from_flags(arguments.contains("--quick"), arguments.contains("--long"));
            let only = values(arguments, "--only")?;
            finish(arguments)?;
            Ok(ci::run(home, depth, &only))
        }
        Some("install") => finish(arguments).map(|()| install::run(home)),
        Some("tidy") => finish(arguments).and_then(|()| tidy::command(home)),
        Some(word @ ("new-node" | "new-object")) => {
            let of_crate: String = arguments.value_from_str("--crate").map_err(Error::usage)?;
            let name: String = arguments.free_from_str().map_err(Error::usage)?;
            finish(arguments)?;
            let run = match word {
                "new-node" => new_node::run,
                _ => new_object::run,
            };
            run(home, &name, &of_crate).map(|()| true)
        }
        Some("bench") => {
            let from: Option<String> = arguments
                .opt_value_from_str("--from")
                .map_err(Error::usage)?;
            let quick = arguments.contains("--quick");
            finish(arguments)?;
            bench::run(home, from.map(Into::into), quick).map(|()| true)
        }
        Some("budget") => {
            let update = arguments.contains("--update");
            finish(arguments).map(|()| report::single("budget", budget::run(home, update)))
        }
        Some("docs") => {
            let update = arguments.contains("--update");
            finish(arguments).map(|()| report::single("docs", docs::run(home, update)))
        }
        Some("deb") => {
            let mut path = |name| {
                let value: Result<Option<String>, _> = arguments.opt_value_from_str(name);
                value.map_err(Error::usage).map(|p| p.map(Into::into))
            };
            let (binary, out) = (path("--binary")?, path("--out")?);
            finish(arguments)?;
            let outcome = report::Outcome::of(deb::run(home, binary, out));
            Ok(report::single("deb", outcome))
        }
        Some("readme") => {
            let update = arguments.contains("--update");
            finish(arguments).map(|()| report::single("readme", readme::run(home, update)))
        }
        Some("help") | None => {
            print!("{HELP}");
            Ok(true)
        }
        Some(other) => Err(Error::Usage(format!(
            "there is no command `{other}`; `cargo xtask help` lists them"
        ))),
    }
}
