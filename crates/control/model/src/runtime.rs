//! Default folder of sockets and captures.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The default folder of sockets and captures: a folder that no other user can write, unlike `/tmp`. It is `/run/volley` for
/// root and if `$XDG_RUNTIME_DIR` is not set, else `$XDG_RUNTIME_DIR`.
pub fn runtime_folder() -> PathBuf {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_user = named.filter(|folder| folder.is_absolute() && !is_root);
    of_user.unwrap_or_else(|| "/run/volley".into())
}
