//! The Debian packages: `volley`, built from a binary and the files of `packaging/`, then unpacked and tested, and
//! `volley-dbgsym`, with the debug information for debuggers and profilers.

use crate::home::Home;
use crate::run::Program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Shells, and the paths of their completions.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/volley"),
    ("zsh", "usr/share/zsh/vendor-completions/_volley"),
    ("fish", "usr/share/fish/vendor_completions.d/volley.fish"),
];
/// Files that are packaged unchanged.
const FILES: [(&str, &str); 7] = [
    (
        "packaging/volley.service",
        "usr/lib/systemd/system/volley.service",
    ),
    ("packaging/volley.toml", "etc/volley/volley.toml"),
    (
        "packaging/volley.sysusers",
        "usr/lib/sysusers.d/volley.conf",
    ),
    (
        "packaging/namespaces.conf",
        "usr/share/doc/volley/examples/namespaces.conf",
    ),
    (
        "packaging/perfmon.conf",
        "usr/share/doc/volley/examples/perfmon.conf",
    ),
    ("README.md", "usr/share/doc/volley/README.md"),
    ("LICENSE", "usr/share/doc/volley/copyright"),
];
/// Creates the user, gives it the files that root owned when the daemon ran as root, and lets systemd reload its units;
/// starts nothing.
const AFTER: &str = "#!/bin/sh
set -e
if command -v systemd-sysusers > /dev/null; then
    systemd-sysusers volley.conf
else
    getent group volley > /dev/null || groupadd --system volley
    getent passwd volley > /dev/null || useradd --system --gid volley --home-dir /var/lib/volley --no-create-home --shell /usr/sbin/nologin volley
    if getent group kvm > /dev/null; then usermod --append --groups kvm volley; fi
fi
find /etc/volley -type f -user root ! -perm /044 -exec chown volley {} +
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
";
/// Stops a running service before its files are removed.
const BEFORE_REMOVAL: &str = "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then systemctl stop volley.service || true; fi\n";

/// Maximum size of the installed binary.
const MOST_BYTES: u64 = 25_000_000;
/// Directory in which debuggers search debug information, by build id.
const SYMBOLS: &str = "usr/lib/debug/.build-id";

/// Builds the packages around `binary` (`None`: a build of profile `symbols`), checks them, and returns their paths.
pub fn run(home: &Home, binary: Option<PathBuf>, out: Option<PathBuf>) -> Result<String, String> {
    let binary = match binary {
        Some(binary) => binary,
        None => home.volley_with_lines()?,
    };
    let out = out.unwrap_or_else(|| home.target.clone());
    let folder = home.target.join("deb");
    // Removes an earlier one; it is no error if none exists.
    let _ = fs::remove_dir_all(&folder);
    let (tree, tried) = (folder.join("tree"), folder.join("tried"));
    let (stripped, symbols) = split(home, &binary, &folder)?;
    let installed = fs::metadata(&stripped).map_err(with_path(&stripped))?.len();
    if installed > MOST_BYTES {
        return Err(format!(
            "the binary has {installed} bytes without symbols, more than {MOST_BYTES}"
        ));
    }
    fill(home, &stripped, &tree)?;
    let package = pack(home, &stripped, &tree, &out)?;
    try_it(home, &package, &tried)?;
    let id = build_id(home, &binary)?;
    let symbols = pack_symbols(home, (&symbols, &id), &folder.join("symbols"), &out)?;
    let kb = |package: &Path| fs::metadata(package).map_or(0, |m| m.len() / 1024);
    Ok(format!(
        "{} ({} kB, binary {} kB of {} kB): its files, doctor, config check; {} ({} kB)",
        package.display(),
        kb(&package),
        installed / 1000,
        MOST_BYTES / 1000,
        symbols.display(),
        kb(&symbols)
    ))
}

