//! The emulated machine: start, output, time limit.

use super::initramfs::Folder;
use crate::report::{Fail, Outcome};
use crate::run::exists;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const QEMU: &str = "qemu-system-x86_64";
/// Emulated, never KVM: nested KVM hangs on machines such as those of CI.
const MACHINE: &str =
    "-nodefaults -no-reboot -display none -accel tcg,thread=multi -cpu max -smp 2 -m 2048";
const KERNEL: &str =
    "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check mitigations=off volley_guest";
/// The host's files, read-only.
const FILES: &str = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap";

/// Result of a run.
#[derive(Debug, PartialEq)]
pub enum Ending {
    /// The program ended, with this status (128 plus the signal's number, as in a shell).
    Exit {
        /// Exit status of the program.
        status: u8,
        /// Seconds of the guest's clock before the program was started.
        boot: f64,
        /// Duration of the program in seconds.
        took: f64,
    },
    /// The guest was killed after this number of seconds.
    TooLong(u64),
    /// The guest ended without reporting the program's status; the text describes what is known.
    Broken(String),
}

impl Ending {
    /// The result, for a report.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Exit { status, boot, took } => {
                let text = format!("exit status {status}, {took:.1} s after a boot of {boot:.1} s");
                Outcome::of(if *status == 0 { Ok(text) } else { Err(text) })
            }
            Self::TooLong(seconds) => Fail(format!("killed: no end after {seconds} s")),
            Self::Broken(text) => Fail(format!("the guest ended before its program: {text}")),
        }
    }
}

/// Checks that this machine can emulate another.
pub fn check() -> Result<(), String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(
            "the guest runs this machine's programs, and can do so on x86-64 Linux only".into(),
        );
    }
    match [QEMU, "setpriv"].iter().find(|program| !exists(program)) {
        None => Ok(()),
        Some(program) => Err(format!(
            "{program} is not on this machine; `cargo xtask install` fetches qemu-system-x86 and util-linux"
        )),
    }
}

/// Boots the guest and passes the program's output on.
pub fn run(
    kernel: &Path,
    initrd: &Path,
    seconds: u64,
    folder: &Folder,
    to: &mut dyn Write,
) -> Result<Ending, String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut guest = Guest(start(kernel, initrd, &folder.0)?);
    let output = listen(guest.0.stdout.take());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // The time limit also applies to a program that never stops printing.
        let heard = match left.is_zero() {
            true => Err(RecvTimeoutError::Timeout),
            false => output.recv_timeout(left),
        };
        match heard {
            Ok(bytes) => {
                let passed_on = to.write_all(&bytes).and_then(|()| to.flush());
                passed_on
                    .map_err(|error| format!("what it prints cannot be passed on: {error}"))?;
            }
            Err(RecvTimeoutError::Timeout) => return Ok(Ending::TooLong(seconds)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // The guest has closed its output, which it does when it ends.
    let ended = guest.0.wait().map_err(|error| error.to_string())?;
    let message = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap_or_default();
    let broken = || {
        let text = format!(
            "{QEMU}: {ended}\n{}{}",
            message("errors"),
            message("console")
        );
        Ending::Broken(text.trim_end().to_owned())
    };
    Ok(parse(&message("status")).unwrap_or_else(broken))
}

/// A running QEMU, which does not outlive its owner.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // A failure means that QEMU has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two ports: the program's output and its status. The console belongs to the kernel.
fn start(kernel: &Path, initrd: &Path, folder: &Path) -> Result<Child, String> {
    let errors = folder.join("errors");
    let errors = File::create(&errors).map_err(|e| format!("{}: {e}", errors.display()))?;
    // QEMU must also end if this process is killed.
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", QEMU])
        .args(MACHINE.split(' '))
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initrd)
        .args(["-append", KERNEL, "-virtfs", FILES])
        .args(["-serial", "file:console", "-device", "virtio-serial-pci"])
        // Not `stdio`, which also reads stdin and hangs up if there is none.
        .args(["-chardev", "file,id=out,path=/dev/stdout"])
        .args(["-device", "virtserialport,chardev=out,nr=1"])
        .args(["-chardev", "file,id=status,path=status"])
        .args(["-device", "virtserialport,chardev=status,nr=2"])
        // A comma in a path would separate options of QEMU, so files are named without their folder.
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    qemu.spawn()
        .map_err(|error| format!("{QEMU} cannot be started: {error}"))
}

fn listen(from: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(mut from) = from else { return };
        let mut some = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut some) {
            if sender.send(some[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// `exit STATUS BEGUN ENDED`, times in seconds of the guest's clock.
fn parse(message: &str) -> Option<Ending> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let ["exit", status, begun, ended] = words[..] else {
        return None;
    };
    let (boot, ended): (f64, f64) = (begun.parse().ok()?, ended.parse().ok()?);
    Some(Ending::Exit {
        status: status.parse().ok()?,
        boot,
        took: ended - boot,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Pass;

    #[test]
    fn the_last_word_of_a_guest() {
        let exit = |status| Ending::Exit {
            status,
            boot: 2.5,
            took: 1.25,
        };
        assert_eq!(parse("exit 0 2.5 3.75\n"), Some(exit(0)));
        assert_eq!(parse("exit 139 2.5 3.75\n"), Some(exit(139)));
        for message in [
            "",
            "exit 0 2.5",
            "exit 256 1 2",
            "exit -1 1 2",
            "exit 0 a b",
            "left 0 1 2",
        ] {
            assert_eq!(parse(message), None, "{message}");
        }
        let text = "exit status 0, 1.2 s after a boot of 2.5 s";
        assert_eq!(exit(0).outcome(), Pass(text.into()));
        assert!(matches!(exit(3).outcome(), Fail(text) if text.starts_with("exit status 3,")));
        assert!(matches!(Ending::TooLong(9).outcome(), Fail(text) if text.contains("9 s")));
    }
}
