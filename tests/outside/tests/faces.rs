//! The class, the query and the verb of this crate in every interface of a running daemon: command line with completion and
//! help, configuration file, HTTP, OpenAPI, difference, rollback, journal, reference pages. Before they are added and after
//! they are removed no interface knows them.

// Tests of the daemon use the rest of this module.
#[allow(dead_code)]
#[path = "../../../apps/volley/tests/support/http.rs"]
mod http;

use http::Http;
use lamp::{Color, Lamp, Lamps};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use volley_daemon::run::{self, Control, ControlError};

const CONFIG: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";

/// A daemon in this process; a signal ends it.
struct Daemon {
    control: Control,
    socket: PathBuf,
    thread: JoinHandle<()>,
}

impl Daemon {
    fn start(folder: &Path) -> Daemon {
        let (config, socket) = (folder.join("volley.toml"), folder.join("s"));
        std::fs::write(&config, CONFIG).unwrap();
        let args = run::Args {
            config: Some(config),
            state_dir: Some(folder.join("state")),
            socket: Some(socket.clone()),
            ..run::Args::default()
        };
        let (sender, ready) = mpsc::channel();
        let thread = std::thread::spawn(move || run::main_with(args, Some(sender)).unwrap());
        let control = ready.recv_timeout(Duration::from_secs(60)).unwrap();
        Daemon {
            control,
            socket,
            thread,
        }
    }

    fn ask(&self, op: &str, line: &str) -> Value {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let ask = json!({"op": op, "line": line, "json": op == "exec"});
        (&stream).write_all(format!("{ask}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("`{line}`: {error}: {answer}"))
    }

    fn ok(&self, line: &str) -> String {
        let answer = self.ask("exec", line);
        assert_eq!(answer["error"], Value::Null, "`{line}`");
        answer["text"].as_str().unwrap_or_default().to_owned()
    }

    fn refused(&self, line: &str) -> String {
        let answer = self.ask("exec", line);
        let message = answer["error"]["message"].as_str();
        message
            .unwrap_or_else(|| panic!("`{line}` is taken: {answer}"))
            .to_owned()
    }

    /// The candidates for the completion of a line.
    fn candidates(&self, line: &str) -> Vec<String> {
        let answer = self.ask("complete", line);
        let all = answer["candidates"].as_array().cloned().unwrap_or_default();
        all.iter()
            .map(|it| it["text"].as_str().unwrap().trim().to_owned())
            .collect()
    }

    fn http(&self) -> Http {
        Http::connect(&self.socket.with_file_name("s.http.sock"))
    }

    fn end(self) {
        let own = std::process::id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &own])
            .status();
        assert!(sent.unwrap().success());
        self.thread.join().unwrap();
    }
}

fn lamp(name: &str, brightness: u32, color: Color) -> Lamp {
    Lamp {
        name: name.to_owned(),
        interface: "pg0".to_owned(),
        brightness,
        color,
    }
}

/// Checks that no interface knows the class.
fn unknown(daemon: &Daemon) {
    assert!(
        daemon
            .refused("set lamp desk interface pg0")
            .contains("lamp")
    );
    assert!(!daemon.candidates("set la").contains(&"lamp".to_owned()));
    assert!(!daemon.ask("help", "set ").to_string().contains("lamp"));
    let mut http = daemon.http();
    assert_eq!(http.call("GET", "/v1/lamp", b"").0, 404);
    let paths = http.get("/v1/openapi.json")["paths"].clone();
    let paths = paths.to_string().replace("clamp", "");
    assert!(!paths.contains("lamp"), "`clamp` is a word of route files");
    assert!(!volley_cli::reference().contains("set lamp"));
}

fn command_line(daemon: &Daemon, lamps: &Lamps) {
    assert_eq!(daemon.candidates("set la"), ["lamp"]);
    let help = daemon.ask("help", "set lamp desk ").to_string();
    for text in [
        "Brightness",
        "from 1 to 100 percent (default 50)",
        "Interface whose state the lamp shows",
    ] {
        assert!(help.contains(text), "{text}: {help}");
    }
    daemon.ok("set lamp desk interface pg0 brightness 70 color red");
    assert_eq!(lamps.all()["desk"], lamp("desk", 70, Color::Red));
    assert_eq!(daemon.candidates("delete lamp d"), ["desk"]);
    assert_eq!(
        daemon.candidates("set lamp desk interface pg"),
        ["pg0", "pg1"]
    );
    assert_eq!(daemon.candidates("set lamp desk color r"), ["red"]);
    let range = daemon.refused("set lamp desk interface pg0 brightness 101");
    assert!(
        range.contains("1 to 100") || range.contains("1..=100"),
        "{range}"
    );
    let absent = daemon.refused("set lamp desk interface pg7");
    assert!(absent.contains("pg7"), "{absent}");
    let broken = daemon.refused("set lamp desk interface pg0 brightness 99");
    assert!(
        broken.contains("lamp desk is not valid: it is broken"),
        "{broken}"
    );
    assert_eq!(
        lamps.all()["desk"],
        lamp("desk", 70, Color::Red),
        "it is as it was"
    );
    let used = daemon.refused("delete interface pg0");
    assert!(used.contains("lamp desk"), "{used}");
    assert!(volley_cli::reference().contains("set lamp <name>"));
    let running = daemon.ok("show running-config");
    assert!(
        running.contains("[lamp.desk]") && running.contains("brightness = 70"),
        "{running}"
    );
}

