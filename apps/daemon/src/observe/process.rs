//! `show process`: the rights of each thread of the daemon in the kernel.

use crate::show::{ProcessReply, ThreadRow};
use rustix::thread::CapabilitySet;

/// A line of `/proc/.../status`.
pub(super) fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    status.lines().find_map(value).map_or("", str::trim)
}

/// The effective identifier of `Uid` or `Gid`.
fn effective(status: &str, name: &str) -> u32 {
    let second = field(status, name).split_whitespace().nth(1);
    second.and_then(|id| id.parse().ok()).unwrap_or_default()
}

/// The names of the capabilities in a set, as in capabilities(7), without `CAP_`.
fn capabilities(set: &str) -> Vec<String> {
    let bits = u64::from_str_radix(set, 16).unwrap_or_default();
    let held = CapabilitySet::from_bits_truncate(bits);
    let names = held.iter_names();
    names.map(|(name, _)| name.to_lowercase()).collect()
}

fn row(id: u32, status: &str) -> ThreadRow {
    let seccomp = match field(status, "Seccomp") {
        "2" => "filter",
        "1" => "strict",
        _ => "off",
    };
    ThreadRow {
        id,
        name: field(status, "Name").to_owned(),
        capabilities: capabilities(field(status, "CapEff")),
        no_new_privileges: field(status, "NoNewPrivs") == "1",
        seccomp: seccomp.to_owned(),
        filters: field(status, "Seccomp_filters").parse().ok(),
    }
}

/// Whether Landlock limits the files of this process.
fn landlock() -> &'static str {
    match volley_file::limits() {
        Some(folders) if folders.partly => "partly",
        Some(_) => "on",
        None => "off",
    }
}

/// What the kernel says about this process.
pub(super) fn own_status() -> String {
    std::fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// The reply about this process.
pub fn report() -> ProcessReply {
    let own = own_status();
    let groups = field(&own, "Groups").split_whitespace();
    let threads = std::fs::read_dir("/proc/self/task");
    let threads = threads.into_iter().flatten().flatten();
    let mut threads: Vec<ThreadRow> = threads
        .filter_map(|thread| {
            let id = thread.file_name().to_str()?.parse().ok()?;
            let status = std::fs::read_to_string(thread.path().join("status"));
            // A thread that has just ended has no status.
            Some(row(id, &status.ok()?))
        })
        .collect();
    threads.sort_by_key(|thread| thread.id);
    ProcessReply {
        pid: std::process::id(),
        uid: effective(&own, "Uid"),
        gid: effective(&own, "Gid"),
        groups: groups.filter_map(|group| group.parse().ok()).collect(),
        landlock: landlock().to_owned(),
        threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_status_is_read() {
        let status = "Name:\tvolley-w0\nUid:\t0\t977\t0\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n\
            Seccomp_filters:\t3\nCapEff:\t0000008000003000\n";
        let thread = row(7, status);
        assert_eq!(thread.capabilities, ["net_admin", "net_raw", "bpf"]);
        assert_eq!(
            (thread.seccomp.as_str(), thread.filters),
            ("filter", Some(3))
        );
        assert!(thread.no_new_privileges);
        assert_eq!(effective(status, "Uid"), 977);
        assert_eq!(row(1, "").seccomp, "off");
    }
}
