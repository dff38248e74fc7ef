//! Sockets of other programs: of another user, of a program that does not accept, and of one whose replies would act on a
//! terminal.

mod support;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, text, volley};

/// An unprivileged user.
const OTHER: u32 = 65_534;

/// A program that is not the daemon; it is killed on drop.
struct Server(Child);

impl Server {
    /// Starts a Python program that creates the socket `sys.argv[1]`.
    fn start(script: &str, socket: &Path, user: Option<u32>) -> Server {
        let mut command = Command::new("python3");
        command
            .args(["-c", script])
            .arg(socket)
            .stdout(Stdio::null());
        if let Some(user) = user {
            command.uid(user);
        }
        let server = Server(command.spawn().unwrap());
        let begun = Instant::now();
        while !socket.with_extension("ready").exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Replies to every line with text that would clear the screen and set the title.
const HOSTILE: &str = r#"
import json, pathlib, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(5)
pathlib.Path(sys.argv[1]).with_suffix('.ready').touch()
bad = '\x1b[2J\x1b]0;x\x07\x9b31m'
while True:
    c, _ = s.accept()
    f = c.makefile('rwb')
    for line in f:
        ask = json.loads(line)
        answer = {'error': {'message': bad}} if 'trace' in ask['line'] else {'text': bad + '\n', 'data': {'a': bad}}
        f.write(json.dumps(answer, ensure_ascii=False).encode() + b'\n'); f.flush()
"#;

/// Listens, never accepts, and fills its own queue.
const DEAF: &str = r#"
import pathlib, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(0)
held = []
while True:
    c = socket.socket(socket.AF_UNIX); c.setblocking(False)
    try: c.connect(sys.argv[1])
    except BlockingIOError: break
    held.append(c)
pathlib.Path(sys.argv[1]).with_suffix('.ready').touch()
time.sleep(600)
"#;

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| text(&output.stdout).trim() == "0")
}

#[test]
fn another_users_socket_is_refused() {
    if !is_root() {
        println!("skipped: it needs root, to be another user");
        return;
    }
    let folder = Folder::new();
    let open = Command::new("chmod").arg("777").arg(&folder.0).status();
    assert!(open.unwrap().success());
    let socket = folder.file("s.sock");
    let _server = Server::start(HOSTILE, &socket, Some(OTHER));
    let socket = socket.display().to_string();
    for args in [
        &["ctl", "--socket", &socket, "show", "version"][..],
        &["config", "history", "--socket", &socket],
    ] {
        let output = volley(args);
        assert_eq!(
            (output.status.code(), &output.stdout[..]),
            (Some(1), &b""[..])
        );
        let message = text(&output.stderr);
        assert!(
            message.contains("nobody's program serves this socket"),
            "{message}"
        );
        assert!(!message.contains('\x1b'), "{message:?}");
    }
}

#[test]
fn answers_act_on_no_terminal() {
    let folder = Folder::new();
    let socket = folder.file("s.sock");
    let _server = Server::start(HOSTILE, &socket, None);
    let socket = socket.display().to_string();
    for more in [
        &["show", "version"][..],
        &["--json", "show", "version"],
        &["show", "trace"],
    ] {
        let output = volley(&[&["ctl", "--socket", &socket][..], more].concat());
        let message = text(&output.stdout) + &text(&output.stderr);
        assert!(message.contains("31m"), "{message:?}");
        let acts = |c: char| c.is_control() && c != '\n';
        assert!(!message.chars().any(acts), "{message:?}");
    }
}

#[test]
fn a_socket_that_does_not_accept_is_an_error_in_time() {
    let folder = Folder::new();
    let socket = folder.file("s.sock");
    let _server = Server::start(DEAF, &socket, None);
    let socket = socket.display().to_string();
    let begun = Instant::now();
    let output = volley(&["ctl", "--socket", &socket, "show", "version"]);
    let message = text(&output.stderr);
    assert!(message.contains("does not accept connections"), "{message}");
    // The daemon does not replace it, and does not wait for it either.
    let config = folder.file("c.toml");
    std::fs::write(&config, "").unwrap();
    let output = volley(&[
        "run",
        "-c",
        &config.display().to_string(),
        "--socket",
        &socket,
    ]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("another program serves this socket"),
        "{message}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn the_usual_socket_is_where_no_other_user_can_write() {
    let folder = Folder::new();
    let runtime = folder.0.display().to_string();
    let message = |user: Option<u32>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volley"));
        command
            .args(["ctl", "--help"])
            .env("XDG_RUNTIME_DIR", &runtime);
        if let Some(user) = user {
            command.uid(user);
        }
        // That user may not be able to read the folder of the program.
        let output = command.output().ok();
        output.map(|output| text(&output.stdout))
    };
    let help = message(None).unwrap();
    assert!(!help.contains("/tmp/volley.sock"), "{help}");
    if is_root() {
        assert!(
            help.contains("[default: /run/volley/volley.sock]"),
            "{help}"
        );
        if let Some(help) =
            message(Some(OTHER)).filter(|_| !Path::new("/run/volley/volley.sock").exists())
        {
            assert!(
                help.contains(&format!("[default: {runtime}/volley.sock]")),
                "{help}"
            );
        }
    }
}

/// A token file or private key that other users can read is refused.
#[test]
fn token_and_key_files_are_refused_unless_they_are_private() {
    let folder = Folder::new();
    let (key, certificate) = (folder.file("k.pem"), folder.file("c.pem"));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: it needs openssl");
        return;
    }
    let token = folder.file("t");
    std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
    let config = folder.file("c.toml");
    let api = format!(
        "[api]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{}\"\nkey = \"{}\"\ntoken_file = \"{}\"\n",
        certificate.display(),
        key.display(),
        token.display()
    );
    std::fs::write(&config, api).unwrap();
    for (open, closed) in [(&token, &key), (&key, &token)] {
        support::private(closed);
        let mode = Command::new("chmod").arg("644").arg(open).status();
        assert!(mode.unwrap().success());
        let socket = folder.file("s").display().to_string();
        let output = volley(&[
            "run",
            "-c",
            &config.display().to_string(),
            "--socket",
            &socket,
        ]);
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        let named = message.contains(&open.display().to_string());
        assert!(
            named && message.contains("has mode 0644") && message.contains("chmod 600"),
            "{message}"
        );
    }
}
