//! The checks of a plugin's file before any of its code runs: which users may change it, whether it is a complete shared
//! library, and whether its fingerprint matches the router's.

use crate::elf;
use crate::error::PluginError;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use volley_plugin_abi::{FINGERPRINT, Fingerprint, Mismatch};

/// Maximum size of the file in bytes.
const LONGEST: u64 = 512 << 20;

/// Reads and checks a plugin's file; returns the bytes to be mapped.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let file = volley_file::open(path)?;
    check_owner(&file)?;
    let size = file.metadata()?.len();
    if size > LONGEST {
        let why = format!("has {size} bytes, the limit is {LONGEST}");
        return Err(PluginError::Unsafe(why));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    check(&bytes)?;
    Ok(bytes)
}

/// A plugin becomes code of the router: only root and the daemon's user may be able to change it.
fn check_owner(file: &File) -> Result<(), PluginError> {
    let there = file.metadata()?;
    let (owner, mode) = (there.uid(), there.mode() & 0o7777);
    let me = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != me {
        let why = format!(
            "belongs to user {owner}, who could change it: `chown` the file to root or to the daemon's user"
        );
        return Err(PluginError::Unsafe(why));
    }
    if mode & 0o022 != 0 {
        let why = format!(
            "has mode {mode:04o}, so that other users can change it: `chmod go-w` the file"
        );
        return Err(PluginError::Unsafe(why));
    }
    Ok(())
}

/// Checks that the bytes of a file are a complete ELF shared library with the router's fingerprint.
pub fn check(bytes: &[u8]) -> Result<(), PluginError> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).map_err(PluginError::NotALibrary)?;
    let mut symbols = file.dynamic_symbols();
    let symbol = symbols.find(|it| it.name() == Ok(FINGERPRINT) && it.is_definition());
    let symbol = symbol.ok_or(Mismatch::NotAPlugin)?;
    let (at, size) = (symbol.address(), symbol.size());
    let mut all = Vec::new();
    for section in file.sections() {
        // A truncated section is an error here, and not when the file is mapped.
        let data = section.data().map_err(PluginError::NotALibrary)?;
        let from = at.checked_sub(section.address());
        let from = from.and_then(|from| usize::try_from(from).ok());
        let to = from.and_then(|from| from.checked_add(usize::try_from(size).ok()?));
        if let (Some(from), Some(to)) = (from, to)
            && let Some(found) = data.get(from..to)
            && section.address() != 0
        {
            all = found.to_vec();
        }
    }
    Fingerprint::HERE.check(&all)?;
    check_parts(bytes)
}

/// Checks the parts of an ELF shared library that the dynamic linker maps and changes.
pub fn check_parts(bytes: &[u8]) -> Result<(), PluginError> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).map_err(PluginError::NotALibrary)?;
    elf::check(&file, bytes).map_err(PluginError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_library_are_refused() {
        for bytes in [&b""[..], b"plain text", b"\x7fELF\x02\x01\x01"] {
            let refused = check(bytes).unwrap_err();
            assert!(matches!(refused, PluginError::NotALibrary(_)), "{refused}");
        }
    }

    #[test]
    fn the_parts_of_a_program_that_runs_are_right() {
        // Programs are shared objects as well.
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        check_parts(&program).unwrap();
    }

    #[test]
    fn a_program_is_no_plugin() {
        let program = std::env::current_exe().unwrap();
        let refused = read(&program).unwrap_err().to_string();
        assert!(
            refused.contains("no fingerprint of a Volley plugin"),
            "{refused}"
        );
    }
}
