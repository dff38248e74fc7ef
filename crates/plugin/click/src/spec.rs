//! The declaration of an element class: names, ports, arguments, handlers and text, each written once.

use crate::arguments::Arguments;
use crate::cells::{Cells, OLDEST};
use crate::element::Made;
use std::path::PathBuf;
use std::sync::Arc;
use volley_click_lang::Shape;
use volley_graph::Domain;

/// An element class.
pub struct Spec {
    /// Name.
    pub name: &'static str,
    /// Numbers of inputs and outputs: see [`Shape::new`].
    pub ports: &'static str,
    /// Push, pull or agnostic: see [`Shape::new`].
    pub modes: &'static str,
    /// Arguments, those by position first.
    pub arguments: &'static [Argument],
    /// Handlers, besides those of every element.
    pub handlers: &'static [Handler],
    /// One sentence.
    pub text: &'static str,
    /// Make the element.
    pub make: fn(&Arguments, &Context<'_>) -> Result<Made, String>,
}

impl Spec {
    /// The ports.
    pub fn shape(&self) -> Shape {
        Shape::new(self.ports, self.modes)
    }

    /// The number of cells that the handlers use.
    pub fn cells(&self) -> usize {
        let last = self
            .handlers
            .iter()
            .map(|it| usize::from(it.kind.last_cell()));
        last.max().map_or(0, |last| last + 1).max(OLDEST + 1)
    }
}

/// What an element may use while it is made.
pub struct Context<'a> {
    /// Numbers that the element shares with its handlers.
    pub cells: Arc<Cells>,
    /// Connected inputs and outputs.
    pub ports: (usize, usize),
    /// The index of an interface.
    pub interface: &'a dyn Fn(&str) -> Result<u32, String>,
    /// The domain of tables that elements read.
    pub domain: &'a Arc<Domain>,
    /// The folder of the configuration: other paths are relative to it.
    pub folder: PathBuf,
    /// Files that the graph writes.
    pub written: crate::element::Room,
    /// The maximum number of packets of a vector.
    pub vector_size: usize,
}

/// An argument.
pub struct Argument {
    /// Name, with which every argument can be given.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Whether the argument can or must be given.
    pub need: Need,
    /// What it means, with the default.
    pub text: &'static str,
}

/// Whether an argument can be given by position, and whether it can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// By position; it cannot be left out.
    Required,
    /// By position; it can be left out.
    Optional,
    /// By name only.
    Keyword,
    /// All further arguments.
    Rest,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A number between two limits, in decimal or hexadecimal digits.
    Number(u64, u64),
    /// A whole number that may be negative.
    Integer,
    /// A number from 0 to 1, or a percentage.
    Fraction,
    /// Packets a second.
    Rate,
    /// Bytes a second, with a unit such as Mbps or kB/s.
    Bandwidth,
    /// A time, such as 10ms.
    Time,
    /// An address of IPv4.
    Address,
    /// A prefix of IPv4.
    Prefix,
    /// A MAC address.
    Ethernet,
    /// A word or a quoted text.
    Text,
    /// An interface.
    Device,
    /// Addresses or prefixes, and a MAC address.
    Stations,
    /// Bytes, quoted or as \<hexadecimal digits>.
    Bytes,
    /// Anything: the element reads it.
    Words,
}

impl Kind {
    /// For an error or a table: `a number from 0 to 255`.
    pub fn describe(self) -> String {
        let text = match self {
            Kind::Bool => "true or false",
            Kind::Number(_, u64::MAX) => "a number",
            Kind::Number(low, high) => return format!("a number from {low} to {high}"),
            Kind::Integer => "a whole number",
            Kind::Fraction => "a number from 0 to 1",
            Kind::Rate => "a number of packets a second, such as 1000 or 2k",
            Kind::Bandwidth => "a bandwidth, such as 10Mbps or 500kB/s",
            Kind::Time => "a time, such as 100ms or 5s",
            Kind::Address => "an IPv4 address",
            Kind::Prefix => "an IPv4 prefix, such as 10.0.0.0/8",
            Kind::Ethernet => "a MAC address, such as 02:00:00:00:00:01",
            Kind::Text => "a text",
            Kind::Device => "the name of an interface, or its MAC address",
            Kind::Stations => "addresses or prefixes, and a MAC address",
            Kind::Bytes => "bytes, such as \"text\" or \\<08 00>",
            Kind::Words => "a list of words",
        };
        text.to_owned()
    }
}

/// A handler: a name by which a value of an element is read or written.
pub struct Handler {
    /// Name.
    pub name: &'static str,
    /// What it does.
    pub kind: HandlerKind,
    /// One sentence.
    pub text: &'static str,
}

/// What a handler does with the cells of its element.
#[derive(Clone, Copy, Debug)]
pub enum HandlerKind {
    /// Read a cell.
    Read(u8, Format),
    /// Read and write a cell.
    ReadWrite(u8, Format),
    /// Set the cells from the first number up to, but not including, the second one to 0.
    Reset(u8, u8),
    /// Add 1 to a cell.
    Trigger(u8),
    /// Read packets a second: cell 0 has packets, cell 2 and 3 the times of the first and the last one.
    AverageRate,
    /// Read the report that a function makes of the first cells; their number.
    Report(u8, fn(&Cells) -> String),
}

impl HandlerKind {
    fn last_cell(self) -> u8 {
        match self {
            HandlerKind::Read(cell, _)
            | HandlerKind::ReadWrite(cell, _)
            | HandlerKind::Trigger(cell) => cell,
            HandlerKind::Reset(_, cells) | HandlerKind::Report(cells, _) => cells.saturating_sub(1),
            HandlerKind::AverageRate => 3,
        }
    }

    /// Whether the handler can be read, and written.
    pub fn access(self) -> (bool, bool) {
        match self {
            HandlerKind::Read(..) | HandlerKind::AverageRate | HandlerKind::Report(..) => {
                (true, false)
            }
            HandlerKind::ReadWrite(..) => (true, true),
            HandlerKind::Reset(..) | HandlerKind::Trigger(_) => (false, true),
        }
    }
}

/// The text of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A number.
    Number,
    /// A number that may be negative.
    Integer,
    /// `true` or `false`.
    Bool,
    /// A number with 16 binary places.
    Fraction,
    /// A time, in microseconds; the text has seconds.
    Seconds,
    /// An address of IPv4.
    Address,
}

/// An argument of a [`Spec`].
pub(crate) const fn argument(
    need: Need,
    name: &'static str,
    kind: Kind,
    text: &'static str,
) -> Argument {
    Argument {
        name,
        kind,
        need,
        text,
    }
}

/// A handler that reads a number.
pub(crate) const fn reads(name: &'static str, cell: u8, text: &'static str) -> Handler {
    Handler {
        name,
        kind: HandlerKind::Read(cell, Format::Number),
        text,
    }
}

/// A handler of any kind.
pub(crate) const fn handler(name: &'static str, kind: HandlerKind, text: &'static str) -> Handler {
    Handler { name, kind, text }
}
