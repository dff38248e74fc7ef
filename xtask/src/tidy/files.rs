//! Files that operators name must be opened by `crates/base/file`, which never blocks and refuses everything except
//! regular files.

use super::Finding;
use super::source::Source;
use super::tokens::{self, Token};

/// Where files are opened in another way, because their paths are constants.
const OTHERS: [(&str, &str); 20] = [
    ("crates/base/file/src/lib.rs", "the one way"),
    ("crates/base/buf/src/cache.rs", "/proc"),
    ("crates/base/graph/src/data/numa.rs", "/sys"),
    (
        "crates/control/core/src/journal/disk.rs",
        "the folder itself, to make names durable",
    ),
    ("crates/io/log/src/writer.rs", "the log's own type `File`"),
    ("crates/io/af-packet/src/control.rs", "/proc/sys"),
    ("crates/io/dpdk/src/eal.rs", "/proc and /sys"),
    ("crates/io/shm/src/limits.rs", "/proc and the cgroup"),
    ("crates/io/tap/src/sys.rs", "/dev/net/tun"),
    ("crates/io/vhost/src/kernel/sys.rs", "/dev/vhost-net"),
    (
        "crates/plugin/abi/build.rs",
        "the sources, when the crate is built",
    ),
    ("apps/daemon/src/calls.rs", "/proc and the running program"),
    (
        "apps/volley/src/plugin.rs",
        "the lock file of the sources, by a user's own command",
    ),
    ("apps/volley/src/doctor/machine.rs", "/proc, /sys and /dev"),
    ("apps/daemon/src/observe.rs", "/proc/cpuinfo"),
    (
        "apps/daemon/src/run/identity.rs",
        "the folder itself, to make names durable",
    ),
    ("apps/daemon/src/observe/process.rs", "/proc"),
    ("apps/daemon/src/run/privileges.rs", "/proc"),
    ("apps/daemon/src/watch.rs", "/proc"),
    ("tools/demo/src/", "files that the demo made"),
];

/// Every place that opens a file directly.
pub fn opened(source: &Source) -> Vec<Finding> {
    let daemon = ["crates/", "apps/", "tools/"];
    let is_daemon = daemon.iter().any(|dir| source.path.starts_with(dir));
    let is_known = OTHERS.iter().any(|(path, _)| source.path.starts_with(path));
    if source.is_test() || !is_daemon || is_known || source.path.contains("/testbed") {
        return Vec::new();
    }
    let tokens = tokens::outside_tests(&source.text);
    let found = (0..tokens.len()).filter(|at| opens(&tokens[*at..]));
    let text = "a file is opened without `volley_file`: a FIFO or device as its path would make the thread wait";
    found
        .map(|at| source.finding(tokens[at].line, text))
        .collect()
}

fn opens(tokens: &[Token]) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let called = match word(1) == ":" && word(2) == ":" {
        true => word(3),
        false => "",
    };
    match word(0) {
        "OpenOptions" => called == "new",
        "File" => ["open", "create", "create_new"].contains(&called),
        "fs" => ["read", "read_to_string", "write"].contains(&called),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_in_one_way() {
        let count = |path: &str, text: &str| opened(&Source::new(path, text)).len();
        let bad = "fn f() { File::open(a); std::fs::read_to_string(b); fs::write(c, d); OpenOptions::new(); }";
        assert_eq!(count("crates/io/pg/src/a.rs", bad), 4);
        assert_eq!(count("apps/daemon/src/run/a.rs", bad), 4);
        assert_eq!(count("apps/daemon/src/watch.rs", bad), 0);
        assert_eq!(count("crates/io/pg/tests/a.rs", bad), 0);
        assert_eq!(count("xtask/src/a.rs", bad), 0);
        let good = "use std::fs::File; fn f(file: File) { volley_file::open(a); fs::metadata(b); fs::read_dir(c); }";
        assert_eq!(count("crates/io/pg/src/a.rs", good), 0);
    }
}
