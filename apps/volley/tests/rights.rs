//! Roles: real users of a mount namespace with its own `/etc/passwd` and `/etc/group`, by `volley ctl` and curl; tokens with
//! roles over TLS; the listener for metrics.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::users::{Users, is_root};
use support::{Daemon, Folder, secret, text, volley};
use volley_cli::{Action, parse_line, reference};
use volley_control::Core;
use volley_model::{ConfigSource, Request, Role};

const PLAIN: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\naddresses = [\"10.0.0.1/24\"]\n\
    [[interface]]\nname = \"m0\"\nkind = \"memif\"\nmemif = { secret = \"psst\" }\n";

const ROLES: &str = "[user.ada]\nrole = \"read\"\n[user_group.noc]\nrole = \"operate\"\n";

/// A command, and the role that it requires.
const COMMANDS: &[(&str, Role)] = &[
    ("show version", Role::Read),
    ("show interfaces", Role::Read),
    ("show log", Role::Read),
    ("config show", Role::Read),
    ("config diff", Role::Read),
    ("config history", Role::Read),
    ("clear errors", Role::Operate),
    ("trace add pg-input 1", Role::Operate),
    ("ping 10.0.0.1 count 1", Role::Operate),
    ("set log level debug module memif", Role::Operate),
    ("set interface mtu 1400 pg0", Role::Configure),
    ("set user ada role configure", Role::Configure),
    ("config commit", Role::Configure),
    ("config rollback 1", Role::Configure),
];

/// The refusal that a client printed, if it is about the client's role.
fn refusal(output: &Output) -> Option<String> {
    let reply = text(&output.stderr);
    reply.contains("and this needs the role").then_some(reply)
}

#[test]
fn each_user_does_what_its_role_allows() {
    let Some(users) = Users::new() else { return };
    let state = users.folder.file("state").display().to_string();
    let daemon = users.daemon(&format!("{PLAIN}{ROLES}"), &["--state-dir", &state]);
    let roles = [
        ("root", Some(Role::Configure)),
        // A member of the sockets' group without an entry, one with the entry of a group, one with an own entry.
        ("cyd", Some(Role::Configure)),
        ("bob", Some(Role::Operate)),
        ("ada", Some(Role::Read)),
    ];
    for (user, role) in roles {
        for (line, needed) in COMMANDS {
            let output = users.ctl(user, &daemon, line);
            let reply = refusal(&output);
            let whole = text(&output.stderr);
            assert!(!whole.contains("column "), "{line}: {whole}");
            assert_eq!(
                reply.is_none(),
                role >= Some(*needed),
                "{user} {line}: {reply:?}"
            );
            if let (Some(reply), Some(role)) = (&reply, role) {
                let wanted =
                    format!("user {user} has the role {role}, and this needs the role {needed}: ");
                assert!(reply.contains(&wanted), "{reply}");
                assert_eq!(reply.trim_end().lines().count(), 1, "{reply}");
                assert!(output.stdout.is_empty() && output.status.code() == Some(1));
            }
        }
        if role == Some(Role::Configure) {
            // Restores the role of the user.
            daemon.ok("set user ada role read");
        }
    }
    // A user outside the group: the kernel refuses the connection, and the client prints what to do.
    let output = users.ctl("eve", &daemon, "show version");
    let reply = text(&output.stderr);
    assert!(reply.contains("Permission denied"), "{reply}");
    assert!(reply.contains("`usermod -aG volley eve`"), "{reply}");
    assert!(reply.contains("run the client as root"), "{reply}");
    // A refusal is logged with the user, and is an event.
    let log = daemon.json("show log 1000");
    let records = log["records"].as_array().unwrap();
    let refused = |user: &str| {
        records.iter().any(|r| {
            let message = r["message"].as_str().unwrap_or_default();
            message.starts_with("refused: user") && message.contains(user)
        })
    };
    assert!(refused("user ada has the role read"), "{log}");
    assert!(refused("user bob has the role operate"), "{log}");
    assert!(!refused("user cyd"), "{log}");
}

#[test]
fn secrets_are_shown_to_those_who_may_set_them() {
    let Some(users) = Users::new() else { return };
    let daemon = users.daemon(&format!("{PLAIN}{ROLES}"), &[]);
    for (user, sees) in [
        ("root", true),
        ("cyd", true),
        ("bob", false),
        ("ada", false),
    ] {
        for line in [
            "config show",
            "config export commands",
            "config export json",
        ] {
            let reply = text(&users.ctl(user, &daemon, line).stdout);
            assert!(reply.contains("m0"), "{user} {line}: {reply}");
            assert_eq!(reply.contains("psst"), sees, "{user} {line}: {reply}");
        }
        let state = users.curl(user, &daemon, &["http://volley/v1/state"]);
        assert!(state.contains("m0"), "{user}: {state}");
        assert_eq!(state.contains("psst"), sees, "{user}: {state}");
    }
    // A reader may not name a file for the daemon to read, whatever the file contains.
    let body = r#"{"source":{"file":"/etc/shadow"}}"#;
    let answer = users.curl(
        "ada",
        &daemon,
        &["-d", body, "http://volley/v1/config/check"],
    );
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["code"], "forbidden", "{answer}");
}

