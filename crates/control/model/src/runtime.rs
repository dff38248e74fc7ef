//! Where sockets and captures are that no setting places.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The folder of sockets and captures that no setting places: one that no other user can write, unlike `/tmp`. It is
/// `/run/volley` for root and where `$XDG_RUNTIME_DIR` is not set, else that folder.
pub fn runtime_folder() -> PathBuf {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_user = named.filter(|folder| folder.is_absolute() && !is_root);
    of_user.unwrap_or_else(|| "/run/volley".into())
}
