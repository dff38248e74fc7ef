//! `volley doc`: pages that are generated from the program itself, so that an outdated page is detected.

use clap::ValueEnum;
use volley_daemon::EngineSettings;
use volley_daemon::show::ShowGraph;
use volley_daemon::stack::{Stack, StackError};
use volley_graph::Clock;
use volley_object::{Query as _, View};
use volley_wire::field;

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
    /// Every element of graphs in Click's language.
    Click,
    /// Every field of every header that templates, filters and rules can name.
    Fields,
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
        Page::Click => Ok(volley_click::page::page()),
        Page::Fields => Ok(fields()),
        Page::Graph => {
            let reply = stack.ask(&ShowGraph)?;
            Ok(ShowGraph::text(&reply, View::Named("dot")))
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

/// The table of fields, by header.
fn fields() -> String {
    let mut out = String::from(
        "# Packet fields\n\nMade by `cargo xtask docs --update` from the table in `crates/base/wire`. Templates and edits of the packet \
         generator, filters of `trace`, `pcap trace` and `monitor`, and rules of the path batcher name fields as `HEADER.FIELD`. \
         A place is the first bit, counted from the start of the header. Other names of a header or a field are in parentheses.\n",
    );
    let called = |name: &str, aliases: &[&str]| match aliases {
        [] => format!("`{name}`"),
        _ => format!("`{name}` (`{}`)", aliases.join("`, `")),
    };
    for header in field::HEADERS {
        let title = called(header.name, header.aliases);
        out += &format!(
            "\n## {title}\n\n{}.\n\n| field | bit | bits | meaning |\n|---|---|---|---|\n",
            header.text
        );
        for it in header.fields {
            let bits = match it.has_place() {
                true => it.bits.to_string(),
                false => "any".to_owned(),
            };
            out += &format!(
                "| {} | {} | {bits} | {} |\n",
                called(it.name, it.aliases),
                it.bit,
                it.text
            );
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