/// The installed binary, and a file with its debug information.
fn split(home: &Home, binary: &Path, folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let (stripped, symbols) = (folder.join("volley"), folder.join("volley.debug"));
    fs::create_dir_all(folder).map_err(with_path(folder))?;
    let objcopy = || Program::new(home, "objcopy").limit_seconds(120);
    let keep = objcopy().args(["--only-keep-debug", "--compress-debug-sections"]);
    keep.arg(binary).arg(&symbols).require()?;
    let strip = objcopy().arg("--strip-all");
    strip.arg(binary).arg(&stripped).require()?;
    Ok((stripped, symbols))
}

/// The build id in hexadecimal.
fn build_id(home: &Home, binary: &Path) -> Result<String, String> {
    let notes = Program::new(home, "readelf").arg("--notes");
    let notes = notes.arg(binary).require()?.stdout;
    let id = notes
        .lines()
        .find_map(|l| l.split_once("Build ID: "))
        .map(|(_, id)| id.trim());
    let id = id.filter(|id| id.len() > 2 && id.bytes().all(|b| b.is_ascii_hexdigit()));
    id.map(str::to_owned)
        .ok_or_else(|| format!("{} has no build identifier", binary.display()))
}

/// The package of the symbols.
fn pack_symbols(
    home: &Home,
    (symbols, id): (&Path, &str),
    tree: &Path,
    out: &Path,
) -> Result<PathBuf, String> {
    let place = format!("{SYMBOLS}/{}/{}.debug", &id[..2], &id[2..]);
    put(tree, &place, &read(symbols)?, 0o644)?;
    let version = env!("CARGO_PKG_VERSION");
    let more = format!("Depends: volley (= {version})\nDescription: debug symbols of volley\n");
    build(home, "volley-dbgsym", "debug", &more, tree, out)
}

/// Builds a package from a tree. `more` is the rest of its control file.
fn build(
    home: &Home,
    name: &str,
    section: &str,
    more: &str,
    tree: &Path,
    out: &Path,
) -> Result<PathBuf, String> {
    let arch = Program::new(home, "dpkg").arg("--print-architecture");
    let arch = arch.require()?.stdout.trim().to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {arch}\nSection: {section}\nPriority: optional\n\
         Maintainer: Volley developers <volley@localhost>\n{more}"
    );
    put(tree, "DEBIAN/control", control.as_bytes(), 0o644)?;
    fs::create_dir_all(out).map_err(with_path(out))?;
    let package = out.join(format!("{name}_{version}_{arch}.deb"));
    let build = Program::new(home, "dpkg-deb").args(["--root-owner-group", "-Zgzip", "--build"]);
    build.arg(tree).arg(&package).limit_seconds(300).require()?;
    Ok(package)
}

fn with_path(what: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", what.display())
}

