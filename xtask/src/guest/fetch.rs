//! The guest's kernel: Debian's package, downloaded once (72 MB) and unpacked under cargo's target folder.

use crate::home::Home;
use crate::run::Program;
use std::fs;
use std::path::{Path, PathBuf};

const SCRIPT: &str = include_str!("../../templates/guest-fetch.sh");
const SECONDS: u64 = 900;

/// Paths of the unpacked kernel.
pub struct Kernel {
    /// The image that boots.
    pub image: PathBuf,
    /// The folder with `bin/busybox` and `lib/modules`.
    pub tree: PathBuf,
    /// The folder of its modules, within `tree`.
    pub modules: PathBuf,
}

/// The kernel, downloaded if necessary. `Err` is the reason if it cannot be downloaded.
pub fn kernel(home: &Home) -> Result<Kernel, String> {
    let tree = home.target.join("guest/tree");
    if let Some(kernel) = look(&tree) {
        return Ok(kernel);
    }
    fetch(home, &tree)?;
    look(&tree).ok_or(format!(
        "{}: no kernel in it; remove the folder and try again",
        tree.display()
    ))
}

fn look(tree: &Path) -> Option<Kernel> {
    let image = only(&tree.join("boot"))?;
    let modules = only(&tree.join("lib/modules"))?;
    Some(Kernel {
        image,
        modules: modules.strip_prefix(tree).ok()?.to_path_buf(),
        tree: tree.canonicalize().ok()?,
    })
}

fn only(folder: &Path) -> Option<PathBuf> {
    Some(fs::read_dir(folder).ok()?.next()?.ok()?.path())
}

/// Downloads into a temporary folder first, so that an interrupted download is never used.
fn fetch(home: &Home, tree: &Path) -> Result<(), String> {
    let folder = tree.with_file_name(format!("fetch-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let script = Program::new(home, "sh").args(["-c", SCRIPT]).dir(&folder);
    let fetched = script
        .limit_seconds(SECONDS)
        .output()
        .map_err(|e| e.to_string());
    let fetched = fetched.and_then(|output| match output.ok {
        true => Ok(()),
        false => Err(format!("{}: {}", output.ending, output.tail(3))),
    });
    // If another process was faster, its copy exists and is as good.
    let moved = fetched.map(|()| fs::rename(folder.join("tree"), tree));
    let _ = fs::remove_dir_all(&folder);
    moved.map(|_| ()).map_err(|reason| {
        format!("the guest's kernel cannot be fetched (it takes Debian's apt-get and the network): {reason}")
    })
}
