//! The columns of a frame by name: those of the engine, and those that nodes declare.

use crate::data::error::GraphError;

/// The number of columns of a frame.
pub(crate) const COLUMNS: usize = 20;

/// The storage of a column in a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
enum Storage {
    Len = 2,
    Rx = 3,
    Value0 = 4,
    Value1 = 5,
    Value2 = 6,
    Value3 = 7,
    Mark0 = 8,
    Value4 = 9,
    Tx = 10,
    Err = 11,
    Feature = 12,
    Trace = 13,
    Value5 = 14,
    Value6 = 15,
    Offload = 16,
    Start = 17,
    Value7 = 18,
    Value8 = 19,
}

/// The storage of nodes' values.
const VALUES: [Storage; 9] = [
    Storage::Value0,
    Storage::Value1,
    Storage::Value2,
    Storage::Value3,
    Storage::Value4,
    Storage::Value5,
    Storage::Value6,
    Storage::Value7,
    Storage::Value8,
];

/// The storage of nodes' marks.
const MARKS: [Storage; 1] = [Storage::Mark0];

/// Columns that every frame has: index, position, length, receiving interface.
pub(crate) const MANDATORY: u32 = 0b1111;

/// Columns where 0 means "none", so that frames with and without them merge.
pub(crate) const TAGS: u32 = Col::ERR.bit()
    | Col::TRACE.bit()
    | Col::FEATURE.bit()
    | Col::OFFLOAD.bit()
    | Col::START.bit()
    | Col::MARK.bit();

/// A handle of a column that nodes may read, write and pass on. The associated constants are the columns that the engine itself
/// reads; nodes declare the others: see [`ColumnInfo`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Col(Storage);

impl Col {
    /// Bytes of the packet from its current position, all segments together. Always valid.
    pub const LEN: Col = Col(Storage::Len);
    /// Index of the receive interface. Always valid.
    pub const RX: Col = Col(Storage::Rx);
    /// Index of the transmit interface.
    pub const TX: Col = Col(Storage::Tx);
    /// Why the packet is dropped: see [`crate::NodeId::reason`].
    pub const ERR: Col = Col(Storage::Err);
    /// The packet's position on a feature arc.
    pub const FEATURE: Col = Col(Storage::Feature);
    /// Trace number, 0 for none.
    pub const TRACE: Col = Col(Storage::Trace);
    /// Offload requests: operations on the packet that must be completed before transmission, 0 for none. See
    /// [`crate::Offload`].
    pub const OFFLOAD: Col = Col(Storage::Offload);
    /// The number of bytes between the start of a new packet and the start of this packet: nodes have removed them. 0 for
    /// none. See [`crate::PacketView::moved`].
    pub const START: Col = Col(Storage::Start);

    /// The column of nodes' marks.
    pub(crate) const MARK: Col = Col(MARKS[0]);

    /// The position of the column in a frame.
    #[inline(always)]
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    pub(crate) const fn bit(self) -> u32 {
        1 << self.0 as u8
    }

    /// The columns that may contain words when a packet leaves a node: for the test harness.
    pub(crate) fn handed_on() -> impl Iterator<Item = Col> {
        let of_nodes = MARKS.into_iter().chain(VALUES).map(Col);
        [Col::RX, Col::TX, Col::ERR].into_iter().chain(of_nodes)
    }
}

/// The meaning of a declared column's words for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// All packets of a vector have a word, or none has: when packets with and without words merge, the vector loses the
    /// column.
    Value,
    /// 0 means no mark. A held packet keeps its mark, and a packet that is made from another has none.
    Mark,
}

impl ColumnKind {
    fn storage(self) -> &'static [Storage] {
        match self {
            ColumnKind::Value => &VALUES,
            ColumnKind::Mark => &MARKS,
        }
    }
}

/// How long the words of a declared column are needed. Two columns whose lives do not overlap may share storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Until the node that the packet is sent to has run.
    Hop,
    /// While nodes of this layer handle the packet, such as `bridge`. A packet is handled by one layer at a time.
    Layer(&'static str),
}

/// A column that nodes pass on, as the crate that defines it declares it. Every node lists the columns that it reads or writes
/// ([`crate::Node::COLUMNS`]); the engine refuses a node whose columns contradict those of another node. Debug builds check that a
/// node uses no column that it does not list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnInfo {
    /// Name, the same wherever the column is declared.
    pub name: &'static str,
    /// How long the words are needed.
    pub life: Life,
    /// The handle.
    pub col: Col,
}