fn put(tree: &Path, place: &str, content: &[u8], mode: u32) -> Result<(), String> {
    let path = tree.join(place);
    let folder = path.parent().unwrap_or(tree);
    fs::create_dir_all(folder).map_err(with_path(folder))?;
    fs::write(&path, content).map_err(with_path(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(with_path(&path))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(with_path(path))
}

/// The files as they will be installed.
fn fill(home: &Home, binary: &Path, tree: &Path) -> Result<(), String> {
    put(tree, "usr/bin/volley", &read(binary)?, 0o755)?;
    for (from, to) in FILES {
        put(tree, to, &read(&home.root.join(from))?, 0o644)?;
    }
    for (shell, place) in SHELLS {
        let reported = Program::new(home, binary).args(["completions", shell]);
        let reported = reported.limit_seconds(60).require()?;
        put(tree, place, reported.stdout.as_bytes(), 0o644)?;
    }
    for folder in ["docs", "docs/generated"] {
        let pages = home.root.join(folder);
        for page in fs::read_dir(&pages).map_err(with_path(&pages))?.flatten() {
            let path = page.path();
            if path.extension().is_some_and(|e| e == "md" || e == "svg") {
                let place = format!(
                    "usr/share/doc/volley/{folder}/{}",
                    page.file_name().display()
                );
                put(tree, &place, &read(&path)?, 0o644)?;
            }
        }
    }
    Ok(())
}

/// The oldest glibc that has all symbols that the binary requires.
fn glibc(binary: &[u8]) -> String {
    let mark = b"GLIBC_2.";
    let number = |at: usize| {
        let digits = binary[at..].iter().take_while(|b| b.is_ascii_digit());
        let text: String = digits.map(|&b| char::from(b)).collect();
        text.parse::<u32>().ok()
    };
    let found = binary.windows(mark.len()).enumerate();
    let found = found.filter(|(_, window)| window == mark);
    let newest = found.filter_map(|(at, _)| number(at + mark.len())).max();
    // Packed relocations (apps/volley/build.rs) are a version without a number.
    let packed = b"GLIBC_ABI_DT_RELR";
    let packed = binary.windows(packed.len()).any(|window| window == packed);
    let newest = newest.unwrap_or(28).max(if packed { 36 } else { 0 });
    format!("2.{newest}")
}

fn pack(home: &Home, binary: &Path, tree: &Path, out: &Path) -> Result<PathBuf, String> {
    let glibc = glibc(&read(binary)?);
    let more = format!(
        "Depends: libc6 (>= {glibc}), libgcc-s1\n\
         Description: vector packet processor\n Router and switch in user space: forwards packets in vectors through a graph of nodes.\n"
    );
    put(
        tree,
        "DEBIAN/conffiles",
        b"/etc/volley/volley.toml\n",
        0o644,
    )?;
    put(tree, "DEBIAN/postinst", AFTER.as_bytes(), 0o755)?;
    put(tree, "DEBIAN/prerm", BEFORE_REMOVAL.as_bytes(), 0o755)?;
    build(home, "volley", "net", &more, tree, out)
}

/// Checks that the unpacked files equal the packaged ones, and that the binary runs.
fn try_it(home: &Home, package: &Path, tried: &Path) -> Result<(), String> {
    let list = Program::new(home, "dpkg-deb")
        .arg("-c")
        .arg(package)
        .require()?;
    let wanted = FILES
        .iter()
        .map(|(_, to)| *to)
        .chain(SHELLS.map(|(_, place)| place));
    for place in wanted.chain([
        "usr/bin/volley",
        "usr/share/doc/volley/docs/configuration.md",
    ]) {
        let listed =
            |line: &str| line.ends_with(&format!(" ./{place}")) && line.contains(" root/root ");
        if !list.stdout.lines().any(listed) {
            return Err(format!(
                "{}: {place} is not in it, or not root's",
                package.display()
            ));
        }
    }
    fs::create_dir_all(tried).map_err(with_path(tried))?;
    let unpack = Program::new(home, "dpkg-deb")
        .arg("-x")
        .arg(package)
        .arg(tried);
    unpack.require()?;
    let installed = || Program::new(home, tried.join("usr/bin/volley")).limit_seconds(60);
    let doctor = installed().arg("doctor").require()?.stdout;
    if !doctor.contains("processor") {
        return Err(format!("doctor says nothing of the processor: {doctor}"));
    }
    let config = tried.join("etc/volley/volley.toml");
    installed()
        .args(["config", "check"])
        .arg(config)
        .require()?;
    verify_unit(home, tried)
}

/// Checks that systemd reads the unit without a complaint, if systemd is installed.
fn verify_unit(home: &Home, tried: &Path) -> Result<(), String> {
    let unit = tried.join("usr/lib/systemd/system/volley.service");
    let text = String::from_utf8_lossy(&read(&unit)?).into_owned();
    let here = text.replace(
        "/usr/bin/volley",
        &tried.join("usr/bin/volley").display().to_string(),
    );
    let copy = tried.join("volley.service");
    fs::write(&copy, here).map_err(with_path(&copy))?;
    let verify = Program::new(home, "systemd-analyze")
        .arg("verify")
        .arg(&copy);
    let Ok(output) = verify.output() else {
        return Ok(());
    };
    match output.ok && !output.stderr.contains("volley.service") {
        true => Ok(()),
        false => Err(format!("systemd-analyze verify: {}", output.stderr.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_says_which_glibc() {
        assert_eq!(glibc(b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0"), "2.34");
        assert_eq!(glibc(b"GLIBC_2.34\0GLIBC_ABI_DT_RELR\0"), "2.36");
        assert_eq!(glibc(b""), "2.28");
    }
}