fn commits(daemon: &Daemon, lamps: &Lamps, folder: &Path) {
    daemon.ok("config commit");
    daemon.ok("set lamp desk interface pg0 brightness 20");
    let diff = daemon.ok("config diff");
    assert!(diff.contains("lamp") && diff.contains("20"), "{diff}");
    daemon.ok("set interface name pg0 lan0");
    let running = daemon.ok("show running-config");
    assert!(
        running.contains("interface = \"lan0\""),
        "the reference follows: {running}"
    );
    daemon.ok("config rollback 1");
    assert_eq!(lamps.all()["desk"], lamp("desk", 70, Color::Red));
    // A file with the table of the class, and one with a fault in it.
    let file = format!("{CONFIG}\n[lamp.hall]\ninterface = \"pg1\"\nbrightness = 5\n");
    let path = folder.join("lamp.toml");
    std::fs::write(&path, &file).unwrap();
    let mut out = Vec::new();
    let commit = |out: &mut Vec<u8>| {
        let line = format!("config commit file {}", path.display());
        volley_cli::client::one_shot(&daemon.socket, &line, false, out)
    };
    commit(&mut out).unwrap();
    assert_eq!(lamps.all().keys().collect::<Vec<_>>(), ["hall"]);
    std::fs::write(&path, file.replace("brightness", "brightnes")).unwrap();
    let error = commit(&mut out).unwrap_err().to_string();
    assert!(
        error.contains("brightness") && error.contains("lamp.toml:"),
        "{error}"
    );
    assert_eq!(lamps.all().keys().collect::<Vec<_>>(), ["hall"]);
}

fn http(daemon: &Daemon, lamps: &Lamps) {
    let mut http = daemon.http();
    let document = http.get("/v1/openapi.json");
    let path = &document["paths"]["/v1/lamp/{name}"];
    assert!(
        path["put"].is_object() && path["delete"].is_object(),
        "{path}"
    );
    assert!(
        document
            .to_string()
            .contains("Interface whose state the lamp shows")
    );
    let body = serde_json::to_vec(&json!({"interface": "pg0", "color": "red"})).unwrap();
    assert!(http.call("PUT", "/v1/lamp/door", &body).0 < 300);
    assert_eq!(lamps.all()["door"], lamp("door", 50, Color::Red));
    assert_eq!(http.get("/v1/lamp/door")["color"], "red");
    let (status, body) = http.call(
        "PUT",
        "/v1/lamp/door",
        br#"{"interface":"pg0","brightness":0}"#,
    );
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(
        (400..500).contains(&status) && text.contains("brightness"),
        "{status} {text}"
    );
    assert!(http.call("DELETE", "/v1/lamp/door", b"").0 < 300);
    assert_eq!(http.call("GET", "/v1/lamp/door", b"").0, 404);
}

/// Checks that no interface knows the query.
fn no_query(daemon: &Daemon) {
    assert!(
        daemon
            .refused("show lamps")
            .contains("'lamps' is not understood here")
    );
    assert!(!daemon.candidates("show la").contains(&"lamps".to_owned()));
    let mut http = daemon.http();
    assert_eq!(http.call("GET", "/v1/show/burning-lamps", b"").0, 404);
    let paths = http.get("/v1/openapi.json")["paths"].clone();
    assert!(paths["/v1/show/burning-lamps"].is_null(), "{paths}");
    let (_, page) = http.call("GET", "/metrics", b"");
    assert!(!String::from_utf8_lossy(&page).contains("lamp_brightness"));
    assert!(!volley_cli::reference().contains("show lamps"));
}

