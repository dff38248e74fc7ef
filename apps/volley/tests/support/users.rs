//! Users of a mount namespace with its own `/etc/passwd` and `/etc/group`, and programs that run as them.

use super::{Daemon, Folder, text};
use std::process::{Child, Command, Output, Stdio};

/// Name and id of each user; the group of the same name has the same id.
const USERS: [(&str, u32); 5] = [
    ("root", 0),
    ("ada", 4001),
    ("bob", 4002),
    ("cyd", 4003),
    ("eve", 4004),
];

/// Groups with their ids and members.
const GROUPS: [(&str, u32, &str); 3] = [
    ("volley", 4100, "ada,bob,cyd"),
    ("noc", 4101, "ada,bob"),
    ("guests", 4102, "eve"),
];

pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| text(&output.stdout).trim() == "0")
}

/// The users, as files for the namespace.
pub struct Users {
    pub folder: Folder,
    namespace: std::cell::Cell<u32>,
}

impl Users {
    /// Users with the group `volley`; none if the test is not root.
    pub fn new() -> Option<Users> {
        Users::with(&GROUPS)
    }

    /// Users without the group `volley`.
    pub fn without_group() -> Option<Users> {
        Users::with(&GROUPS[1..])
    }

    fn with(groups: &[(&str, u32, &str)]) -> Option<Users> {
        let tries = Command::new("unshare").args(["-m", "true"]).status();
        if !is_root() || !tries.is_ok_and(|status| status.success()) {
            println!("SKIP: it needs root and mount namespaces");
            return None;
        }
        let folder = Folder::new();
        let (mut passwd, mut group) = (String::new(), String::new());
        for (name, id) in USERS {
            passwd += &format!("{name}:x:{id}:{id}::/:/bin/sh\n");
            group += &format!("{name}:x:{id}:\n");
        }
        for (name, id, members) in groups {
            group += &format!("{name}:x:{id}:{members}\n");
        }
        std::fs::write(folder.file("passwd"), passwd).unwrap();
        std::fs::write(folder.file("group"), group).unwrap();
        Some(Users {
            folder,
            namespace: std::cell::Cell::new(0),
        })
    }

    pub fn group(&self, name: &str) -> u32 {
        GROUPS.iter().find(|(n, ..)| *n == name).unwrap().1
    }

    /// A daemon of root that knows these users.
    pub fn daemon(&self, config: &str, more: &[&str]) -> Daemon {
        // Mounts made outside later, such as names of network namespaces, are visible inside, but not vice versa.
        let script = "mount --make-rslave / && mount --bind \"$0/passwd\" /etc/passwd && \
            mount --bind \"$0/group\" /etc/group && exec \"$@\"";
        let folder = self.folder.0.display().to_string();
        let volley = env!("CARGO_BIN_EXE_volley");
        let program = ["unshare", "-m", "sh", "-c", script, &folder, volley];
        let mut daemon = Daemon::start_by(&program, config, more, &[]);
        self.namespace.set(daemon.pid());
        daemon.client = self.program("root");
        daemon
    }

    /// The same; its client runs as a user in group `volley` without other rights.
    pub fn daemon_of_the_group(&self, config: &str, more: &[&str]) -> Daemon {
        let mut daemon = self.daemon(config, more);
        daemon.client = self.program("cyd");
        daemon
    }

    /// The beginning of a command that runs as a user.
    pub fn program(&self, user: &str) -> Vec<String> {
        let (_, id) = USERS.iter().find(|(name, _)| *name == user).unwrap();
        let namespace = format!("--target={}", self.namespace.get());
        let mut words = vec![
            "nsenter".to_owned(),
            namespace,
            "--mount".to_owned(),
            "--".to_owned(),
        ];
        words.push("setpriv".to_owned());
        words.push(format!("--reuid={user}"));
        words.push(format!("--regid={id}"));
        words.push("--init-groups".to_owned());
        words
    }

    fn command(&self, user: &str, program: &str) -> Command {
        let words = self.program(user);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(program);
        command
    }

    /// Runs `volley ctl LINE` as a user.
    pub fn ctl(&self, user: &str, daemon: &Daemon, line: &str) -> Output {
        let mut command = self.command(user, env!("CARGO_BIN_EXE_volley"));
        let socket = daemon.folder.file("s").display().to_string();
        command
            .args(["ctl", "--socket", &socket])
            .args(line.split(' '));
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Starts `volley ...` as a user, with a pipe as standard input.
    pub fn begin(&self, user: &str, words: &[&str]) -> Child {
        let mut command = self.command(user, env!("CARGO_BIN_EXE_volley"));
        command.args(words).stdin(Stdio::piped());
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs curl on the HTTP socket as a user; returns its output.
    pub fn curl(&self, user: &str, daemon: &Daemon, words: &[&str]) -> String {
        let mut command = self.command(user, "curl");
        let socket = daemon.folder.file("s.http.sock");
        command
            .args(["-s", "-m", "10", "--unix-socket"])
            .arg(socket);
        text(&command.args(words).output().unwrap().stdout)
    }
}
