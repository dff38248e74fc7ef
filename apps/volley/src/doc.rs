//! `volley doc`: pages that are made from the program itself, so that they cannot go stale unseen.

use clap::ValueEnum;
use volley_cli::{View, render};
use volley_daemon::stack::{Stack, StackError};
use volley_graph::Clock;
use volley_model::{EngineSettings, Query};

/// Which page.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Page {
    /// Every counter of every node, with its meaning.
    Counters,
    /// The graph in Graphviz form.
    Graph,
    /// Every command of the command line.
    Commands,
    /// Every table and key of the configuration file.
    File,
    /// The description of the HTTP interface.
    Openapi,
}

/// The text of a page.
pub fn page(page: Page) -> Result<String, StackError> {
    let settings = EngineSettings {
        buffers: 1024,
        ..EngineSettings::default()
    };
    let (stack, _workers) = Stack::new(&settings, Clock::manual())?;
    match page {
        Page::Commands => Ok(volley_cli::reference()),
        Page::File => Ok(file()),
        Page::Openapi => Ok(format!("{:#}\n", volley_http::document())),
        Page::Counters => Ok(counters(&stack)),
        Page::Graph => {
            let reply = stack.query(&Query::Graph)?;
            Ok(render::text(&reply, View::Dot))
        }
    }
}

fn file() -> String {
    let mut out = String::from(
        "# volley.toml\n\nMade by `cargo xtask docs --update` from the reader itself. Defaults stand in parentheses.\n",
    );
    for table in volley_config::schema() {
        out += &format!("\n## `{}`\n\n| key | value |\n|---|---|\n", table.title());
        for key in table.keys {
            out += &format!("| `{}` | {} |\n", key.name, key.text.replace('|', "\\|"));
        }
    }
    out
}

fn counters(stack: &Stack) -> String {
    let mut lines = vec![
        "# Counters".to_owned(),
        String::new(),
        "Made by `cargo xtask docs --update` from the nodes themselves. Packets; `error` means that they are lost.".to_owned(),
        String::new(),
        "| node | counter | severity | meaning |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    let mut rows: Vec<String> = Vec::new();
    for c in stack.engine.borrow().counters() {
        rows.push(format!(
            "| `{}` | `{}` | {} | {} |",
            c.node,
            c.info.name,
            c.info.severity.name(),
            c.info.text
        ));
    }
    rows.sort();
    lines.append(&mut rows);
    lines.join("\n") + "\n"
}
