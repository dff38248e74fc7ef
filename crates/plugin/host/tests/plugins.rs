//! Plugins in an engine with packets: load, replace, unload, refusals.

mod arc;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_plugin_host::{PluginState, Plugins};

struct Router {
    engine: Rc<RefCell<Engine>>,
    workers: Vec<Worker>,
    pool: Arc<Pool>,
    plugins: Plugins,
    processes: Processes,
}

impl Router {
    fn new(workers: usize) -> Router {
        let pool = Pool::new(8192).unwrap();
        let settings = Settings {
            workers,
            ..Settings::default()
        };
        let mut engine = arc::engine(settings, pool.clone()).unwrap();
        let workers = engine.build().unwrap();
        let engine = Rc::new(RefCell::new(engine));
        let interface = |index| format!("if{index}");
        let processes = Processes::default();
        let plugins = Plugins::new(engine.clone(), &processes, interface);
        Router {
            engine,
            workers,
            pool,
            plugins,
            processes,
        }
    }

    fn step(&mut self) -> u64 {
        let steps = self.workers.iter_mut().map(|it| it.step() as u64);
        steps.sum()
    }

    /// Enable or disable the plugin's feature.
    fn feature(&self, on: bool) -> Result<(), GraphError> {
        let mut engine = self.engine.borrow_mut();
        engine.set_feature("test-arc", "stamp", 1, on)
    }

    /// Steps until nothing waits to be unmapped; returns the packets.
    fn reaped(&mut self) -> u64 {
        let mut packets = 0;
        for _ in 0..10 {
            if self.plugins.reap() == 0 {
                return packets;
            }
            packets += self.step();
        }
        panic!("{:?}", self.plugins.shown());
    }

    fn counted(&self, name: &str) -> u64 {
        let all = self.engine.borrow().counters().into_iter();
        let named = all.filter(|it| it.info.name == name);
        named.map(|it| it.count).sum()
    }

    fn vectors(&self, node: &str) -> u64 {
        let engine = self.engine.borrow();
        let of = |worker| {
            let all = engine.runtime(worker);
            all.into_iter()
                .find(|it| it.name == node)
                .map_or(0, |it| it.vectors)
        };
        (0..self.workers.len()).map(of).sum()
    }

    fn refused(&self, name: &str, path: &Path) -> String {
        self.plugins.load(name, path).unwrap_err().to_string()
    }
}

/// The file of the sample.
fn sample() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name("libvolley_plugin_sample.so");
    assert!(path.exists(), "{}", path.display());
    path
}

/// A changed copy of the sample.
fn changed(dir: &tempfile::TempDir, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(sample()).unwrap();
    change(&mut bytes);
    let path = dir.path().join("changed.so");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    path
}

/// A version of the sample.
fn version(dir: &tempfile::TempDir, digit: u8) -> PathBuf {
    let path = changed(dir, |bytes| {
        let mark = b"sample version 1";
        let at = bytes.windows(mark.len()).position(|it| it == mark);
        bytes[at.unwrap() + mark.len() - 1] = digit;
    });
    let to = dir.path().join(format!("version-{}.so", char::from(digit)));
    fs::rename(path, &to).unwrap();
    to
}

/// Lines of the memory map with plugins of this name.
fn mapped(name: &str) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let name = format!("volley-plugin-{name} ");
    maps.lines().filter(|it| it.contains(&name)).count()
}

#[test]
fn a_plugin_comes_and_goes_and_its_code_is_unmapped() {
    let mut router = Router::new(2);
    router.plugins.load("comes", &sample()).unwrap();
    assert!(mapped("comes") > 0);
    router.feature(true).unwrap();
    router.step();
    assert_eq!(router.counted("seen"), 512);
    let refused = router.plugins.unload("comes").unwrap_err().to_string();
    assert!(refused.contains("is enabled on an interface"), "{refused}");
    let unknown = router.plugins.unload("other").unwrap_err().to_string();
    assert!(unknown.starts_with("it is not loaded"), "{unknown}");
    router.feature(false).unwrap();
    router.engine.borrow_mut().trace("stamp", 3, None).unwrap();
    router.step();
    router.plugins.unload("comes").unwrap();
    assert_eq!(
        router.plugins.shown().plugins[0].state,
        PluginState::Leaving
    );
    assert!(mapped("comes") > 0, "workers have its code");
    router.reaped();
    assert_eq!(router.plugins.shown().plugins, []);
    assert_eq!(mapped("comes"), 0);
    router.step();
    assert_eq!(router.vectors("error-drop"), 0);
    assert_eq!(router.pool.report().in_use(), 0);
}

