//! The router's identity: interfaces whose device has no MAC address derive one from it.
//!
//! Two routers with the same configuration on one link must not have the same addresses, and a router must keep its addresses
//! after a restart. So an address derives from the machine id, a random part that is stored beside the commits, and the
//! interface's name. A seed in `[engine]` replaces the first two: runs with a seed are repeatable.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::Path;

/// The file of the random part.
const FILE: &str = "identity";
/// The same file while it is written.
const NEW: &str = "identity.new";
/// Files of the machine id (machine-id(5)).
const MACHINE: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// The most bytes that are read of either file.
const MOST: u64 = 256;

/// The seed of MAC addresses, and a warning if the next start has another one.
pub fn mac_seed(folder: Option<&Path>) -> (u64, Option<String>) {
    let Some(folder) = folder else {
        let warning = "there is no state directory: MAC addresses of interfaces without a device are others after each \
                       start; --state-dir keeps them, and so does a seed in [engine]";
        return (random(), Some(warning.into()));
    };
    match kept(folder) {
        Ok(part) => {
            let seed = mixed(&[machine().as_bytes(), &part.to_be_bytes()]);
            (seed, None)
        }
        Err(error) => {
            let file = folder.join(FILE);
            let warning = format!(
                "{}: {error}; MAC addresses of interfaces without a device are others after this start: delete the file to \
                 have a new one made",
                file.display()
            );
            (random(), Some(warning))
        }
    }
}

/// A number from the system's random state.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A small file's text.
fn small(path: &Path) -> io::Result<String> {
    let text = volley_file::read_text(path, MOST)?;
    Ok(text.trim().to_owned())
}

fn machine() -> String {
    let mut all = MACHINE
        .iter()
        .filter_map(|file| small(Path::new(file)).ok());
    all.find(|text| !text.is_empty()).unwrap_or_default()
}

/// The random part, which the first start creates. The file exists completely or not at all.
fn kept(folder: &Path) -> io::Result<u64> {
    let file = folder.join(FILE);
    match small(&file) {
        Ok(text) => {
            let part = u64::from_str_radix(&text, 16).ok();
            let part = part.filter(|_| text.len() == 16);
            let odd = || io::Error::other("it does not hold 16 hexadecimal digits");
            return part.ok_or_else(odd);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let part = random();
    let new = folder.join(NEW);
    // An interrupted start may have left a file.
    let _ = std::fs::remove_file(&new);
    let mut out = volley_file::create_new(&new)?;
    writeln!(out, "{part:016x}")?;
    out.sync_all()?;
    std::fs::rename(&new, &file)?;
    File::open(folder)?.sync_all()?;
    Ok(part)
}

/// Hashes all bytes into one number, each bit of which depends on all of them (FNV-1a, then the end of SplitMix64).
fn mixed(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn seed(folder: Option<&Path>) -> (u64, usize) {
        let (seed, warning) = mac_seed(folder);
        (seed, warning.iter().count())
    }

    #[test]
    fn it_stays_with_its_folder_and_differs_from_others() {
        let place = std::env::temp_dir().join(format!("volley-identity-{}", std::process::id()));
        let folder = |name: &str| {
            let folder = place.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (a, b) = (folder("a"), folder("b"));
        let (first, message) = seed(Some(&a));
        assert_eq!(
            (seed(Some(&a)), message),
            ((first, 0), 0),
            "a restart keeps it"
        );
        assert_ne!(seed(Some(&b)).0, first);
        let mode = std::fs::metadata(a.join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // An interrupted start leaves half a new file.
        std::fs::remove_file(b.join(FILE)).unwrap();
        std::fs::write(b.join(NEW), "12").unwrap();
        assert_eq!(seed(Some(&b)), seed(Some(&b)));
        std::fs::write(a.join(FILE), "12\n").unwrap();
        let (x, y) = (seed(Some(&a)), seed(Some(&a)));
        assert!(x.0 != y.0 && x.1 == 1, "what is damaged is said");
        let (x, y) = (seed(None), seed(None));
        assert!(x.0 != y.0 && x.1 == 1);
        std::fs::remove_dir_all(place).unwrap();
    }
}
