//! Network namespaces. Sockets and devices belong to the namespace in which they are created and can be used from any
//! thread afterwards, so a short-lived thread enters the namespace, creates them, and ends.

use crate::LinuxError;
use crate::sys;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Directory of the names of `ip netns`.
const NAMES: &str = "/run/netns";

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespace {
    /// The namespace in which Volley was started.
    #[default]
    Own,
    /// A namespace by its name in `ip netns`, by a path, or by `pid:` and a process.
    Other(String),
}

impl Namespace {
    /// The namespace with this name; `None` is Volley's namespace.
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

    /// `" in namespace X"`, or nothing for Volley's namespace.
    pub fn place(&self) -> String {
        match self {
            Namespace::Own => String::new(),
            Namespace::Other(name) => format!(" in namespace {name}"),
        }
    }

    /// Identity of the namespace, which differs if another namespace gets the same name; `None` for Volley's namespace,
    /// and while the namespace does not exist.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let Namespace::Other(name) = self else {
            return None;
        };
        let file = std::fs::metadata(Self::path(name)).ok()?;
        Some((file.dev(), file.ino()))
    }

    /// Run `body` in the namespace.
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