#[test]
fn every_path_of_the_http_interface_has_its_role() {
    let Some(users) = Users::new() else { return };
    let daemon = users.daemon(&format!("{PLAIN}{ROLES}"), &[]);
    let status = |user: &str, words: &[&str]| {
        let words = [words, &["-o", "/dev/null", "-w", "%{http_code}"]].concat();
        users.curl(user, &daemon, &words)
    };
    let document = users.curl("ada", &daemon, &["http://volley/v1/openapi.json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut seen = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let (url, method) = (url(path, operation), method.to_uppercase());
            let mut words = vec!["-X", &method, "-m", "5", &url[..]];
            let body = match path.as_str() {
                "/v1/requests" => r#"{"set":{"class":"mtu","interface":"pg0","mtu":1400}}"#,
                "/v1/transactions" => r#"[{"set":{"class":"mtu","interface":"pg0","mtu":1400}}]"#,
                "/v1/config/rollback" => r#"{"number":1}"#,
                "/v1/config/diff" => r#"{"from":"running","to":"running"}"#,
                "/v1/config/confirm" | "/v1/config/history" => "",
                _ if path.starts_with("/v1/config/") => r#"{"source":"running"}"#,
                _ => "{}",
            };
            if operation["requestBody"].is_object() {
                words.extend(["-d", body]);
            }
            let sends = ["ping", "arping", "traceroute"]
                .iter()
                .any(|query| *path == format!("/v1/show/{query}"));
            let looks = ["check", "show", "diff", "history"]
                .iter()
                .any(|action| *path == format!("/v1/config/{action}"));
            let refused = sends || (method != "GET" && !looks);
            // An event stream has no end: its head is enough.
            if path == "/v1/events" {
                words[3] = "1";
            }
            let got = status("ada", &words);
            assert_eq!(got == "403", refused, "{method} {url}: {got}");
            *seen.entry(refused).or_insert(0) += 1;
        }
    }
    assert!(seen[&true] > 20 && seen[&false] > 40, "{seen:?}");
    // The group's role lets its members send and clear.
    assert_eq!(
        status(
            "bob",
            &["http://volley/v1/show/ping?destination=10.0.0.1&count=1"]
        ),
        "200"
    );
    let clear = [
        "-d",
        r#"{"do":{"verb":"errors-clear"}}"#,
        "http://volley/v1/requests",
    ];
    assert_eq!(status("bob", &clear), "200");
    assert_eq!(status("ada", &clear), "403");
}

