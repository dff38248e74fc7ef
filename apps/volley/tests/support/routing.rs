//! Routing daemons of FRR and BIRD in a namespace, on any interfaces.

use super::{Folder, signal};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The folder of FRR's daemons in Debian.
pub const FRR: &str = "/usr/lib/frr";
pub const BIRD: &str = "/usr/sbin/bird";
/// How long routing may take to converge on a busy machine.
pub const SETTLE: Duration = Duration::from_secs(60);

/// Whether these programs are installed; prints a message if not.
pub fn able(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|p| !Path::new(p).exists());
    if let Some(missing) = missing {
        println!("SKIP: {missing} is not there (apt-get install frr bird2)");
    }
    missing.is_none()
}

/// Whether a condition becomes true within `span`.
pub fn within(span: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < span {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Daemons of one namespace and their files; they end on drop.
pub struct Routing {
    pub space: String,
    pub folder: Folder,
    /// The daemons are killed after this many seconds, even if the test is killed.
    pub seconds: u32,
    running: Vec<Child>,
}

impl Routing {
    pub fn new(space: String) -> Routing {
        let folder = Folder::new();
        // FRR's daemons change their user after they have started.
        super::bed::must(&format!("chmod 777 {}", folder.0.display()));
        Routing {
            space,
            folder,
            seconds: 280,
            running: Vec::new(),
        }
    }

    pub fn start(&mut self, program: &str, args: &[&str]) {
        let mut command = Command::new("timeout");
        command.args([
            "-s",
            "KILL",
            &self.seconds.to_string(),
            "ip",
            "netns",
            "exec",
            &self.space,
            program,
        ]);
        let log = std::fs::File::create(self.folder.file("out")).unwrap();
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        self.running.push(command.stderr(log).spawn().unwrap());
    }

    /// Starts one of FRR's daemons with its configuration.
    pub fn frr(&mut self, daemon: &str, config: &str) {
        let at = |name: &str| self.folder.file(name).display().to_string();
        let (file, pid, socket, here) = (
            at(&format!("{daemon}.conf")),
            at(&format!("{daemon}.pid")),
            at("zserv.api"),
            at("."),
        );
        let log = format!("file:{}", at(&format!("{daemon}.log")));
        std::fs::write(&file, config).unwrap();
        let program = format!("{FRR}/{daemon}");
        let args = [
            "-f",
            &file,
            "-i",
            &pid,
            "-z",
            &socket,
            "--vty_socket",
            &here,
            "-A",
            "127.0.0.1",
            "-P",
            "0",
            "--log",
            &log,
        ];
        self.start(&program, &args);
        if daemon == "zebra" {
            let start = Instant::now();
            while !Path::new(&socket).exists() {
                assert!(start.elapsed() < SETTLE, "zebra does not start");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Starts BIRD with its configuration.
    pub fn bird(&mut self, config: &str) {
        let (file, socket) = (self.folder.file("bird.conf"), self.folder.file("bird.ctl"));
        std::fs::write(&file, config).unwrap();
        let args = [
            "-f",
            "-c",
            file.to_str().unwrap(),
            "-s",
            socket.to_str().unwrap(),
        ];
        self.start(BIRD, &args);
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        for child in &mut self.running {
            if child.try_wait().is_ok_and(|ended| ended.is_none()) {
                signal(child.id(), "TERM");
                let _ = child.wait();
            }
        }
    }
}
