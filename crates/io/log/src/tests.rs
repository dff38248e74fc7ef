//! The whole log, used by its macros. Each test has a separate log for its thread.

use super::*;
use crate::file::File;
use crate::limit::{BURST, Draft, Limiter, REPORT, Verdict};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use tracing::{debug, info, warn};
use volley_model::{Owners, Request};
use volley_object::{Value, classes};

/// The output to a test's destination.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Locked while a test logs: `tracing` caches, for the process, which call sites are enabled, so no other test may add or
/// remove a log meanwhile.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sets the default levels of a log. After a change of levels `tracing` checks again which call sites are enabled.
fn configure(log: &Log) {
    let _turn = turn();
    log.0.configure(&LogLevels::default());
}

/// Runs `work` with these levels.
fn with(log: &Log, levels: &str, work: impl FnOnce()) {
    let _turn = turn();
    log.0.configure(&levels.parse().unwrap());
    tracing_core::dispatcher::with_default(&log.dispatch(), work);
}

fn messages(log: &Log, select: Select<'_>) -> Vec<String> {
    let records = log.show(select).records;
    records.into_iter().map(|r| r.message).collect()
}

fn up(log: &Log, interface: &str, times: u32) {
    let _turn = turn();
    tracing_core::dispatcher::with_default(&log.dispatch(), || {
        (0..times).for_each(|n| info!(target: "interface", interface, n, "link up"));
    });
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn records_pass_the_level_of_their_module() {
    let log = Log::alone();
    with(&log, "info,memif=debug,client=off", || {
        info!(target: "config", user = "root", commit = 7, "committed");
        debug!(target: "config", "not this");
        debug!(target: "memif", peer = %"x y", "connected");
        warn!(target: "client", "nor this");
        warn!(target: "hyper::proto", "of a library");
        info!(target: "hyper::proto", "libraries speak at warn");
        tracing::error!(target: "volley_vhost::control", "by the name of the crate");
        log.set_level(Some("client"), Some(LogLevel::Info));
        info!(target: "client", from = "", "now it does");
        log.set_level(Some("client"), None);
        info!(target: "client", "and no more");
        log.set_level(None, Some(LogLevel::Error));
        info!(target: "config", "quiet");
        log.set_level(None, None);
        info!(target: "config", "again");
    });
    let reply = log.show(Select::default());
    let lines: Vec<String> = reply
        .records
        .iter()
        .map(|r| {
            assert!(r.time.seconds() > 1_700_000_000);
            format!("{} {} {} {}", r.sequence, r.level, r.module, r.text())
        })
        .collect();
    assert_eq!(
        lines,
        [
            "1 info config committed commit=7 user=root",
            "2 debug memif connected peer=\"x y\"",
            "3 warn library of a library target=hyper::proto",
            "4 error vhost by the name of the crate",
            "5 info client now it does",
            "6 info config again",
        ]
    );
    assert_eq!((reply.oldest, reply.newest), (1, 6));
    assert_eq!(reply.levels, "info,client=off,memif=debug");
}

#[test]
fn records_are_selected() {
    let log = Log::alone();
    with(&log, "debug", || {
        info!(target: "config", "a");
        debug!(target: "config", "b");
        warn!(target: "memif", "c");
        info!(target: "memif", "d");
    });
    let select = Select::default();
    assert_eq!(messages(&log, select), ["a", "b", "c", "d"]);
    let max = Some(2);
    assert_eq!(messages(&log, Select { max, ..select }), ["c", "d"]);
    let level = Some(LogLevel::Info);
    assert_eq!(messages(&log, Select { level, ..select }), ["a", "c", "d"]);
    let module = Some("memif");
    assert_eq!(
        messages(
            &log,
            Select {
                module,
                level: Some(LogLevel::Warn),
                ..select
            }
        ),
        ["c"]
    );
    let after = Some(2);
    assert_eq!(messages(&log, Select { after, ..select }), ["c", "d"]);
    let mut owners = Owners::default();
    log.own(&mut owners).unwrap();
    let read = |class: &str, module: &str| {
        let all = classes();
        let query = all.query(class).unwrap();
        query.call(vec![None, None, Some(Value::text(module)), None])
    };
    let shown = owners.query(&read("log", "memif").unwrap()).unwrap();
    assert_eq!(shown.get::<LogReply>().unwrap().records.len(), 2);
    let error = read("log", "memiff").unwrap_err().to_string();
    assert!(error.contains("interface, neighbor"), "{error}");
    let request = Request::of(&SetLogLevel {
        level: Some(LogLevel::Warn),
        module: None,
    })
    .unwrap();
    assert_eq!(request.to_string(), "set log level warn");
    for changed in [1, 0] {
        assert_eq!(owners.apply(&request).unwrap().unwrap().changed, changed);
    }
    assert_eq!(log.levels().level, LogLevel::Warn);
}

#[test]
fn a_flood_of_one_interface_leaves_room_for_another_and_is_counted() {
    let log = Log::alone();
    configure(&log);
    up(&log, "tap0", BURST + 500);
    up(&log, "tap1", 1);
    let records = log
        .show(Select {
            max: Some(1000),
            ..Select::default()
        })
        .records;
    let of = |name: &str| {
        records
            .iter()
            .filter(|r| r.fields["interface"] == name)
            .count()
    };
    assert!(
        (BURST as usize..BURST as usize + 50).contains(&of("tap0")),
        "{}",
        of("tap0")
    );
    assert_eq!(of("tap1"), 1);
    let suppressed = log.show(Select::default()).suppressed;
    assert_eq!(suppressed as usize, BURST as usize + 500 - of("tap0"));
    // The number of suppressed records is reported once, after a while.
    assert!(log.0.report(Instant::now()), "it waits");
    assert!(!log.0.report(Instant::now() + REPORT));
    let last = log
        .show(Select {
            max: Some(1),
            ..Select::default()
        })
        .records
        .remove(0);
    let began = format!("{suppressed} more records such as the following were suppressed in ");
    assert!(
        last.message.starts_with(&began) && last.message.ends_with(": link up"),
        "{}",
        last.message
    );
    assert_eq!(
        (last.module.as_str(), last.fields["n"].as_str()),
        ("interface", "599")
    );
}

#[test]
fn classes_are_bounded_and_refill() {
    struct Site(tracing_core::Kind);
    static SITE: Site = Site(tracing_core::Kind::EVENT);
    impl tracing_core::Callsite for Site {
        fn set_interest(&self, _: tracing_core::Interest) {}
        fn metadata(&self) -> &tracing_core::Metadata<'_> {
            let _ = &self.0;
            panic!("nobody asks")
        }
    }
    let site = || tracing_core::callsite::Identifier(&SITE);
    let now = Instant::now();
    let mut limiter = Limiter::default();
    let draft = |n: u32| Draft {
        fields: [("interface".to_owned(), n.to_string())].into(),
        ..Draft::default()
    };
    // A thousand interfaces have a bucket each; the others share one.
    let passed = (0..5000).filter(|n| limiter.judge(site(), &draft(*n), now) == Verdict::Pass);
    assert_eq!(passed.count(), 1024 + BURST as usize);
    // Later all buckets are full again.
    let later = now + Duration::from_secs(60);
    assert_eq!(limiter.due(later).len(), 1);
    let passed = (6000..6500).filter(|n| limiter.judge(site(), &draft(*n), later) == Verdict::Pass);
    assert_eq!(passed.count(), 500);
}