impl ColumnInfo {
    /// A column of this kind in storage number `storage`. Columns that are registered at run time get a free one: see
    /// [`crate::Engine::register_column`].
    ///
    /// # Panics
    /// When there is no such storage: a constant does not compile then.
    pub const fn new(name: &'static str, kind: ColumnKind, storage: usize, life: Life) -> Self {
        let storage = match kind {
            ColumnKind::Value => VALUES[storage],
            ColumnKind::Mark => MARKS[storage],
        };
        ColumnInfo {
            name,
            life,
            col: Col(storage),
        }
    }

    /// Whether two columns may have the same storage.
    fn may_share(&self, other: &ColumnInfo) -> bool {
        match (self.life, other.life) {
            (Life::Hop, Life::Hop) => true,
            (Life::Layer(mine), Life::Layer(others)) => mine != others,
            _ => false,
        }
    }

    /// The contradiction between this column of `node` and another column of another node.
    fn contradiction(&self, node: &str, other: &ColumnInfo, owner: &str) -> Option<GraphError> {
        if self == other {
            return None;
        }
        if self.name != other.name && (self.col != other.col || self.may_share(other)) {
            return None;
        }
        Some(GraphError::ColumnsContradict {
            column: self.name,
            node: node.to_owned(),
            other: other.name,
            owner: owner.to_owned(),
        })
    }
}

/// Check the columns of a node against each other, and against the columns that other nodes and plugins have declared.
pub(crate) fn check<'a>(
    node: &str,
    columns: &[ColumnInfo],
    others: impl Iterator<Item = (&'a str, &'a ColumnInfo)> + Clone,
) -> Result<(), GraphError> {
    for (at, column) in columns.iter().enumerate() {
        let mut mine = columns[..at].iter();
        let twice = mine.find(|other| other.col == column.col || other.name == column.name);
        if let Some(other) = twice {
            return Err(GraphError::ColumnsContradict {
                column: column.name,
                node: node.to_owned(),
                other: other.name,
                owner: node.to_owned(),
            });
        }
        let mut found =
            (others.clone()).filter_map(|(owner, other)| column.contradiction(node, other, owner));
        if let Some(error) = found.next() {
            return Err(error);
        }
    }
    Ok(())
}

/// A column in storage that no column with an overlapping life uses. The last such storage is chosen, because constants count
/// from the first.
pub(crate) fn place<'a>(
    name: &'static str,
    kind: ColumnKind,
    life: Life,
    others: impl Iterator<Item = (&'a str, &'a ColumnInfo)> + Clone,
) -> Result<ColumnInfo, GraphError> {
    let mut refusal = None;
    for &storage in kind.storage().iter().rev() {
        let column = ColumnInfo {
            name,
            life,
            col: Col(storage),
        };
        let mut known = others.clone();
        match known.find(|(_, other)| other.col == column.col && !column.may_share(other)) {
            None => return Ok(column),
            Some((owner, other)) => refusal = Some((other.name, owner.to_owned())),
        }
    }
    let (other, owner) = refusal.unwrap_or_default();
    Err(GraphError::NoColumnLeft {
        column: name,
        other,
        owner,
    })
}

/// A set of columns in debug builds; nothing in release builds.
#[derive(Clone, Copy)]
pub(crate) struct ColumnSet {
    #[cfg(debug_assertions)]
    bits: u32,
}

impl ColumnSet {
    /// Every column.
    pub(crate) const ALL: ColumnSet = ColumnSet {
        #[cfg(debug_assertions)]
        bits: u32::MAX,
    };

    /// The engine's columns and these.
    #[inline(always)]
    pub(crate) fn of(columns: &[ColumnInfo]) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = columns;
        ColumnSet {
            #[cfg(debug_assertions)]
            bits: columns.iter().fold(ENGINE, |all, it| all | it.col.bit()),
        }
    }

    /// Debug builds: panics for a column that is not in the set.
    #[inline(always)]
    pub(crate) fn check(self, col: Col) {
        #[cfg(debug_assertions)]
        assert!(
            self.bits & col.bit() != 0,
            "the node uses {col:?}, which is not in its COLUMNS"
        );
        #[cfg(not(debug_assertions))]
        let _ = col;
    }
}

/// The columns that no node declares.
#[cfg(debug_assertions)]
const ENGINE: u32 = MANDATORY
    | Col::TX.bit()
    | Col::ERR.bit()
    | Col::FEATURE.bit()
    | Col::TRACE.bit()
    | Col::OFFLOAD.bit()
    | Col::START.bit();
