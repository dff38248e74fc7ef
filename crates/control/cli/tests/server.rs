//! The socket: answers, and hostile clients.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use support::{Lamps, ShowLamps};
use volley_cli::client::{Connection, ScriptOptions, one_shot, script};
use volley_cli::server::{Answer, Ask, Limits, Misplaced, Op, Pending, Server};
use volley_cli::{Backend, Names};
use volley_model::{Applied, ConfigAction, ConfigReply, ModelError, ObjectKind, Request};
use volley_object::{Answer as Reply, Asked, Query as _};

struct Fake;

impl Names for Fake {
    fn names(&self, class: &str) -> Vec<String> {
        match class {
            "interface" => vec!["pg0".into(), "pg1".into()],
            _ => Vec::new(),
        }
    }
}

impl Backend for Fake {
    fn transact(&self, requests: Vec<Request>) -> Pending<'_, Applied, Misplaced> {
        Box::pin(async move {
            match &requests[..] {
                [Request::InterfaceDelete { name }] => {
                    let missing = ModelError::not_found(ObjectKind::Interface, name, ["pg0"]);
                    Err((None, missing))
                }
                [_] => Ok(Applied::one().note("done")),
                all => Ok(Applied::changed(all.len() as u64)),
            }
        })
    }

    fn config(&self, _: ConfigAction) -> Pending<'_, ConfigReply> {
        Box::pin(async move { Ok(ConfigReply::Confirmed { number: 7 }) })
    }

    fn query(&self, asked: Asked) -> Pending<'_, Reply> {
        Box::pin(async move {
            let lines = match asked.get::<ShowLamps>().and_then(|asked| asked.max) {
                Some(max) => vec!["x".repeat(1000); max as usize],
                None => Vec::new(),
            };
            Ok(Reply::new::<ShowLamps>(Lamps { lines })?)
        })
    }
}

/// Runs a test against a server on its own thread, which ends with it.
fn with_server(name: &str, test: impl FnOnce(&Path)) {
    ShowLamps::query().unwrap();
    volley_iface::classes().unwrap();
    let path = std::env::temp_dir().join(format!("volley-{name}-{}.sock", std::process::id()));
    let (tell, reported) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let at: PathBuf = path.clone();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let limits = Limits {
            line: 4096,
            clients: 3,
            finish_line: Duration::from_millis(200),
            read_answer: Duration::from_millis(300),
        };
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let server = Server::bind(&at, limits).unwrap();
            tell.send(()).unwrap();
            server.run(Rc::new(Fake), async { _ = stopped.await }).await;
        });
    });
    reported.recv().unwrap();
    test(&path);
    drop(stop);
    server.join().unwrap();
    assert!(!path.exists(), "the socket file is left behind");
}

fn raw(path: &Path, bytes: &[u8]) -> Answer {
    let mut stream = UnixStream::connect(path).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The server may disconnect a client that is still writing.
    let _ = stream.write_all(bytes);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

fn message(answer: Answer) -> String {
    answer.error.expect("an error").message
}

#[test]
fn lines_are_answered() {
    with_server("answers", |path| {
        let mut out = Vec::new();
        one_shot(path, "show lamps detail", false, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with("7 lamps\nx"));
        let mut out = Vec::new();
        one_shot(path, "show lamps max 2", true, &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["lines"].as_array().unwrap().len(), 2);
        let mut out = Vec::new();
        one_shot(
            path,
            "show lamps detail | grep lamps | count",
            false,
            &mut out,
        )
        .unwrap();
        assert_eq!(out, b"1\n");
        let mut out = Vec::new();
        one_shot(path, "set interface state pg0 up", false, &mut out).unwrap();
        assert_eq!(out, b"done\n");
        let e = one_shot(path, "show lambs", false, &mut out)
            .unwrap_err()
            .to_string();
        assert!(
            e.starts_with("column 6: 'lambs' is not understood here"),
            "{e}"
        );
        let e = one_shot(path, "delete interface pg7", false, &mut out)
            .unwrap_err()
            .to_string();
        assert_eq!(e, "there is no interface pg7; there are: pg0");
        let mut connection = Connection::open(path).unwrap();
        let ask = |op, line: &str| Ask::new(op, line);
        let answer = connection
            .ask(&ask(Op::Complete, "set interface state p"))
            .unwrap();
        assert_eq!((answer.start, answer.candidates.len()), (Some(20), 2));
        let answer = connection.ask(&ask(Op::Help, "set interface ")).unwrap();
        assert!(answer.text.contains("state"), "{}", answer.text);
    });
}

#[test]
fn files_of_commands_stop_at_the_first_error() {
    with_server("batch", |path| {
        let file = std::env::temp_dir().join(format!("volley-batch-{}.vly", std::process::id()));
        std::fs::write(
            &file,
            "# set up\nset interface state pg0 up\nset interface state {\n pg0\n down\n}\nbogus\n",
        )
        .unwrap();
        let mut out = Vec::new();
        let line = format!("exec {}", file.display());
        let e = one_shot(path, &line, false, &mut out)
            .unwrap_err()
            .to_string();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(out, b"done\ndone\n");
        assert!(
            e.contains(".vly:7: column 1: 'bogus' is not understood here"),
            "{e}"
        );
    });
}

#[test]
fn scripts_name_the_line_that_fails_and_fail_themselves() {
    with_server("script", |path| {
        let run = |text: &str, keep_going: bool| {
            let (mut out, mut errors) = (Vec::new(), Vec::new());
            let options = ScriptOptions {
                keep_going,
                json: false,
            };
            let done = script(path, &mut text.as_bytes(), options, &mut out, &mut errors);
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (done.map_err(|e| e.to_string()), text(out), text(errors))
        };
        let good = "# a comment\n\nset interface state pg0 up\nshow lamps | count\n";
        let (done, out, errors) = run(good, false);
        assert_eq!((done, errors.as_str()), (Ok(()), ""));
        assert!(out.starts_with("done\n"), "{out}");
        // An error in a command over several lines names the first line; commands after a failure are not run.
        let lines = "set interface state {\n pg0\n down\n}\n";
        let bad = format!("{lines}delete interface pg7\nset interface state pg0 up\nbogus\n");
        let (done, out, errors) = run(&bad, false);
        assert_eq!(
            done.unwrap_err(),
            "stdin:5: there is no interface pg7; there are: pg0"
        );
        assert_eq!((out.as_str(), errors.as_str()), ("done\n", ""));
        let (done, out, errors) = run(&bad, true);
        assert_eq!(done.unwrap_err(), "2 of 4 commands failed");
        assert_eq!(out, "done\ndone\n");
        let errors: Vec<&str> = errors.lines().collect();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].starts_with("volley: stdin:5: there is no interface pg7"));
        assert!(errors[1].starts_with("volley: stdin:7: column 1: 'bogus'"));
        let (done, out, _) = run("quit\nbogus\n", false);
        assert_eq!((done, out.as_str()), (Ok(()), ""));
        let (done, ..) = run("set interface state {\n", false);
        assert!(done.unwrap_err().starts_with("stdin:1: "));
    });
}