#[test]
fn traces_of_a_plugin_outlive_it() {
    let mut router = Router::new(1);
    router.plugins.load("traced", &sample()).unwrap();
    router.feature(true).unwrap();
    router.step();
    router.engine.borrow_mut().trace("stamp", 3, None).unwrap();
    router.step();
    router.feature(false).unwrap();
    router.plugins.unload("traced").unwrap();
    router.reaped();
    assert_eq!(mapped("traced"), 0);
    let traces = router.engine.borrow_mut().traces(&|_| "if".to_owned());
    assert_eq!(traces.len(), 3);
    assert!(traces[0].steps[0].text.starts_with("64 bytes, rx if1"));
}

#[test]
fn a_plugin_is_replaced_a_thousand_times_and_no_packet_is_lost() {
    let mut router = Router::new(2);
    router.plugins.load("replaced", &sample()).unwrap();
    router.feature(true).unwrap();
    let mut sent = router.step();
    let times = if std::env::var_os("VOLLEY_SMALL").is_some() {
        50
    } else {
        1000
    };
    for _ in 0..times {
        router.plugins.load("replaced", &sample()).unwrap();
        sent += router.step();
    }
    sent += router.reaped();
    assert_eq!(router.counted("seen"), sent);
    assert_eq!(router.vectors("end"), sent);
    assert_eq!(router.vectors("error-drop"), 0);
    assert_eq!(router.pool.report().in_use(), 0);
    let shown = router.plugins.shown().plugins;
    assert_eq!((shown.len(), shown[0].state), (1, PluginState::Loaded));
    let lines = mapped("replaced");
    assert!(lines < 16, "{lines} mappings of one version");
}

#[test]
fn a_panic_in_a_node_takes_out_the_node_until_it_is_replaced() {
    let mut router = Router::new(2);
    router.plugins.load("panics-in-node", &sample()).unwrap();
    router.feature(true).unwrap();
    let sent = router.step() + router.step();
    assert_eq!(router.counted("panicked"), sent);
    assert_eq!(router.vectors("error-drop"), sent);
    let shown = router.plugins.shown().plugins;
    let text = shown[0].nodes[0].panic.clone().unwrap();
    assert!(
        text.starts_with("stamp is out of ink (") && text.contains("lib.rs:"),
        "{text}"
    );
    assert_eq!(router.pool.report().in_use(), 0);
    router.feature(false).unwrap();
    router.plugins.unload("panics-in-node").unwrap();
    router.reaped();
    assert_eq!(mapped("panics-in-node"), 0);
    router.plugins.load("sound", &sample()).unwrap();
    router.feature(true).unwrap();
    assert_eq!(router.step(), router.counted("seen"));
}

