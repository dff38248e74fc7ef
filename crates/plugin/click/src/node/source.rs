//! click-source: elements that make packets from nothing.

use super::Port;
use crate::columns::{self, DST, NET, NOTE};
use crate::element::{Generate, Reason};
use volley_graph::buf::DATA;
use volley_graph::{ColumnInfo, Cx, Isa, Output, Source};

/// Packets that a source makes in a round at most.
const MOST: usize = 256;

/// State of a source on one worker.
pub(crate) struct SourceNode {
    /// None on the workers that make no packets.
    element: Option<Box<dyn Generate>>,
}

impl SourceNode {
    /// A source; without an element it makes nothing.
    pub(crate) fn new(element: Option<Box<dyn Generate>>) -> Self {
        SourceNode { element }
    }
}

impl Source for SourceNode {
    const NAME: &'static str = "click-source";
    type Next = Port;
    type Count = Reason;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Reason>, out: &mut Output<'_, I, Port>) -> usize {
        let Some(element) = &mut self.element else {
            return 0;
        };
        let due = element.due(cx.now_ns(), MOST.min(out.vector_size()), cx.guard());
        if due == 0 {
            return 0;
        }
        let mut fresh = out.alloc(due, 0);
        let n = fresh.len();
        match element.alike().filter(|data| data.len() <= DATA) {
            Some(data) => fresh.fill_alike(data.len(), |buffers| {
                for buffer in buffers {
                    buffer[..data.len()].copy_from_slice(data);
                }
            }),
            None => {
                for row in 0..n {
                    fresh.write(row, element.next());
                }
            }
        }
        element.made(n);
        if n == 0 {
            return 0;
        }
        let mut rows = fresh.rows();
        for column in [DST, NOTE, NET] {
            rows.column_mut(column.col).fill(0);
        }
        if let Some(destination) = element.destination() {
            for row in 0..n {
                let mut packet = rows.packet(row);
                columns::set_net(&mut packet, 0);
                columns::set_dst(&mut packet, destination);
            }
        }
        fresh.send(Port(0))
    }

    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        self.element.as_ref().is_none_or(|it| it.is_idle())
    }
}