#[test]
fn hostile_clients_get_an_error_or_are_cut_off() {
    with_server("hostile", |path| {
        assert!(
            message(raw(path, b"show version\n")).starts_with("the request is not of the form")
        );
        assert!(
            message(raw(path, b"{\"op\":\"exec\",\"line\":\"\xff\"}\n"))
                .starts_with("the request is not UTF-8 text: byte 21")
        );
        assert!(
            message(raw(path, b"{\"op\":\"exec\",\"line\":\"x\",\"root\":1}\n"))
                .contains("unknown field")
        );
        assert!(
            message(raw(path, b"{\"op\":\"fly\",\"line\":\"x\"}\n")).contains("unknown variant")
        );
        assert!(
            message(raw(
                path,
                &vec![b'['; 4000]
                    .into_iter()
                    .chain([b'\n'])
                    .collect::<Vec<_>>()
            ))
            .contains("not of the form")
        );
        assert_eq!(
            message(raw(path, &vec![b'a'; 20_000])),
            "the line is longer than 4096 bytes"
        );
        assert_eq!(
            message(raw(path, b"{\"op\"")),
            "the line was not finished within 0.2 s"
        );
    });
}

#[test]
fn a_client_that_never_reads_is_cut_off_and_harms_nobody() {
    with_server("stalled", |path| {
        let mut stalled = UnixStream::connect(path).unwrap();
        stalled
            .write_all(b"{\"op\":\"exec\",\"line\":\"show lamps max 10000\"}\n")
            .unwrap();
        let begun = Instant::now();
        let mut out = Vec::new();
        one_shot(path, "show lamps", false, &mut out).unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the other client waited"
        );
        std::thread::sleep(Duration::from_millis(1200));
        // The buffered data arrive, then the end: not all of the ten megabytes.
        stalled
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut all = Vec::new();
        let _ = stalled.read_to_end(&mut all);
        assert!(
            all.len() < 9_000_000 && !all.ends_with(b"\n"),
            "{} bytes",
            all.len()
        );
    });
}

#[test]
fn clients_beyond_the_limit_are_told_so() {
    with_server("many", |path| {
        let held: Vec<_> = (0..3).map(|_| Connection::open(path).unwrap()).collect();
        assert!(message(raw(path, b"")).starts_with("3 clients are connected"));
        drop(held);
        let begun = Instant::now();
        while one_shot(path, "show lamps", false, &mut Vec::new()).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "places are not given back"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

#[test]
fn a_socket_in_use_or_no_socket_is_not_taken() {
    with_server("taken", |path| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _guard = runtime.enter();
        let e = Server::bind(path, Limits::default())
            .unwrap_err()
            .to_string();
        assert!(e.contains("another program serves this socket"), "{e}");
        let file = path.with_extension("txt");
        std::fs::write(&file, "mine").unwrap();
        let e = Server::bind(&file, Limits::default())
            .unwrap_err()
            .to_string();
        assert!(e.contains("is not a socket"), "{e}");
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
        std::fs::remove_file(&file).unwrap();
    });
}