#[test]
fn what_is_no_plugin_of_this_router_is_refused_before_its_code_runs() {
    let dir = tempfile::tempdir().unwrap();
    let router = Router::new(1);
    let text = dir.path().join("text.so");
    fs::write(&text, "plain text").unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = router.refused("x", &text);
    assert!(
        refused.starts_with("it is no shared library of this machine"),
        "{refused}"
    );

    let refused = router.refused("x", &std::env::current_exe().unwrap());
    assert!(refused.contains("no fingerprint"), "{refused}");

    let whole = fs::metadata(sample()).unwrap().len() as usize;
    for length in [0, 10, 100, whole / 2, whole - 1] {
        let path = changed(&dir, |bytes| bytes.truncate(length));
        let refused = router.refused("x", &path);
        assert!(
            refused.starts_with("it is no shared library"),
            "{length}: {refused}"
        );
    }

    contradictions(&router, &dir);

    let replaced = |from: &[u8], to: u8| {
        changed(&dir, |bytes| {
            let magic = b"volley plugin  1";
            let at = bytes.windows(16).position(|it| it == magic).unwrap();
            let field = bytes[at..].windows(from.len()).position(|it| it == from);
            bytes[at + field.unwrap() + from.len() - 1] = to;
        })
    };
    let refused = router.refused("x", &replaced(b"rustc 1", b'0'));
    assert!(
        refused.starts_with("its compiler is `rustc 0."),
        "{refused}"
    );
    assert!(
        refused.ends_with("build the plugin with the router's compiler"),
        "{refused}"
    );
    let refused = router.refused("x", &replaced(env!("CARGO_PKG_VERSION").as_bytes(), b'9'));
    assert!(
        refused.starts_with("its SDK version is `0.1.9`"),
        "{refused}"
    );
    assert_eq!(mapped("x"), 0);
    assert_eq!(router.plugins.shown().plugins, []);
}