#[test]
fn text_from_outside_forges_no_line() {
    let (log, kept) = (Log::alone(), Kept::default());
    log.writer(Sink::Test(Box::new(kept.clone())))
        .spawn()
        .unwrap();
    with(&log, "info", || {
        warn!(target: "memif", peer = "\x1b]0;owned\x07\n2026-01-01T00:00:00.000000Z error daemon: forged", "connected\r\n");
    });
    assert!(log.flush(PATIENCE));
    let text = kept.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.ends_with('\n') && !text.trim_end().chars().any(char::is_control),
        "{text}"
    );
    assert!(
        text.contains("\\u{1b}]0;owned\\u{7}\\n2026-01-01"),
        "{text}"
    );
}

/// A destination that blocks until a message arrives.
struct Stuck(Receiver<()>, Kept);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // After the sender is dropped, no call blocks any more.
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_destination_that_hangs_stops_nobody_and_losses_are_counted() {
    let (log, kept) = (Log::alone(), Kept::default());
    let (go, wait): (Sender<()>, _) = channel();
    log.writer(Sink::Test(Box::new(Stuck(wait, kept.clone()))))
        .spawn()
        .unwrap();
    configure(&log);
    let began = Instant::now();
    // The maximum burst of each class: this tests the queue, not the limit.
    let classes = QUEUE as u32 / BURST + 10;
    let count = classes * BURST;
    for n in 0..classes {
        up(&log, &n.to_string(), BURST);
    }
    assert!(began.elapsed() < PATIENCE);
    assert!(!log.flush(Duration::from_millis(20)), "the queue is full");
    let dropped = log.show(Select::default()).dropped;
    assert!(dropped > 0, "nothing is dropped");
    drop(go);
    assert!(log.flush(PATIENCE));
    up(&log, "last", 1);
    assert!(log.flush(PATIENCE));
    // One gap, or two when the writer's thread takes its first record only while the queue is full.
    let text = kept.text();
    let gaps = text.lines().filter_map(|line| {
        let (before, _) = line.split_once(" records are missing here")?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    });
    assert_eq!(gaps.sum::<u64>(), dropped, "{text}");
    // The memory contains all records.
    let reply = log.show(Select {
        max: Some(u64::MAX),
        ..Select::default()
    });
    assert_eq!(
        reply.records.len() as u64 + reply.suppressed,
        u64::from(count) + 1
    );
}

