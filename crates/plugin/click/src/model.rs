//! Object, query and verb of graphs.

use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use volley_object::{Class, DefinitionError, FieldError, Object, Query, Verb, refuse};
use volley_show::table;

/// Graph of elements that a file in Click's language describes.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "click", file = "[click]", check = ClickGraph::check, machine, last)]
#[object(group(
    "click",
    "Write handlers of elements, and read the file of the graph again."
))]
#[object(group("set click", "A graph of elements in Click's language."))]
#[object(set = "set click graph <graph>", unset = "delete click graph")]
#[object(example = "set click graph /etc/volley/router.click")]
pub struct ClickGraph {
    /// Absolute path of the file.
    #[object(example = "/etc/volley/router.click")]
    pub graph: PathBuf,
}

impl ClickGraph {
    fn check(&self) -> Result<(), FieldError> {
        match self.graph.is_absolute() {
            true => Ok(()),
            false => refuse(
                "graph",
                "must be absolute, such as /etc/volley/router.click",
            ),
        }
    }
}

/// Elements of the graph of `set click graph`, or a handler of one element.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "click", example = "show click")]
#[query(show = "show click [<handler>]")]
#[query(reply = ClickReply, text = text)]
pub struct ShowClick {
    /// Handler to read, such as c.count.
    pub handler: Option<String>,
}

/// Elements, or the value of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ClickReply {
    /// The file.
    pub graph: Option<String>,
    /// Elements, in the order of the file; empty if a handler is read.
    pub elements: Vec<ElementRow>,
    /// Value of the handler.
    pub value: Option<String>,
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ElementRow {
    /// Name.
    pub name: String,
    /// Class.
    pub class: String,
    /// Arguments.
    pub config: String,
    /// Values of the handlers of the class that can be read.
    pub values: Vec<HandlerValue>,
}

/// The value of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct HandlerValue {
    /// Name.
    pub handler: String,
    /// Value.
    pub value: String,
}

/// Writes a handler of an element.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "click-write", example = "click write c.reset_counts 1")]
#[verb(command = "click write <handler> <value>")]
pub struct ClickWrite {
    /// Element and handler, such as s.active.
    pub handler: String,
    /// Value.
    pub value: String,
}

/// Reads the file of the graph again. Elements that are the same go on.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "click-reload", example = "click reload")]
#[verb(command = "click reload")]
pub struct ClickReload {}

fn text(reply: &ClickReply) -> String {
    if let Some(value) = &reply.value {
        return match value.ends_with('\n') || value.is_empty() {
            true => value.clone(),
            false => format!("{value}\n"),
        };
    }
    let row = |it: &ElementRow| {
        let values: Vec<String> = it
            .values
            .iter()
            .map(|it| format!("{} {}", it.handler, it.value))
            .collect();
        vec![
            it.name.clone(),
            it.class.clone(),
            values.join(", "),
            it.config.clone(),
        ]
    };
    let rows: Vec<_> = reply.elements.iter().map(row).collect();
    table(&["Name", "Class", "Handlers", "Arguments"], &rows)
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowClick::query()?;
    ClickWrite::verb()?;
    ClickReload::verb()?;
    Ok(vec![ClickGraph::class()?])
}