/// Refuses parts that the linker would map or write wrongly, in a file with the right fingerprint.
fn contradictions(router: &Router, dir: &tempfile::TempDir) {
    /// A byte of the header, or a field of 8 bytes of a part.
    enum Change {
        Byte(usize, u8),
        Part(usize, usize, u64),
    }
    use Change::{Byte, Part};
    for (change, why) in [
        (Byte(18, 3), "it is for another machine"),
        (Byte(16, 2), "it is no shared object"),
        (Part(0, 32, 1 << 30), "a part of it is behind its end"),
        (Part(1, 16, 0), "a part of it"),
        (Part(1, 40, u64::MAX), "a part of it has no end"),
        (Part(0, 48, 12), "a part of it is not aligned"),
        (
            Part(1, 0, 1 | 7 << 32),
            "a part of it can be written and executed",
        ),
    ] {
        let path = changed(dir, |bytes| match change {
            Byte(at, value) => bytes[at] = value,
            Part(number, field, value) => {
                let table = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
                let mut loads = (0..).map(|n| table + 56 * n).filter(|at| bytes[*at] == 1);
                let at = loads.nth(number).unwrap() + field;
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        });
        let refused = router.refused("x", &path);
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let router = Router::new(1);
    let path = changed(&dir, |_| {});
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = router.refused("x", &path);
    assert!(refused.contains("has mode 0666"), "{refused}");
    let refused = router.refused("x", &dir.path().join("missing.so"));
    assert!(refused.starts_with("the file cannot be read"), "{refused}");
}

#[test]
fn a_plugin_that_does_not_register_leaves_nothing() {
    let mut router = Router::new(1);
    let expected = [
        ("refuses", "its registration failed: there is no ink"),
        (
            "panics-at-load",
            "its registration failed: it panicked: no stamp today (",
        ),
        ("unknown-arc", "no feature arc `no-such-arc`"),
    ];
    for (name, text) in expected {
        let refused = router.refused(name, &sample());
        assert!(refused.starts_with(text), "{refused}");
        router.step();
        router.reaped();
        assert_eq!(router.plugins.shown().plugins, []);
        assert_eq!(mapped(name), 0);
        assert!(router.engine.borrow().node("stamp").is_err());
    }
    router.step();
    assert_eq!(router.pool.report().in_use(), 0);
}

#[test]
fn a_refused_version_leaves_the_one_that_runs() {
    let mut router = Router::new(1);
    let dir = tempfile::tempdir().unwrap();
    router.plugins.load("stays", &sample()).unwrap();
    router.feature(true).unwrap();
    let mut sent = router.step();
    let part = changed(&dir, |bytes| bytes.truncate(5000));
    router.refused("stays", &part);
    // A second plugin with a node of the same name.
    let refused = router.refused("other", &sample());
    assert!(
        refused.starts_with("node `stamp` exists already"),
        "{refused}"
    );
    sent += router.step() + router.reaped();
    assert_eq!(router.counted("seen"), sent);
    assert_eq!(router.plugins.shown().plugins.len(), 1);
}

#[test]
fn a_task_runs_on_the_control_thread_until_its_version_leaves() {
    let router = Router::new(1);
    router.plugins.load("ticks", &sample()).unwrap();
    let ticks = |router: &Router| {
        let shown = router.plugins.shown().plugins;
        shown[0].metrics.first().and_then(|it| it.value).unwrap()
    };
    assert_eq!(ticks(&router), 0.0);
    let wait = || std::thread::sleep(std::time::Duration::from_millis(12));
    let mut seen = 0.0;
    for _ in 0..3 {
        wait();
        router.processes.run_manual();
        assert!(ticks(&router) > seen, "{} after {seen}", ticks(&router));
        seen = ticks(&router);
    }
    // The next version begins with its own state.
    router.plugins.load("ticks", &sample()).unwrap();
    assert_eq!(ticks(&router), 0.0);
    wait();
    router.processes.run_manual();
    assert!(ticks(&router) > 0.0);
}

#[test]
fn overwriting_the_file_does_not_change_what_runs() {
    let mut router = Router::new(1);
    let dir = tempfile::tempdir().unwrap();
    let path = changed(&dir, |_| {});
    router.plugins.load("copied", &path).unwrap();
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    router.feature(true).unwrap();
    assert_eq!(router.step(), 256);
    assert_eq!(router.counted("seen"), 256);
}

/// A router with the plugin `wired` of the sample, whose features are enabled.
fn wired(name: &str) -> Router {
    let router = Router::new(2);
    router.plugins.load(name, &sample()).unwrap();
    let on = |arc, feature| {
        let mut engine = router.engine.borrow_mut();
        engine.set_feature(arc, feature, 1, true).unwrap();
    };
    on("test-arc", "wired");
    on("wired-arc", "wired-mark");
    router
}

impl Router {
    /// The counts of these nodes.
    fn seen<const N: usize>(&self, nodes: [&str; N]) -> [u64; N] {
        let all = self.engine.borrow().counters();
        nodes.map(|node| {
            let of_node = all
                .iter()
                .filter(|it| it.node == node && it.info.name == "seen");
            of_node.map(|it| it.count).sum()
        })
    }

    /// Unload the plugin of [`wired`], and check that nothing of it is left and no packet was lost.
    fn unwire(&mut self, name: &str, sent: u64) {
        assert_eq!((self.vectors("end"), self.vectors("error-drop")), (sent, 0));
        for (arc, feature) in [("test-arc", "wired"), ("wired-arc", "wired-mark")] {
            let mut engine = self.engine.borrow_mut();
            engine.set_feature(arc, feature, 1, false).unwrap();
        }
        self.step();
        self.plugins.unload(name).unwrap();
        self.reaped();
        assert_eq!(mapped(name), 0);
        let engine = self.engine.borrow();
        assert!(engine.edges().all(|(node, _)| !node.starts_with("wired")));
        assert_eq!(self.pool.report().in_use(), 0);
    }
}

#[test]
fn nodes_of_a_plugin_may_lead_to_each_other() {
    let mut router = wired("wired-circle");
    let sent = router.step();
    let seen = router.seen(["wired", "wired-mark", "wired-back", "wired-loop"]);
    assert_eq!(seen, [sent, sent, sent, 2 * sent]);
    router.unwire("wired-circle", sent);
    // They come again.
    router.plugins.load("wired-circle", &sample()).unwrap();
    router.plugins.unload("wired-circle").unwrap();
    router.reaped();
}

#[test]
fn a_redirected_edge_of_a_plugins_own_node_stays_at_a_replacement() {
    let mut router = wired("wired-edge");
    let mut sent = router.step();
    for _ in 0..20 {
        router.plugins.load("wired-edge", &sample()).unwrap();
        sent += router.step();
    }
    sent += router.reaped();
    assert_eq!(router.seen(["wired", "wired-gate"]), [sent, sent]);
    router.unwire("wired-edge", sent);
}

#[test]
fn the_end_of_an_arc_moves_to_a_node_of_the_next_version_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut router = wired("wired-arc");
    let mut sent = router.step();
    for round in 1..=10 {
        router
            .plugins
            .load("wired-arc", &version(&dir, b'2'))
            .unwrap();
        let at_end = router.step();
        sent += at_end;
        assert_eq!(router.seen(["wired-end"]), [at_end], "{round}");
        router.plugins.load("wired-arc", &sample()).unwrap();
        sent += router.step() + router.reaped();
        assert_eq!(router.vectors("error-drop"), 0, "{round}");
    }
    router.unwire("wired-arc", sent);
}

#[test]
fn a_refused_version_leaves_the_arc_and_the_edges_of_the_one_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut router = wired("wired-stays");
    let mut sent = router.step();
    for (digit, why) in [
        (b'3', "nothing receives EtherType 0x88b5 here"),
        (b'4', "node `wired` has no edge to `wired-mark`"),
    ] {
        let refused = router.refused("wired-stays", &version(&dir, digit));
        assert!(refused.contains(why), "{refused}");
        sent += router.step() + router.reaped();
        assert!(router.engine.borrow().node("wired-end").is_err());
        let arcs = router.engine.borrow().arcs();
        let arc = arcs.iter().find(|it| it.name == "wired-arc").unwrap();
        assert_eq!(arc.end, "wired-loop");
        assert_eq!(router.seen(["wired-loop"]), [2 * sent]);
    }
    router.unwire("wired-stays", sent);
}

