//! Network namespaces. Sockets and devices belong to the namespace they are made in and can be used from anywhere
//! afterwards, so a short-lived thread enters it, makes them, and ends.

use crate::LinuxError;
use crate::sys;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where `ip netns` keeps the names.
const NAMES: &str = "/run/netns";

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespace {
    /// The one that Volley was started in.
    #[default]
    Own,
    /// One by the name that `ip netns` gave it, by a path, or by `pid:` and a process.
    Other(String),
}

impl Namespace {
    /// None is our own.
    pub fn new(name: Option<&str>) -> Self {
        name.map_or(Namespace::Own, |name| Namespace::Other(name.to_owned()))
    }

    fn path(name: &str) -> PathBuf {
        match name.strip_prefix("pid:") {
            Some(process) => PathBuf::from(format!("/proc/{process}/ns/net")),
            None if name.starts_with('/') => PathBuf::from(name),
            None => PathBuf::from(NAMES).join(name),
        }
    }

    /// `" in namespace X"`, or nothing for our own.
    pub fn place(&self) -> String {
        match self {
            Namespace::Own => String::new(),
            Namespace::Other(name) => format!(" in namespace {name}"),
        }
    }

    /// What tells the namespace that has the name now from one that had it before; none for our own, and while there is none.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let Namespace::Other(name) = self else {
            return None;
        };
        let file = std::fs::metadata(Self::path(name)).ok()?;
        Some((file.dev(), file.ino()))
    }

    /// Run `body` inside.
    pub fn run<T: Send>(
        &self,
        body: impl FnOnce() -> Result<T, LinuxError> + Send,
    ) -> Result<T, LinuxError> {
        let Namespace::Other(name) = self else {
            return body();
        };
        let failed = |error| LinuxError::Namespace(name.clone(), error);
        let file = volley_file::open(&Self::path(name)).map_err(failed)?;
        let inside = || {
            sys::enter_namespace(file.as_fd()).map_err(|error| match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    LinuxError::Privilege("entering a network namespace", "cap_sys_admin")
                }
                _ => failed(error),
            })?;
            body()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("volley-netns".into());
            let thread = thread.spawn_scoped(scope, inside).map_err(failed)?;
            let gone = || Err(failed(std::io::Error::other("the thread in it has died")));
            thread.join().unwrap_or_else(|_| gone())
        })
    }
}
