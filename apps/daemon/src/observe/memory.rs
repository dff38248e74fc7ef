//! The reply to `show memory`: what the kernel says about the process, divided into what its large parts say about themselves.

use super::process::{field, own_status};
use crate::show::{MemoryPart, MemoryReply};
use volley_fib::FibStats;
use volley_graph::buf::{Backing, PoolReport, STRIDE};

/// What the kernel counts, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Anonymous pages, pages of files, and pages of memory that is shared with peers.
    anonymous: u64,
    file: u64,
    shared: u64,
    /// Reserved huge pages, which the three do not contain.
    huge: u64,
    /// Largest sum of the three.
    peak: u64,
}

impl Kernel {
    /// From the content of `/proc/self/status`.
    fn read(status: &str) -> Kernel {
        let bytes = |name: &str| {
            let kib = field(status, name).split_whitespace().next();
            kib.and_then(|n| n.parse::<u64>().ok()).unwrap_or_default() << 10
        };
        Kernel {
            anonymous: bytes("RssAnon"),
            file: bytes("RssFile"),
            shared: bytes("RssShmem"),
            huge: bytes("HugetlbPages"),
            peak: bytes("VmHWM"),
        }
    }

    /// Of this process.
    pub(crate) fn of_process() -> Kernel {
        Kernel::read(&own_status())
    }
}

/// Sizes that parts of the router know.
pub(crate) struct Sizes {
    /// Packet buffers; the second value: those in reserved huge pages.
    pub buffers: (u64, u64),
    pub fib: FibStats,
    /// Objects of the configuration.
    pub configuration: u64,
}

/// Bytes of the packet buffers: all, and those in reserved huge pages.
pub(crate) fn of_buffers(reports: &[PoolReport]) -> (u64, u64) {
    let bytes = |report: &PoolReport| (report.total * STRIDE) as u64;
    let huge = reports.iter().filter(|r| r.backing == Backing::Huge);
    (reports.iter().map(bytes).sum(), huge.map(bytes).sum())
}

/// The reply. The heap that no part knows is `other`, so that the parts add up to what the kernel counts.
pub(crate) fn report(kernel: Kernel, sizes: &Sizes) -> MemoryReply {
    let (buffers, of_huge) = sizes.buffers;
    let known = [
        (
            "lookup",
            sizes.fib.lpm_bytes as u64,
            "longest-prefix matches of the IP tables, which workers read",
        ),
        (
            "routes",
            sizes.fib.control_bytes as u64,
            "prefixes of the IP tables with their sources",
        ),
        (
            "paths",
            sizes.fib.dataplane_bytes as u64,
            "load balances, adjacencies, counters of routes",
        ),
        (
            "configuration",
            sizes.configuration,
            "objects of the configuration",
        ),
    ];
    // Pages that were never used are not resident: a part has at most what is left.
    let mut left = kernel.anonymous;
    let mut take = |bytes: u64| {
        let taken = bytes.min(left);
        left -= taken;
        taken
    };
    let plain = take(buffers - of_huge);
    // Other reserved huge pages are memory of peers.
    let huge = of_huge.min(kernel.huge);
    let mut parts = vec![("buffers", plain + huge, "packet buffers")];
    for (name, bytes, text) in known {
        parts.push((name, take(bytes), text));
    }
    parts.extend([
        ("other", left, "all other memory of the heap and of stacks"),
        (
            "program",
            kernel.file,
            "code and constants of the program and its libraries",
        ),
        (
            "shared",
            kernel.shared + kernel.huge - huge,
            "memory that is shared with peers",
        ),
    ]);
    let part = |(name, bytes, text): (&str, u64, &str)| MemoryPart {
        name: name.to_owned(),
        bytes,
        text: text.to_owned(),
    };
    let resident_bytes = kernel.anonymous + kernel.file + kernel.shared + kernel.huge;
    MemoryReply {
        resident_bytes,
        peak_bytes: kernel.peak,
        without_buffers_bytes: resident_bytes - plain - huge,
        parts: parts.into_iter().map(part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tvolley\nVmHWM:\t  900 kB\nVmRSS:\t  600 kB\nRssAnon:\t     500 kB\n\
        RssFile:\t      60 kB\nRssShmem:\t      40 kB\nHugetlbPages:\t   2048 kB\n";

    fn sizes(buffers: (u64, u64)) -> Sizes {
        Sizes {
            buffers,
            fib: FibStats {
                lpm_bytes: 100 << 10,
                control_bytes: 50 << 10,
                dataplane_bytes: 20 << 10,
                ..FibStats::default()
            },
            configuration: 30 << 10,
        }
    }

    fn kib(reply: &MemoryReply, name: &str) -> u64 {
        let part = reply.parts.iter().find(|part| part.name == name);
        part.unwrap().bytes >> 10
    }

    #[test]
    fn parts_add_up_to_what_the_kernel_counts() {
        let kernel = Kernel::read(STATUS);
        for (buffers, left) in [((200, 0), 100), ((2048, 2048), 300), ((9999, 0), 0)] {
            let reply = report(kernel, &sizes((buffers.0 << 10, buffers.1 << 10)));
            let sum: u64 = reply.parts.iter().map(|part| part.bytes).sum();
            assert_eq!((sum, sum >> 10), (reply.resident_bytes, 2648));
            assert_eq!(kib(&reply, "other"), left, "{buffers:?}");
            let buffers = kib(&reply, "buffers");
            assert_eq!(reply.without_buffers_bytes >> 10, 2648 - buffers);
        }
        let reply = report(kernel, &sizes((200 << 10, 0)));
        let known = [
            "lookup",
            "routes",
            "paths",
            "configuration",
            "program",
            "shared",
        ];
        assert_eq!(
            known.map(|name| kib(&reply, name)),
            [100, 50, 20, 30, 60, 2088]
        );
        assert_eq!(reply.peak_bytes >> 10, 900);
    }
}
