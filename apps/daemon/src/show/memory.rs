//! `show memory`: the query, its reply, its text, and figures on the page of metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Query;
use volley_show::{GAUGE, Page, bytes, table};

/// Memory of the daemon by part.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "memory", show = "show memory", example = "show memory")]
#[query(reply = MemoryReply, text = memory, figures = memory_figures)]
pub struct ShowMemory;

/// Memory of the daemon. The parts add up to `resident_bytes`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReply {
    /// Bytes of main memory that the process has, as the kernel counts them (VmRSS); reserved huge pages included.
    pub resident_bytes: u64,
    /// Largest number of resident bytes so far, without reserved huge pages.
    pub peak_bytes: u64,
    /// Resident bytes without packet buffers.
    pub without_buffers_bytes: u64,
    /// Parts in the order of the text.
    pub parts: Vec<MemoryPart>,
}

/// One part of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPart {
    /// Name of the part.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// What the part contains.
    pub text: String,
}

fn memory(reply: &MemoryReply) -> String {
    let row = |part: &MemoryPart| {
        let (name, text) = (part.name.clone(), part.text.clone());
        vec![name, bytes(part.bytes), text]
    };
    let rows: Vec<_> = reply.parts.iter().map(row).collect();
    format!(
        "resident {}, without packet buffers {}, peak {}\n{}",
        bytes(reply.resident_bytes),
        bytes(reply.without_buffers_bytes),
        bytes(reply.peak_bytes),
        table(&["Part", ">Size", "Contents"], &rows)
    )
}

fn memory_figures(reply: &MemoryReply, page: &mut Page) {
    let help = "Resident memory of the daemon by part.";
    let family = ("volley_memory_bytes", GAUGE, help);
    page.rows(family, &reply.parts, |put, part| {
        put(&[("part", &part.name)], part.bytes as f64);
    });
    let name = "volley_memory_peak_bytes";
    page.family(
        name,
        GAUGE,
        "Largest resident memory so far, without reserved huge pages.",
    );
    page.sample(name, &[], reply.peak_bytes);
}
