//! A mapped plugin: its private copy, its entry call, and its end.

use crate::error::PluginError;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use volley_plugin_abi::{ENTRY, Entry, HostCalls, Outcome};

/// The router's allocator.
static CALLS: HostCalls = HostCalls::HERE;

/// A plugin's code in memory. It stays mapped when this value is dropped: see [`Library::close`].
pub(crate) struct Library {
    handle: NonNull<c_void>,
    entry: Entry,
    path: CString,
    /// The private copy: what happens to the plugin's file changes nothing in memory. It stays open as long as the code is
    /// mapped, because the C library knows mapped files by their names, and the name is that of the descriptor.
    copy: ManuallyDrop<OwnedFd>,
}

/// The text of the last error of the dynamic linker.
fn linker_error() -> PluginError {
    // SAFETY: `dlerror` returns null or a text that is valid until the next call on this thread.
    let text = unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    PluginError::Map(text.unwrap_or_else(|| "the linker gives no reason".to_owned()))
}

/// A sealed copy in memory.
fn copy(bytes: &[u8], name: &str) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(bytes)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

impl Library {
    /// Map a file that [`crate::file::read`] has checked.
    pub(crate) fn open(bytes: &[u8], name: &str) -> Result<Library, PluginError> {
        let copy = copy(bytes, &format!("volley-plugin-{name}"))?;
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
        let path = CString::new(path).map_err(|e| PluginError::Map(e.to_string()))?;
        // SAFETY: the file has the fingerprint of a plugin of this router's sources: a Rust library, whose constructors
        // are those of the standard library.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(linker_error)?;
        // SAFETY: the handle is open, and ENTRY ends with a zero byte.
        let entry = unsafe { libc::dlsym(handle.as_ptr(), ENTRY.as_ptr().cast()) };
        let Some(entry) = NonNull::new(entry) else {
            let error = linker_error();
            // SAFETY: the handle is open, and nothing of the library was used.
            unsafe { libc::dlclose(handle.as_ptr()) };
            return Err(error);
        };
        // SAFETY: the macro `plugin!`, which made the fingerprint, made this function as well, with this type.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Entry>(entry.as_ptr()) };
        Ok(Library {
            handle,
            entry,
            path,
            copy: ManuallyDrop::new(copy),
        })
    }

    /// Call the entry. Each call gives new nodes.
    pub(crate) fn enter(&self, outcome: &mut Outcome) {
        (self.entry)(&CALLS, outcome);
    }

    /// Unmap the code; whether it is unmapped: the destructors that a thread runs at its end keep it mapped until then.
    ///
    /// # Safety
    /// No object, function or text of the library is in use any more.
    pub(crate) unsafe fn close(mut self) -> bool {
        // SAFETY: the handle is open, and the caller has no use of the code. RTLD_NOLOAD maps nothing: it asks whether the
        // library is still there, and counts one more user of it if so.
        unsafe {
            libc::dlclose(self.handle.as_ptr());
            let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
            let there = libc::dlopen(self.path.as_ptr(), flags);
            if !there.is_null() {
                libc::dlclose(there);
                return false;
            }
            ManuallyDrop::drop(&mut self.copy);
        }
        true
    }
}