/// A path with values for its parameters.
fn url(path: &str, operation: &Value) -> String {
    let mut url = format!("http://volley{path}");
    let parameters = operation["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut query = Vec::new();
    for parameter in parameters.iter().filter(|p| p["required"] == true) {
        let name = parameter["name"].as_str().unwrap();
        let choice = parameter["schema"]["enum"][0].as_str();
        let value = match name {
            _ if choice.is_some() => choice.unwrap_or_default(),
            "family" => "ip4",
            "name" if path.starts_with("/v1/show/") => "ip4-input",
            "destination" => "10.0.0.1",
            "interface" => "pg0",
            "prefix" => "2001:db8::%2F64",
            "address" if path.starts_with("/v1/address/") => "192.0.2.9%2F24",
            "address" | "group" | "source" => "192.0.2.9",
            "mac" => "02:00:00:00:00:09",
            _ => "1",
        };
        match parameter["in"] == "path" {
            true => url = url.replace(&format!("{{{name}}}"), value),
            false => query.push(format!("{name}={value}")),
        }
    }
    format!("{url}?{}", query.join("&"))
}

/// The role that a command implies by its type: a query, or a request that changes the desired state or not.
fn expected(line: &str, action: &Action) -> Option<Role> {
    match action {
        // The query sends packets, or shows packets of others.
        Action::Query(asked, _) if asked.is_stream() => Some(Role::Operate),
        Action::Query(..) => Some(Role::Read),
        Action::Config(_) => {
            let writes = ["commit", "confirm", "rollback"];
            let second = line.split(' ').nth(1).unwrap_or_default();
            Some(if writes.contains(&second) {
                Role::Configure
            } else {
                Role::Read
            })
        }
        // A request is configuration if it changes the desired state.
        Action::Request(request) => Some(match changes_state(request) {
            true => Role::Configure,
            false => Role::Operate,
        }),
        Action::Nothing | Action::Builtin(_) => None,
    }
}

/// Whether a request changes the desired state.
fn changes_state(request: &Request) -> bool {
    match Core::state_of(std::slice::from_ref(request)) {
        Ok(_) => true,
        Err(error) => !error.to_string().contains("it changes no configuration"),
    }
}

#[test]
fn every_command_has_the_role_of_its_kind() {
    register_classes();
    let mut seen: BTreeMap<Role, usize> = BTreeMap::new();
    let page = reference();
    for (_, rest) in page
        .match_indices("Example: `")
        .map(|(at, m)| page.split_at(at + m.len()))
    {
        let line = rest.split('`').next().unwrap();
        let mut action = parse_line(line).unwrap().action;
        if let Action::Config(action) = &mut action
            && let Some(source) = action.file_mut()
        {
            // The client reads the file and sends its text.
            *source = ConfigSource::Text(String::new());
        }
        let role = match &action {
            Action::Query(asked, _) => Some(Role::from(asked)),
            Action::Config(action) => Some(action.role()),
            Action::Request(request) => Some(request.role()),
            Action::Nothing | Action::Builtin(_) => None,
        };
        assert_eq!(role, expected(line, &action), "{line}");
        if let Some(role) = role {
            *seen.entry(role).or_default() += 1;
        }
    }
    println!("{seen:?}");
    assert!(seen[&Role::Read] > 30 && seen[&Role::Operate] > 10 && seen[&Role::Configure] > 50);
}

fn register_classes() {
    volley_daemon::objects::register().unwrap();
}

fn rights_of(path: &Path) -> (u32, u32) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    (meta.gid(), meta.mode() & 0o777)
}