/// Checks the query in the command line, HTTP, OpenAPI, metrics and the reference; lamps `desk` and `hall` burn.
fn query(daemon: &Daemon) {
    assert_eq!(daemon.candidates("show la"), ["lamps"]);
    assert_eq!(daemon.candidates("show lamps h"), ["hall"]);
    let help = daemon.ask("help", "show lamps ").to_string();
    assert!(
        help.contains("Only this lamp") && help.contains("detail"),
        "{help}"
    );
    assert_eq!(daemon.ok("show lamps"), "Lamp\ndesk\nhall\n");
    assert_eq!(
        daemon.ok("show lamps hall detail"),
        "Lamp  Brightness\nhall          50\n"
    );
    assert_eq!(daemon.ok("show lamps | count"), "3\n");
    let absent = daemon.refused("show lamps cellar");
    assert_eq!(absent, "lamp cellar is not valid: it does not burn");
    let data = daemon.ask("exec", "show lamps desk")["data"].clone();
    let desk = json!({"lamps": [{"name": "desk", "brightness": 70}]});
    assert_eq!(data, desk);
    let mut http = daemon.http();
    assert_eq!(http.get("/v1/show/burning-lamps?lamp=desk"), desk);
    let (status, body) = http.call("GET", "/v1/show/burning-lamps?room=1", b"");
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(
        status == 400 && body.contains("it takes: lamp"),
        "{status} {body}"
    );
    let document = http.get("/v1/openapi.json");
    let get = &document["paths"]["/v1/show/burning-lamps"]["get"];
    assert_eq!(get["parameters"][0]["name"], "lamp", "{get}");
    assert!(get.to_string().contains("BurningLamp"), "{get}");
    let (_, page) = http.call("GET", "/metrics", b"");
    assert!(String::from_utf8_lossy(&page).contains("lamp_brightness{lamp=\"hall\"} 50\n"));
    assert!(volley_cli::reference().contains("show lamps [<lamp>] [detail]"));
}

fn queries(daemon: &Daemon, lamps: &Lamps) {
    no_query(daemon);
    daemon.control.answer(lamps.answer()).unwrap();
    let twice = daemon
        .control
        .answer(lamps.answer())
        .unwrap_err()
        .to_string();
    assert_eq!(twice, "query burning-lamps: it has two owners");
    daemon.ok("set lamp desk interface pg0 brightness 70");
    daemon.ok("set lamp hall interface pg1 brightness 50");
    query(daemon);
    daemon.ok("delete lamp desk");
    let used = daemon.control.disown("lamp").unwrap_err().to_string();
    assert!(used.contains("class lamp has objects (1)"), "{used}");
    daemon.control.withdraw("burning-lamps").unwrap();
    no_query(daemon);
    let gone = daemon.control.withdraw("burning-lamps").unwrap_err();
    assert_eq!(
        gone.to_string(),
        "query burning-lamps: there is no such query"
    );
}

