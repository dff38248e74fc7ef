//! Queries for tests: the command line itself defines few.

use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;

/// What lamps say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Lamps {
    /// A line of each.
    pub lines: Vec<String>,
}

/// Lamps of all rooms, or of one.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "test-lamps", example = "show lamps hall")]
#[query(
    show = "show lamp~s [<room>] [detail | dot] [max <max>]",
    show = "show lamp~s colour~s [max <max>]"
)]
#[query(reply = Lamps, text = text, detail = detailed, detail_by = "room")]
#[query(view(dot = dot, "Lamps for graphviz."), view(colour = colours, "Colours of lamps."))]
pub struct ShowLamps {
    /// Only this room.
    #[query(needs = "interface")]
    pub room: Option<String>,
    /// Most lamps to show.
    #[query(typed = Some(7), range = 1u32..=1_000_000)]
    pub max: Option<u32>,
}

fn text(lamps: &Lamps) -> String {
    lamps.lines.iter().map(|line| format!("{line}\n")).collect()
}

fn detailed(lamps: &Lamps) -> String {
    format!("{} lamps\n{}", lamps.lines.len(), text(lamps))
}

fn dot(_: &Lamps) -> String {
    "digraph\n".to_owned()
}

fn colours(_: &Lamps) -> String {
    "red\n".to_owned()
}