#[test]
fn a_node_in_the_place_of_one_of_the_router_leads_to_a_node_of_the_plugin() {
    let mut router = Router::new(2);
    for round in 1..=3 {
        router.plugins.load("wired-over", &sample()).unwrap();
        let [before] = router.seen(["wired-sink"]);
        let sent = router.step();
        assert_eq!(router.seen(["wired-sink"]), [before + sent], "{round}");
        router.plugins.unload("wired-over").unwrap();
        router.reaped();
        assert_eq!(mapped("wired-over"), 0);
        assert!(router.engine.borrow().node("wired-sink").is_err());
        let before = router.vectors("end");
        let sent = router.step();
        assert_eq!(router.vectors("end"), before + sent, "{round}");
    }
    assert_eq!(router.vectors("error-drop"), 0);
    assert_eq!(router.pool.report().in_use(), 0);
}

#[test]
fn a_version_without_a_node_to_which_an_edge_leads_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut router = Router::new(2);
    router.plugins.load("wired-over", &sample()).unwrap();
    router.plugins.load("wired-other", &sample()).unwrap();
    let mut sent = router.step();
    let mut refuse = |router: &mut Router, digit, node: &str| {
        let refused = router.refused("wired-over", &version(&dir, digit));
        let why = format!("node `{node}` has an edge to `wired-sink`");
        assert!(refused.starts_with(&why), "{refused}");
        assert!(!refused.contains(". "), "one sentence: {refused}");
        sent += router.step() + router.reaped();
        assert_eq!(router.seen(["wired-sink"]), [sent], "{}", char::from(digit));
        assert!(router.engine.borrow().node("wired-ground").is_err());
    };
    // The node of another plugin leads there.
    refuse(&mut router, b'2', "wired-lead");
    router.plugins.unload("wired-other").unwrap();
    // The version itself leads there.
    refuse(&mut router, b'3', "end");
    refuse(&mut router, b'4', "wired-lead");
    router
        .plugins
        .load("wired-over", &version(&dir, b'2'))
        .unwrap();
    let at_ground = router.step();
    assert_eq!(router.seen(["wired-ground"]), [at_ground]);
    router.reaped();
    assert!(router.engine.borrow().node("wired-sink").is_err());
    router.plugins.unload("wired-over").unwrap();
    router.reaped();
    assert_eq!((mapped("wired-over"), mapped("wired-other")), (0, 0));
    assert_eq!(router.vectors("error-drop"), 0);
    assert_eq!(router.pool.report().in_use(), 0);
}