/// Checks that no interface knows the verb.
fn no_verb(daemon: &Daemon) {
    assert!(
        daemon
            .refused("flash lamps")
            .contains("'flash' is not understood here")
    );
    assert!(!daemon.candidates("fl").contains(&"flash".to_owned()));
    let mut http = daemon.http();
    let (status, body) = http.call("POST", "/v1/requests", br#"{"do": {"verb": "lamp-flash"}}"#);
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(
        status == 400 && body.contains("there is no verb 'lamp-flash'"),
        "{status} {body}"
    );
    assert!(
        !http
            .get("/v1/openapi.json")
            .to_string()
            .contains("lamp-flash")
    );
    assert!(!volley_cli::reference().contains("flash lamp"));
}

/// Checks the verb in the command line, HTTP, OpenAPI and the reference; lamps `desk` and `hall` burn.
fn verb(daemon: &Daemon) {
    assert_eq!(daemon.candidates("fl"), ["flash"]);
    assert_eq!(daemon.candidates("flash lamp h"), ["hall"]);
    let help = daemon.ask("help", "flash lamp desk times ").to_string();
    assert!(
        help.contains("How often") && help.contains("from 1 to 9"),
        "{help}"
    );
    let output = daemon.ok("flash lamps");
    assert!(
        output.contains("desk flashes 1 times") && output.contains("hall flashes 1 times"),
        "{output}"
    );
    let output = daemon.ok("flash lamp hall times 3");
    assert!(
        output.contains("hall flashes 3 times") && !output.contains("desk"),
        "{output}"
    );
    let absent = daemon.refused("flash lamp cellar");
    assert_eq!(absent, "lamp cellar is not valid: it does not burn");
    let range = daemon.refused("flash lamps times 10");
    assert!(
        range.contains("times must be a number from 1 to 9"),
        "{range}"
    );
    let mut http = daemon.http();
    let mut post = |path: &str, body: Value| {
        let (status, answer) = http.call("POST", path, &serde_json::to_vec(&body).unwrap());
        (status, String::from_utf8_lossy(&answer).into_owned())
    };
    let flash = json!({"do": {"verb": "lamp-flash", "lamp": "hall"}});
    let (status, answer) = post("/v1/requests", flash.clone());
    assert!(
        status == 200 && answer.contains("hall flashes 1 times"),
        "{status} {answer}"
    );
    let (status, answer) = post("/v1/transactions", json!([flash]));
    assert!(
        status == 200 && answer.contains("hall flashes 1 times"),
        "{status} {answer}"
    );
    let (status, answer) = post(
        "/v1/requests",
        json!({"do": {"verb": "lamp-flash", "room": 1}}),
    );
    assert!(
        status == 400 && answer.contains("unknown field `room`"),
        "{status} {answer}"
    );
    let document = daemon.http().get("/v1/openapi.json");
    let schema = document["components"]["schemas"]["Verb"].to_string();
    assert!(
        schema.contains(r#""const":"lamp-flash""#) && schema.contains("How often."),
        "{schema}"
    );
    assert!(volley_cli::reference().contains("flash (lamps | lamp <lamp>) {times <times>}"));
    // A verb is not configuration: no commit contains it.
    assert!(!daemon.ok("config export commands").contains("flash"));
}

fn verbs(daemon: &Daemon, lamps: &Lamps) {
    no_verb(daemon);
    daemon.control.perform(lamps.flash()).unwrap();
    let twice = daemon
        .control
        .perform(lamps.flash())
        .unwrap_err()
        .to_string();
    assert_eq!(twice, "verb lamp-flash: it has two owners");
    daemon.ok("set lamp desk interface pg0 brightness 70");
    verb(daemon);
    daemon.ok("delete lamp desk");
    daemon.control.retire("lamp-flash").unwrap();
    no_verb(daemon);
    let gone = daemon.control.retire("lamp-flash").unwrap_err();
    assert_eq!(gone.to_string(), "verb lamp-flash: there is no such verb");
    daemon.control.perform(lamps.flash()).unwrap();
    daemon.ok("flash lamps");
    daemon.control.retire("lamp-flash").unwrap();
}

#[test]
fn a_class_of_another_crate_comes_and_goes_in_all_faces() {
    let folder = std::env::temp_dir().join(format!("volley-outside-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let daemon = Daemon::start(&folder);
    unknown(&daemon);
    let lamps = Lamps::default();
    let early = daemon
        .control
        .answer(lamps.answer())
        .unwrap_err()
        .to_string();
    assert!(
        early.contains("query burning-lamps: field lamp refers to lamp"),
        "{early}"
    );
    let early = daemon
        .control
        .perform(lamps.flash())
        .unwrap_err()
        .to_string();
    assert!(
        early.contains("verb lamp-flash: field lamp refers to lamp"),
        "{early}"
    );
    daemon.control.own(lamps.owner()).unwrap();
    let twice = daemon.control.own(lamps.owner()).unwrap_err().to_string();
    assert_eq!(twice, "class lamp: it has two owners");
    command_line(&daemon, &lamps);
    commits(&daemon, &lamps, &folder);
    http(&daemon, &lamps);
    queries(&daemon, &lamps);
    verbs(&daemon, &lamps);
    let used = daemon.control.disown("lamp").unwrap_err();
    assert_eq!(
        used.to_string(),
        "class lamp has objects (1): delete lamp hall and all others first"
    );
    daemon.ok("delete lamp hall");
    daemon.ok("config commit");
    daemon.control.disown("lamp").unwrap();
    unknown(&daemon);
    let gone = daemon.control.disown("lamp").unwrap_err();
    assert_eq!(gone.to_string(), "class lamp: there is no such class");
    // A commit with objects of the class cannot be applied again, and the router does not change.
    let rollback = daemon.refused("config rollback 1");
    assert!(rollback.contains("lamp"), "{rollback}");
    assert_eq!(daemon.ok("config diff").trim(), "no difference");
    // After the class is added again, the commit can be applied.
    daemon.control.own(lamps.owner()).unwrap();
    daemon.ok("config rollback 1");
    assert_eq!(lamps.all()["desk"], lamp("desk", 70, Color::Red));
    let control = daemon.control.clone();
    daemon.end();
    assert_eq!(control.disown("lamp"), Err(ControlError::Ended));
    std::fs::remove_dir_all(&folder).unwrap();
}
