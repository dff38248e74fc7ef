//! click-each: elements that send every packet to one output or drop it.

use super::Port;
use crate::columns;
use crate::element::{Each, Reason, Verdict};
use crate::fast::{Fast, Scratch};
use volley_graph::{
    Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, all_equal,
};

/// State of an element on one worker.
pub(crate) struct EachNode {
    element: Box<dyn Each>,
    fast: Fast,
    scratch: Scratch,
    outputs: usize,
    /// Packets end here.
    ends: bool,
    verdicts: Column,
}

impl EachNode {
    /// An element with this number of outputs, for vectors of up to `size` packets.
    pub(crate) fn new(element: Box<dyn Each>, outputs: usize, size: usize) -> Self {
        let fast = element.fast();
        EachNode {
            element,
            scratch: Scratch::new(&fast, size),
            fast,
            outputs,
            ends: false,
            verdicts: Column::new(size),
        }
    }

    /// An element at which packets end.
    pub(crate) fn end(element: Box<dyn Each>, size: usize) -> Self {
        EachNode {
            ends: true,
            ..EachNode::new(element, 0, size)
        }
    }
}

impl Node for EachNode {
    const NAME: &'static str = "click-each";
    type Next = Port;
    type Count = Reason;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Reason>, mut v: Vector<'_, I, Port>) -> Consumed {
        let (n, outputs) = (v.len(), self.outputs);
        if !I::FEW
            && let Some(port) = self.fast.run(&mut v, &mut self.scratch)
            && port < outputs
        {
            return v.send_all(Port(port));
        }
        let verdicts = self.verdicts.words_mut(n);
        let is_judged = !I::FEW
            && self
                .fast
                .judge(&mut v, &mut self.scratch, verdicts, cx.guard());
        let mut rows = v.rows();
        if !is_judged {
            self.element
                .run(&mut rows, verdicts, cx.now_ns(), cx.guard());
        }
        if self.ends {
            return v.free();
        }
        if let Some(first) = verdicts.first()
            && let Ok(port) = Verdict(*first).resolve(outputs)
            && all_equal(verdicts)
        {
            return v.send_all(Port(port));
        }
        for (row, word) in verdicts.iter_mut().enumerate() {
            *word = match Verdict(*word).resolve(outputs) {
                Ok(port) => port as u32,
                Err(reason) => {
                    rows.packet(row).fail(cx, Reason::from_code(reason + 1));
                    outputs as u32
                }
            };
        }
        v.send_by(&self.verdicts)
    }
}