fn in_file(
    format: LogFormat,
    file_size: u64,
) -> (tempfile::TempDir, std::path::PathBuf, LogSettings) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let settings = LogSettings {
        format,
        file_size,
        file_count: 2,
        ..LogSettings::default()
    };
    (folder, path, settings)
}

#[test]
fn a_file_is_rotated_by_size_and_follows_its_name() {
    let (_folder, path, settings) = in_file(LogFormat::Text, 250);
    let mut file = File::open(&path, &settings).unwrap();
    let read = |name: &str| std::fs::read_to_string(path.with_file_name(name)).unwrap_or_default();
    let mut put = |n: u64| {
        let message = format!("record {n} {}", "x".repeat(50));
        file.write(&LogRecord {
            sequence: n,
            message,
            module: "daemon".into(),
            ..LogRecord::default()
        })
        .unwrap();
    };
    // Two lines of about 100 bytes each fit.
    (1..=7).for_each(&mut put);
    assert!(read("log").contains("record 7") && !read("log").contains("record 6"));
    assert!(read("log.1").contains("record 5") && read("log.1").contains("record 6"));
    assert!(read("log.2").contains("record 3") && read("log.2").contains("record 4"));
    assert!(!path.with_file_name("log.3").exists());
    // As logrotate does.
    std::fs::rename(&path, path.with_file_name("moved")).unwrap();
    put(8);
    assert!(read("log").contains("record 8") && read("moved").contains("record 7"));
    std::fs::remove_file(&path).unwrap();
    put(9);
    assert!(read("log").contains("record 9"));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o137,
        0
    );
}

#[test]
fn json_lines_are_json_and_act_on_no_terminal() {
    let (_folder, path, settings) = in_file(LogFormat::Json, 0);
    let mut file = File::open(&path, &settings).unwrap();
    let record = LogRecord {
        sequence: 3,
        level: LogLevel::Error,
        module: "config".into(),
        message: "a\n\u{9b}31m \u{202e}é".into(),
        fields: [("user".to_owned(), "root".to_owned())].into(),
        ..LogRecord::default()
    };
    file.write(&record).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "{\"sequence\":3,\"time\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"error\",\"module\":\"config\",\
        \"message\":\"a\\n\\u009b31m \\u202eé\",\"fields\":{\"user\":\"root\"}}\n"
    );
    assert_eq!(serde_json::from_str::<LogRecord>(&text).unwrap(), record);
}

#[test]
fn a_full_disk_stops_nobody_and_is_reported() {
    if !std::path::Path::new("/dev/full").exists() {
        println!("SKIP: there is no /dev/full");
        return;
    }
    let log = Log::alone();
    let settings = LogSettings {
        destination: LogDestination::File,
        file: Some("/dev/full".into()),
        ..LogSettings::default()
    };
    let error = log.start(&settings).err().unwrap().to_string();
    assert!(error.contains("is a device"), "{error}");
    let full = std::fs::File::create("/dev/full").unwrap();
    let sink = Sink::File(crate::file::File::onto("/dev/full".as_ref(), full));
    log.writer(sink).spawn().unwrap();
    with(&log, "info", || {
        (0..5).for_each(|n| info!(target: "daemon", n, "x"))
    });
    assert!(log.flush(PATIENCE));
    let reply = log.show(Select::default());
    assert_eq!((reply.failed, reply.records.len()), (5, 5));
    assert!(reply.fault.unwrap().contains("No space left"));
    assert_eq!(reply.destination, "file /dev/full");
    let settings = LogSettings {
        file: Some("/nonexistent/log".into()),
        ..settings
    };
    let error = log.start(&settings).err().unwrap().to_string();
    assert!(error.starts_with("log.file /nonexistent/log: "), "{error}");
}

#[tokio::test]
async fn readers_get_records_in_order_and_know_what_they_lost() {
    let log = Log::alone();
    let mut reader = log.reader();
    configure(&log);
    (0..3000).for_each(|n| up(&log, &n.to_string(), 1));
    let Heard::Lost(lost) = reader.next().await else {
        panic!("nothing is lost");
    };
    let Heard::Record(record) = reader.next().await else {
        panic!("no record");
    };
    assert_eq!(record.sequence, lost + 1);
}

#[test]
fn what_is_suppressed_takes_no_room_in_the_queue() {
    let (log, kept) = (Log::alone(), Kept::default());
    let (go, wait): (Sender<()>, _) = channel();
    let stuck = Sink::Test(Box::new(Stuck(wait, kept.clone())));
    log.writer(stuck).spawn().unwrap();
    configure(&log);
    up(&log, "tap0", QUEUE as u32 * 2);
    up(&log, "tap1", 1);
    assert_eq!(log.show(Select::default()).dropped, 0);
    drop(go);
    assert!(log.flush(PATIENCE));
    assert!(kept.text().contains("interface=tap1"), "{}", kept.text());
}
