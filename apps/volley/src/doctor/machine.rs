//! The machine that the doctor examines: files below a root folder, so that tests can make machines, and a few probes.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether the kernel opens a socket of some family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Socket {
    /// The socket opens.
    Opens,
    /// The kernel has this family but denies it to this process.
    Forbidden,
    /// The kernel does not have this family.
    Unknown,
}

/// A machine.
pub struct Machine {
    /// The folder that contains `/proc`, `/sys` and `/dev`.
    pub root: PathBuf,
    /// `socket(AF_XDP, SOCK_RAW)`.
    pub xdp: Socket,
    /// `socket(AF_PACKET, SOCK_RAW)`.
    pub packet: Socket,
    /// Version of the DPDK library that programs are built with.
    pub dpdk: Option<String>,
    /// Whether this program can create DPDK ports.
    pub dpdk_ports: bool,
    /// Instruction-set level.
    pub level: volley_simd::Level,
    /// The path of the program, for commands that fix something.
    pub program: String,
}

impl Machine {
    /// The machine on which this process runs.
    pub fn here() -> Self {
        let program = std::env::current_exe();
        Machine {
            root: PathBuf::from("/"),
            // The number of AF_XDP in `linux/socket.h`.
            xdp: probe(AddressFamily::from_raw(44)),
            packet: probe(AddressFamily::PACKET),
            dpdk: dpdk(),
            dpdk_ports: volley_dpdk::IS_COMPILED_IN,
            level: volley_simd::Level::detect(),
            program: program.map_or_else(|_| "volley".to_owned(), |p| p.display().to_string()),
        }
    }

    /// The path below the root folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The trimmed text of a small file.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The content of a file with one number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// The names in a folder, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let name = |e: std::fs::DirEntry| e.file_name().into_string().ok();
        let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
        names.sort();
        names
    }

    /// Whether a device can be opened for reading and writing; none if it does not exist.
    pub fn opens(&self, path: &str) -> Option<std::io::Result<()>> {
        let path: &Path = &self.path(path);
        path.exists().then(|| {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).open(path).map(drop)
        })
    }

    /// The value in a line `name: value` or `name value` of a file.
    pub fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = self.read(path)?;
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    }
}

fn probe(family: AddressFamily) -> Socket {
    match socket(family, SocketType::RAW, None) {
        Ok(_) => Socket::Opens,
        Err(Errno::PERM | Errno::ACCESS) => Socket::Forbidden,
        Err(_) => Socket::Unknown,
    }
}

fn dpdk() -> Option<String> {
    let mut ask = Command::new("pkg-config");
    ask.args(["--modversion", "libdpdk"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = ask.output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
