//! What a test process holds: open files, shared memory, resident memory.

/// Open files and maps of shared memory of this process.
pub fn resources() -> (usize, usize) {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shared = maps
        .lines()
        .filter(|l| l.contains("memfd") || l.contains("huge"));
    (files, shared.count())
}

/// Resident memory of this process, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