#[test]
fn the_sockets_group_follows_each_commit() {
    let Some(users) = Users::new() else { return };
    let state = users.folder.file("state").display().to_string();
    let daemon = users.daemon(PLAIN, &["--state-dir", &state]);
    let sockets = [daemon.folder.file("s"), daemon.folder.file("s.http.sock")];
    let rights = |wanted: (u32, u32)| sockets.iter().all(|s| rights_of(s) == wanted);
    // The package's group is the default if it exists.
    assert!(rights((users.group("volley"), 0o660)));
    daemon.ok("config commit");
    let file = daemon.folder.file("new.toml");
    let with = |group: &str| {
        std::fs::write(
            &file,
            format!("{PLAIN}[access]\nsocket_group = \"{group}\"\n"),
        )
        .unwrap();
    };
    let socket = sockets[0].display().to_string();
    let commit = |more: &[&str]| {
        let file = file.display().to_string();
        let words = [&["config", "commit", &file, "--socket", &socket], more].concat();
        let output = volley(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    };
    assert!(users.ctl("cyd", &daemon, "show version").status.success());
    with("guests");
    commit(&["--confirm", "3s"]);
    assert!(rights((users.group("guests"), 0o660)));
    assert!(users.ctl("eve", &daemon, "show version").status.success());
    let reply = text(&users.ctl("cyd", &daemon, "show version").stderr);
    assert!(
        reply.contains("join group guests: `usermod -aG guests cyd`"),
        "{reply}"
    );
    // Without a confirmation the old group is restored.
    let begun = Instant::now();
    while !rights((users.group("volley"), 0o660)) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(users.ctl("cyd", &daemon, "show version").status.success());
    // A group that does not exist opens the sockets to no other user, and the commit reports it.
    with("absent");
    let reply = commit(&[]);
    assert!(reply.contains("groupadd --system absent"), "{reply}");
    assert!(sockets.iter().all(|s| rights_of(s).1 == 0o600));
    let reply = text(&users.ctl("cyd", &daemon, "show version").stderr);
    assert!(reply.contains("only root can open this socket"), "{reply}");
    assert!(reply.contains("set access socket-group GROUP"), "{reply}");
    daemon.ok("default access");
    assert!(rights((users.group("volley"), 0o660)));
}

#[test]
fn without_a_group_the_sockets_are_the_users_own() {
    let Some(users) = Users::without_group() else {
        return;
    };
    let daemon = users.daemon(PLAIN, &[]);
    for socket in ["s", "s.http.sock"] {
        assert_eq!(rights_of(&daemon.folder.file(socket)), (0, 0o600));
    }
    let reply = text(&users.ctl("cyd", &daemon, "show version").stderr);
    assert!(reply.contains("only root can open this socket"), "{reply}");
}

#[test]
fn a_role_that_is_taken_is_gone_for_a_client_that_is_connected() {
    let Some(users) = Users::new() else { return };
    let daemon = users.daemon(PLAIN, &[]);
    // One connection whose rights change between two lines.
    let mut child = users.begin(
        "cyd",
        &[
            "ctl",
            "--keep-going",
            "--socket",
            &daemon.folder.file("s").display().to_string(),
        ],
    );
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "set interface mtu 1400 pg0").unwrap();
    input.flush().unwrap();
    let begun = Instant::now();
    while !daemon.ok("config show").contains("mtu = 1400") {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the first line is not carried out"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    daemon.ok("set user cyd role read");
    writeln!(input, "set interface mtu 1300 pg0").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let reply = text(&output.stderr);
    assert!(reply.contains("user cyd has the role read"), "{reply}");
    assert!(daemon.ok("config show").contains("mtu = 1400"));
}

#[test]
fn a_client_says_that_the_daemon_has_ended() {
    let folder = Folder::new();
    let socket = folder.file("s");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let output = volley(&[
        "ctl",
        "--socket",
        &socket.display().to_string(),
        "show",
        "version",
    ]);
    let reply = text(&output.stderr);
    assert!(
        reply.contains("has ended") && reply.contains("systemctl start volley"),
        "{reply}"
    );
    let absent = folder.file("absent").display().to_string();
    let reply = text(&volley(&["ctl", "--socket", &absent, "show", "version"]).stderr);
    assert!(reply.contains("is 'volley run' running"), "{reply}");
}

const READ: &str = "readreadreadread01";
const OPERATE: &str = "operateoperate0002";
const CONFIGURE: &str = "configureconfigure";

/// A daemon with three tokens over TLS; none without openssl or curl.
fn with_tokens(folder: &Folder) -> Option<(Daemon, u16)> {
    let file = |name: &str| folder.file(name).display().to_string();
    let (key, certificate) = (file("key.pem"), file("cert.pem"));
    let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost";
    let made = Command::new("openssl")
        .args(words.split(' '))
        .args(["-keyout", &key, "-out", &certificate])
        .output();
    if !made.is_ok_and(|o| o.status.success()) || Command::new("curl").arg("-V").output().is_err() {
        println!("SKIP: it needs openssl and curl");
        return None;
    }
    let lines = format!(
        "# who\nprometheus read {READ}\noncall operate {OPERATE}\nci configure {CONFIGURE}\n"
    );
    secret(&folder.file("tokens"), &lines);
    let port = free_port();
    let config = format!(
        "{PLAIN}[api]\nlisten = \"127.0.0.1:{port}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\ntoken_file = \"{}\"\n",
        file("tokens")
    );
    let state = file("state");
    Some((Daemon::start(&config, &["--state-dir", &state]), port))
}

fn free_port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// The reply for a client over TLS with this header: status and body.
fn call(port: u16, header: &str, path: &str, body: Option<&str>) -> (String, String) {
    let url = format!("https://127.0.0.1:{port}{path}");
    let mut command = Command::new("curl");
    command.args([
        "-sk",
        "-m",
        "10",
        "-w",
        "\n%{http_code}",
        "-H",
        header,
        &url,
    ]);
    command.args(body.iter().flat_map(|body| ["-d", body]));
    let reply = text(&command.output().unwrap().stdout);
    let (body, status) = reply.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn each_token_has_its_name_and_its_role() {
    let folder = Folder::new();
    let Some((daemon, port)) = with_tokens(&folder) else {
        return;
    };
    let with = |token: &str, path: &str, body: Option<&str>| {
        call(port, &format!("Authorization: Bearer {token}"), path, body)
    };
    let clear = Some(r#"{"do":{"verb":"errors-clear"}}"#);
    let mtu = Some(r#"{"set":{"class":"mtu","interface":"pg0","mtu":1400}}"#);
    for (token, statuses) in [
        (READ, ["200", "403", "403"]),
        (OPERATE, ["200", "200", "403"]),
        (CONFIGURE, ["200", "200", "200"]),
    ] {
        let got = [
            with(token, "/v1/show/version", None).0,
            with(token, "/v1/requests", clear).0,
            with(token, "/v1/requests", mtu).0,
        ];
        assert_eq!(got, statuses, "{token}");
    }
    let (_, body) = with(READ, "/v1/requests", mtu);
    let wanted = "token prometheus has the role read, and this needs the role configure: ";
    assert!(
        body.contains(wanted) && body.contains(r#""code":"forbidden""#),
        "{body}"
    );
    // The history and the log contain names, and no secrets.
    let (status, _) = with(
        CONFIGURE,
        "/v1/config/commit",
        Some(r#"{"source":"running"}"#),
    );
    assert_eq!(status, "200");
    let history = daemon.ok("config history");
    assert!(history.contains("token ci"), "{history}");
    let log = daemon.log();
    assert!(log.contains(wanted) && log.contains("token ci"), "{log}");
    let reported = log + &history + &body;
    assert!(
        ![READ, OPERATE, CONFIGURE]
            .iter()
            .any(|t| reported.contains(t))
    );
}

#[test]
fn what_is_no_token_is_refused() {
    let folder = Folder::new();
    let Some((_daemon, port)) = with_tokens(&folder) else {
        return;
    };
    let status = |header: &str| call(port, header, "/v1/show/version", None).0;
    for wrong in [
        "".to_owned(),
        " ".to_owned(),
        READ[..READ.len() - 1].to_owned(),
        format!("{READ}0"),
        format!("{READ} "),
        format!("prometheus read {READ}"),
        "prometheus".to_owned(),
        READ.to_uppercase(),
        format!("{READ}, {CONFIGURE}"),
    ] {
        // curl trims blanks at the end of a header, and HTTP says that they are not part of it.
        let wanted = if wrong.trim() == READ { "200" } else { "401" };
        let shown = format!("Authorization: Bearer {wrong}");
        assert_eq!(status(&shown), wanted, "{wrong:?}");
    }
    assert_eq!(status(&format!("Authorization: Basic {READ}")), "401");
}

#[test]
fn a_token_with_a_line_break_shows_nothing() {
    let folder = Folder::new();
    let Some((_daemon, port)) = with_tokens(&folder) else {
        return;
    };
    // Bytes that curl would not send, over TLS by openssl.
    for bytes in [
        format!("Authorization: Bearer {}\n {}", &READ[..8], &READ[8..]),
        format!("Authorization: Bearer \r\n {READ}"),
        format!("Authorization: Bearer {READ}\u{0}"),
        "Authorization: Bearer".to_owned(),
    ] {
        let request = format!(
            "GET /v1/show/version HTTP/1.1\r\nhost: x\r\n{bytes}\r\nconnection: close\r\n\r\n"
        );
        let mut child = Command::new("timeout")
            .args([
                "10",
                "openssl",
                "s_client",
                "-quiet",
                "-connect",
                &format!("127.0.0.1:{port}"),
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(request.as_bytes())
            .unwrap();
        let output = text(&child.wait_with_output().unwrap().stdout);
        let status = output.split(' ').nth(1).unwrap_or("none").to_owned();
        assert!(
            ["400", "401"].contains(&status.as_str()),
            "{bytes:?}: {output}"
        );
    }
}

#[test]
fn files_of_tokens_are_refused_with_the_line_at_fault() {
    let folder = Folder::new();
    let file = folder.file("tokens");
    let config = folder.file("volley.toml");
    let api = format!(
        "[api]\nlisten = \"127.0.0.1:1\"\ncertificate = \"/c\"\nkey = \"/k\"\ntoken_file = \"{}\"\n",
        file.display()
    );
    std::fs::write(&config, api).unwrap();
    for (lines, part) in [
        ("", "has no token"),
        ("a read short\n", "line 1: the token must have 16"),
        (
            "a read 0123456789abcdef\nb admin 0123456789abcdef\n",
            "line 2: the role must be read, operate or configure",
        ),
        (
            "a read 0123456789abcdef\na read fedcba9876543210\n",
            "line 2: a line before has this name",
        ),
    ] {
        secret(&file, lines);
        let output = volley(&["config", "check", &config.display().to_string()]);
        let reply = text(&output.stderr);
        assert!(
            !output.status.success() && reply.contains(part),
            "{lines:?}: {reply}"
        );
        assert!(!reply.contains("0123456789"), "{reply}");
    }
    secret(&file, "a read 0123456789abcdef\n");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let reply = text(&volley(&["config", "check", &config.display().to_string()]).stderr);
    assert!(reply.contains("has mode 0644"), "{reply}");
}

/// The status and body of a plain request.
fn plain(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let request = format!("{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

#[test]
fn the_metrics_listener_serves_metrics_and_nothing_else() {
    let port = free_port();
    let config = format!("{PLAIN}[api]\nmetrics_listen = \"127.0.0.1:{port}\"\n");
    let daemon = Daemon::start(&config, &[]);
    assert!(
        daemon.log().contains(&format!("metrics 127.0.0.1:{port}")),
        "{}",
        daemon.log()
    );
    let page = plain(port, "GET /metrics");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.contains("volley_build_info{"),
        "{page}"
    );
    for head in [
        "GET /",
        "GET /metrics/",
        "GET /v1/state",
        "GET /v1/openapi.json",
        "POST /metrics",
        "POST /v1/requests",
        "DELETE /v1/user/ada",
        "GET /../metrics",
        "OPTIONS *",
    ] {
        let reply = plain(port, head);
        let status = reply.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, "404", "{head}: {reply}");
        assert!(
            reply.contains("serves GET /metrics and nothing else"),
            "{head}: {reply}"
        );
    }
}

#[test]
fn idle_connections_for_metrics_take_no_places_of_the_interface() {
    let port = free_port();
    let config = format!("{PLAIN}[api]\nmetrics_listen = \"0.0.0.0:{port}\"\n");
    let mut daemon = Daemon::start(&config, &[]);
    let at = |source: u8| format!("127.0.0.{source}");
    let idle: Vec<TcpStream> = (0..1000)
        .map(|n| {
            let to = (at(1 + n as u8 % 8), port);
            TcpStream::connect((to.0.as_str(), to.1)).unwrap()
        })
        .collect();
    daemon.wait_for("the limit", |d| {
        d.log().contains("connections are from this source")
    });
    let socket: PathBuf = daemon.folder.file("s.http.sock");
    let mut clients: Vec<_> = (0..200)
        .map(|_| support::http::Http::connect(&socket))
        .collect();
    for http in &mut clients {
        http.get("/v1/show/version");
    }
    let begun = Instant::now();
    daemon.ok("show version");
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    // The server closed most of them at once.
    let open = idle.iter().filter(|stream| {
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        matches!(peeked, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
    });
    let open = open.count();
    assert!((1..=64).contains(&open), "{open}");
    println!("open: {open} of 1000");
    drop(idle);
    daemon.wait_for("a place", |_| {
        plain(port, "GET /metrics").starts_with("HTTP/1.1 200 ")
    });
}

#[test]
fn an_ordinary_user_runs_the_daemon_for_itself() {
    if !is_root() {
        println!("SKIP: it needs root, to be another user");
        return;
    }
    let script = "chown 65534 \"$(dirname \"$3\")\" && \
        exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$@\"";
    let program = ["sh", "-c", script, env!("CARGO_BIN_EXE_volley")];
    let config = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n";
    let daemon = Daemon::start_by(&program, config, &[], &[]);
    assert!(daemon.log().contains("ready"), "{}", daemon.log());
    let meta = std::fs::metadata(daemon.folder.file("s")).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (65_534, 0o600));
}
