//! Every table and key of the file with its meaning: unknown keys are judged by it, and the reference is printed from it.

/// One key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its value and meaning.
    pub text: &'static str,
}

/// One table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Written as `[[name]]`, any number of times; else `[name]`, once. Inner tables are written `{ ... }`.
    pub repeats: bool,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Table {
    /// Name with brackets.
    pub fn title(&self) -> String {
        match (self.repeats, self.name.contains('.')) {
            (_, true) => format!("{} {{ }}", self.name),
            (true, _) => format!("[[{}]]", self.name),
            (false, _) => format!("[{}]", self.name),
        }
    }
}

const fn k(name: &'static str, text: &'static str) -> Key {
    Key { name, text }
}

const fn many(name: &'static str, keys: &'static [Key]) -> Table {
    let repeats = true;
    Table {
        name,
        repeats,
        keys,
    }
}

pub(crate) static ENGINE: Table = Table {
    name: "engine",
    repeats: false,
    keys: &[
        k(
            "vector_size",
            "packets per vector to begin with, 1 to 1024 (256)",
        ),
        k(
            "max_vector_size",
            "packets that vectors have room for, 1 to 1024 (1024)",
        ),
        k("buffers", "buffers, 256 to 16777216 (16384)"),
        k("isa", "auto, scalar, x86-64-v3 or x86-64-v4 (auto)"),
        k("workers", "workers to begin with, 1 to 64 (1)"),
        k(
            "max_workers",
            "workers that there may be at a time, 1 to 64 (8, or as many as to begin with)",
        ),
        k(
            "worker_core",
            "processor core of the first worker (not pinned)",
        ),
        k(
            "worker_cores",
            "processor cores of the workers, in order, such as [1, 2, 3] (not pinned)",
        ),
        k(
            "peer_memory_mb",
            "megabytes that one peer with shared memory may share, all together twice as many (the machine's memory)",
        ),
        k(
            "peer_charge_mb",
            "megabytes that pages which peers share, but never wrote, may cost the process, one interface half as many (half of the cgroup's limit or the machine's memory)",
        ),
        k(
            "socket",
            "unix socket of volley ctl (volley.sock in /run/volley for root, else in $XDG_RUNTIME_DIR)",
        ),
        k(
            "seed",
            "seed of everything random (streams: 1; MAC addresses: made from the machine's identity)",
        ),
    ],
};
pub(crate) static PROCESS: Table = Table {
    name: "process",
    repeats: false,
    keys: &[
        k(
            "capabilities",
            "keep; or drop: give them up once the configuration is in force, no more interfaces of the kernel after that (keep)",
        ),
        k(
            "seccomp",
            "filter of system calls: auto: where the kernel has filters; enforce: no start without; log: into the kernel's audit log only; off (auto)",
        ),
    ],
};
pub(crate) static API: Table = Table {
    name: "api",
    repeats: false,
    keys: &[
        k(
            "socket",
            "unix socket of the HTTP interface (that of volley ctl with the ending .http.sock)",
        ),
        k(
            "listen",
            "address and port for TCP, such as \"192.0.2.1:8443\" (none); needs certificate, key and token_file",
        ),
        k("certificate", "certificate chain, a PEM file"),
        k("key", "its private key, a PEM file"),
        k(
            "token_file",
            "file with the tokens of clients over TCP: lines of NAME ROLE TOKEN, or one token alone",
        ),
        k(
            "metrics_listen",
            "address and port that serves GET /metrics to any client, without TLS and token, such as \"127.0.0.1:9101\" (none)",
        ),
    ],
};
pub(crate) static INTERFACE: Table = many(
    "interface",
    &[k("name", "its name"), k("kind", "kind of the interface")],
);
