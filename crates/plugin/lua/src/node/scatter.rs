//! scatter-arrays, scatter-masks, scatter-drop-out: three ways to scatter a batch, for `volley bench scatter` (docs/lua.md).
//!
//! All ways have the same work, by the same modules as scripts: complex packets, which a range of UDP source ports marks, and the other
//! ones are checked, and get a TTL and a TOS of their class. Then all packets go on along the arc.

use crate::batch::{Batch, Fault};
use crate::fields::{self, Place};
use crate::masks::{self, ALL};
use crate::sets::{BATCH, NO_BITS};
use crate::verdict::{Count, Verdict};
use std::marker::PhantomData;
use volley_sdk::prelude::*;

/// UDP source ports of complex packets, which the scripts have as well.
const COMPLEX: (u128, u128) = (0, 999);
/// TTL and TOS of other packets, and of complex ones.
const FAST: (u128, u128) = (63, 16);
const SLOW: (u128, u128) = (62, 32);

/// Packets of a merged batch, and the longest time that a packet waits for others.
pub(crate) const REBATCH: usize = 256;
pub(crate) const WAIT_US: u32 = 50;

/// Native scenarios: each is named like its node.
pub(crate) const NAMES: [&str; 3] = [Arrays::NAME, Masks::NAME, DropOut::NAME];

/// The script of a way: the shared work, and the way.
macro_rules! script {
    ($way:literal) => {
        concat!(include_str!("scatter/work.lua"), include_str!($way))
    };
}

/// The script of drop-out.
pub(crate) const DROP_OUT: &str = script!("scatter/drop_out.lua");

/// Scenarios of scripts.
pub(crate) const SCRIPTS: [(&str, &str); 3] = [
    ("scatter-lua-arrays", script!("scatter/arrays.lua")),
    ("scatter-lua-masks", script!("scatter/masks.lua")),
    ("scatter-lua-drop-out", DROP_OUT),
];

/// A way to scatter a batch.
pub(crate) trait Way: Send + 'static {
    /// Name of the node.
    const NAME: &'static str;

    /// Handle a batch.
    fn scatter(fields: &Fields, batch: &mut Batch) -> Result<(), Fault>;
}

/// The fields of the work.
pub(crate) struct Fields {
    port: Place,
    ttl: Place,
    tos: Place,
}

impl Fields {
    fn find() -> Result<Fields, Fault> {
        Ok(Fields {
            port: fields::find("udp.sport")?,
            ttl: fields::find("ip4.ttl")?,
            tos: fields::find("ip4.tos")?,
        })
    }

    /// The work for the packets of one class.
    fn work(&self, batch: &mut Batch, set: u32, (ttl, tos): (u128, u128)) -> Result<(), Fault> {
        if batch.sets.count(set)? == 0 {
            return Ok(());
        }
        let (good, bad) = batch.check_ip4(set)?;
        batch.decide(bad, Verdict::Drop(Count::Invalid))?;
        batch.write_all(good, self.ttl, ttl)?;
        batch.write_all(good, self.tos, tos)
    }
}

/// Click's way: the packets of each class are put into an array of their own.
pub(crate) struct Arrays;

impl Way for Arrays {
    const NAME: &'static str = "scatter-arrays";

    fn scatter(fields: &Fields, batch: &mut Batch) -> Result<(), Fault> {
        let complex = batch.between(BATCH, fields.port, COMPLEX)?;
        let (complex, fast) = batch.sets.split(complex)?;
        fields.work(batch, fast, FAST)?;
        fields.work(batch, complex, SLOW)
    }
}

/// Packets stay where they are, and each module visits those whose bit is set.
pub(crate) struct Masks;

impl Way for Masks {
    const NAME: &'static str = "scatter-masks";

    fn scatter(fields: &Fields, batch: &mut Batch) -> Result<(), Fault> {
        let complex = batch.between(BATCH, fields.port, COMPLEX)?;
        let fast = batch.sets.masks.both(ALL, complex, |all, it| all & !it)?;
        fields.work(batch, fast, FAST)?;
        fields.work(batch, complex, SLOW)
    }
}

/// MoonRoute's way: complex packets drop out and leave holes, over which the fast path goes on.
pub(crate) struct DropOut;

impl Way for DropOut {
    const NAME: &'static str = "scatter-drop-out";

    fn scatter(fields: &Fields, batch: &mut Batch) -> Result<(), Fault> {
        let complex = batch.between(BATCH, fields.port, COMPLEX)?;
        batch.sets.drop_out(complex)?;
        let (_, bad) = batch.check_ip4(BATCH)?;
        batch.sets.drop_out(bad)?;
        batch.decide(bad, Verdict::Drop(Count::Invalid))?;
        batch.write_all(BATCH, fields.ttl, FAST.0)?;
        batch.write_all(BATCH, fields.tos, FAST.1)?;
        fields.work(batch, complex, SLOW)
    }
}

nexts! {
    /// Where the nodes send packets, besides the next feature.
    pub enum Next { Drop => "error-drop" }
}

/// State of a node that scatters natively.
pub(crate) struct Scatter<W> {
    batch: Batch,
    fields: Option<Fields>,
    marks: Column,
    way: PhantomData<W>,
}

impl<W> Scatter<W> {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(size: usize) -> Self {
        Scatter {
            batch: Batch::new(size, false, &[]),
            fields: Fields::find().ok(),
            marks: Column::new(size),
            way: PhantomData,
        }
    }
}

impl<W: Way> Node for Scatter<W> {
    const NAME: &'static str = W::NAME;
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let (packets, empty) = v.lend();
        let mut present = NO_BITS;
        masks::fill(&mut present, n);
        let present = &present[..n.div_ceil(64)];
        self.batch.begin(I::LEVEL, packets, present);
        let fields = self.fields.as_ref().ok_or_else(Fault::new);
        let done = fields.and_then(|fields| W::scatter(fields, &mut self.batch));
        let Some(packets) = self.batch.end() else {
            panic!("the packets of a vector are lost");
        };
        let mut v = empty.restore(packets);
        if done.is_err() {
            return v.fail_all(cx, Count::ScriptError, Next::Drop);
        }
        let verdicts = self.batch.verdicts(n);
        if verdicts.iter().any(|it| *it != Verdict::Next) {
            let marks = self.marks.words_mut(n);
            for (mark, verdict) in marks.iter_mut().zip(verdicts) {
                *mark = verdict.drop_code();
            }
            v.drop_out(cx, &self.marks, |_| Next::Drop);
        }
        match v.is_empty() {
            true => v.send_all(Next::Drop),
            false => v.send_on_receive(),
        }
    }
}
