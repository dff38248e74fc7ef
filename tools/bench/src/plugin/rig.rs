//! The router of one scenario: the plugin, its objects, and a stream of preloaded packets that pass its node.

use super::figures::{Peer, Row};
use super::whole::{Cost, whole};
use crate::BenchError;
use crate::args::PluginArgs;
use crate::pace;
use crate::pauses::change;
use crate::process::file_error;
use crate::report::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use volley_daemon::stack::{Stack, StackError};
use volley_daemon::{EngineSettings, IsaChoice};
use volley_graph::{Clock, NodeReport, Severity, Worker};
use volley_model::SyntaxError;
use volley_pg::{Preload, StreamSpec};
use volley_plugin_abi::{Published, Scenario};

/// Interfaces, and a route for packets that the node passes on.
const ROUTER: &str = "\
create packet-generator interface pg0 mac 02:00:00:00:00:01
create packet-generator interface pg1 mac 02:00:00:00:00:02
set interface state pg0 up
set interface state pg1 up
set interface ip address pg0 10.0.0.1/24
set interface ip address pg1 10.0.1.1/24
set ip neighbor pg1 10.0.1.2 02:00:00:00:00:98";
/// Buffers of the router: more than the packets of any scenario.
const BUFFERS: u32 = 65_536;
/// Packets that a scenario may have in circulation.
const MOST_PACKETS: usize = 49_152;
/// Time after a change until a figure.
const SETTLE: Duration = Duration::from_millis(5);
/// Time before the first figure.
const WARM_UP: Duration = Duration::from_millis(100);

/// A scenario, without its commands.
pub struct Case {
    pub name: String,
    pub node: String,
    /// Whether the plugin offers it; otherwise it has the usual packets.
    pub is_offered: bool,
    pub packets: usize,
    vector_size: usize,
    batch: Option<u16>,
    is_native: bool,
    files: Vec<PathBuf>,
    template: String,
    edits: Vec<String>,
    published: Vec<Published>,
}

impl Case {
    fn new(it: &Scenario, is_offered: bool) -> Case {
        Case {
            name: it.name.clone(),
            node: it.node.clone(),
            is_offered,
            packets: it.packets,
            vector_size: it.vector_size,
            batch: None,
            is_native: it.is_native,
            files: it.files.clone(),
            template: it.template.clone(),
            edits: it.edits.clone(),
            published: it.published.clone(),
        }
    }
}

/// What a run for counting prints.
#[derive(Serialize, Deserialize)]
pub struct Passed {
    /// Packets that entered the graph.
    pub packets: u64,
    /// First and last address of the plugin's code.
    pub code: (u64, u64),
}

/// A router with the plugin.
pub struct Rig {
    stack: Stack,
    worker: Worker,
    plugin: String,
    /// The command that enables the node.
    feature: String,
    /// Files of the scenario, which are removed at the end.
    files: Vec<PathBuf>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Clocks and packets of a node.
struct Work(u64, u64);

impl Rig {
    /// Load the plugin.
    pub fn new(args: &PluginArgs) -> Result<Rig, BenchError> {
        let isa: IsaChoice = args.level.isa.parse().map_err(StackError::from)?;
        let settings = EngineSettings {
            buffers: BUFFERS,
            isa,
            ..EngineSettings::default()
        };
        let (stack, mut workers) = Stack::new(&settings, Clock::system())?;
        let worker = workers.pop();
        let worker = worker.ok_or_else(|| BenchError::Args("no worker".into()))?;
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
        let plugin = stem.trim_start_matches("lib").replace('_', "-");
        let mut rig = Rig {
            stack,
            worker,
            plugin,
            feature: String::new(),
            files: Vec::new(),
        };
        let shown = args.file.display();
        let file = args.file.canonicalize();
        let file = file.map_err(|why| file_error(&shown.to_string(), &why))?;
        let loaded = rig.stack.plugins.load(&rig.plugin, &file);
        loaded.map_err(|why| BenchError::Args(format!("{shown}: {why}")))?;
        rig.settle();
        Ok(rig)
    }

    /// Name under which the plugin is loaded.
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// The instruction-set level.
    pub fn level(&self) -> String {
        self.stack.engine.borrow().settings().level.to_string()
    }

    fn settle(&mut self) {
        while !self.stack.settled() {
            self.worker.step();
        }
    }

    /// The scenarios that the command line chooses: those that the plugin offers, or one for each of its features.
    pub fn cases(&self, args: &PluginArgs) -> Result<Vec<Case>, BenchError> {
        let wanted = |name: &str, node: &str| {
            args.scenario.as_deref().is_none_or(|it| it == name)
                && args.node.as_deref().is_none_or(|it| it == node)
        };
        let offered = |all: &[Scenario]| {
            let chosen = all.iter().filter(|it| wanted(&it.name, &it.node));
            let names = all.iter().map(|it| it.name.clone());
            (
                chosen.map(|it| Case::new(it, true)).collect::<Vec<_>>(),
                names.collect::<Vec<_>>(),
            )
        };
        let (mut cases, names) = self
            .stack
            .plugins
            .scenarios(&self.plugin, offered)
            .unwrap_or_default();
        let features = self.stack.plugins.features(&self.plugin);
        if cases.is_empty() && args.scenario.is_none() {
            let nodes = features.iter().map(|(_, node)| node);
            let nodes = nodes.filter(|node| wanted(node, node));
            cases.extend(nodes.map(|node| Case::new(&Scenario::new(node, node), false)));
        }
        if cases.is_empty() {
            let nodes: Vec<&str> = features.iter().map(|(_, node)| node.as_str()).collect();
            return Err(BenchError::Args(format!(
                "the plugin has no scenario that --scenario and --node choose: its scenarios are [{}], its features [{}]",
                names.join(", "),
                nodes.join(", ")
            )));
        }
        for case in &mut cases {
            if let Some(size) = args.vector_size {
                case.vector_size = size.into();
            }
            case.batch = args.batch;
            if !args.edit.is_empty() {
                case.edits = args.edit.clone();
            }
        }
        Ok(cases)
    }

    /// Configure the router for a scenario, and start its stream.
    pub fn prepare(&mut self, case: &Case) -> Result<(), BenchError> {
        let size = case.vector_size;
        let sized = self.stack.engine.borrow_mut().set_vector_size(size);
        sized.map_err(StackError::Graph)?;
        self.files = case.files.clone();
        let setup = |all: &[Scenario]| {
            let mut found = all.iter().filter(|it| it.name == case.name);
            found.next().map_or(Ok(Vec::new()), Scenario::setup)
        };
        let commands = self.stack.plugins.scenarios(&self.plugin, setup);
        let commands = commands.unwrap_or(Ok(Vec::new()));
        let commands = commands.map_err(BenchError::Wrong)?;
        let features = self.stack.plugins.features(&self.plugin);
        let arc = features.iter().find(|(_, node)| *node == case.node);
        let (arc, node) = arc.ok_or_else(|| {
            let text = "a scenario's node must be a feature";
            BenchError::Args(format!(
                "`{}` is no feature of the plugin: {text}",
                case.node
            ))
        })?;
        let feature = format!("set interface feature pg0 {node} arc {arc}");
        self.feature = feature.clone();
        let router = ROUTER.lines();
        let all = router.chain(commands.iter().map(String::as_str));
        for line in all.chain([feature.as_str()]) {
            let worker = &mut self.worker;
            change(&self.stack, line, || _ = worker.step())?;
        }
        self.stream(case)?;
        self.stack.pg.switch(None, true)?;
        self.settle();
        Ok(())
    }

    fn stream(&mut self, case: &Case) -> Result<(), BenchError> {
        let bad = |text: &str, why: SyntaxError| BenchError::Args(format!("`{text}`: {why}"));
        let template = case.template.parse();
        let template = template.map_err(|why| bad(&case.template, why))?;
        let edit = |text: &String| text.parse().map_err(|why| bad(text, why));
        let spec = StreamSpec {
            edits: case.edits.iter().map(edit).collect::<Result<_, _>>()?,
            max_frame: case
                .batch
                .map_or(u32::try_from(case.vector_size).ok(), |it| Some(it.into())),
            seed: Some(1),
            ..StreamSpec::new("bench", "pg0", template)
        };
        let packets = case.packets.clamp(case.vector_size, MOST_PACKETS);
        self.stack.pg.preloaded(&spec, Preload { packets })?;
        Ok(())
    }

    /// Let this number of packets pass.
    pub fn pass(&mut self, packets: u64) -> Result<Passed, BenchError> {
        let mut passed = 0;
        while passed < packets {
            match self.worker.step() as u64 {
                0 => break,
                n => passed += n,
            }
        }
        Ok(Passed {
            packets: passed,
            code: code()?,
        })
    }

    /// The node's clocks and packets so far.
    fn work(&self, node: &str) -> Work {
        let all = self.stack.engine.borrow().runtime(0);
        let mut ours = all.iter().filter(|it| it.name == node);
        ours.next()
            .map_or(Work(0, 0), |it| Work(it.clocks, it.vectors))
    }

    fn until(&mut self, span: Duration) {
        let start = Instant::now();
        while start.elapsed() < span {
            self.worker.steps(16);
        }
    }

    /// The packets that nodes have dropped, by node and reason: of one node, or of all.
    fn drops(&self, node: Option<&str>) -> BTreeMap<String, u64> {
        let counters = self.stack.engine.borrow().counters();
        let ours = counters
            .into_iter()
            .filter(|it| node.is_none_or(|node| it.node == node));
        let errors = ours.filter(|it| it.info.severity == Severity::Error);
        errors
            .map(|it| match node {
                Some(_) => (it.info.name.to_owned(), it.count),
                None => (format!("{}: {}", it.node, it.info.name), it.count),
            })
            .collect()
    }

    fn reports(&self) -> Vec<NodeReport> {
        let engine = self.stack.engine.borrow();
        let mut all = engine.runtime(0);
        all.extend(engine.loop_report(0));
        all
    }

    /// One repetition: the cost of a packet at the node, and in the whole router.
    fn lap(&mut self, node: &str, span: Duration) -> (f64, Cost) {
        let (from, before) = (self.work(node), self.reports());
        self.until(span);
        let (to, after) = (self.work(node), self.reports());
        let clocks = (to.0 - from.0) as f64 / (to.1 - from.1).max(1) as f64;
        (clocks, Cost::of(&before, &after))
    }

    /// Enable or disable the node while packets flow.
    fn switch(&mut self, is_on: bool) -> Result<(), BenchError> {
        let line = match is_on {
            true => self.feature.clone(),
            false => format!("{} disable", self.feature),
        };
        let worker = &mut self.worker;
        change(&self.stack, &line, || _ = worker.step())?;
        self.until(SETTLE);
        Ok(())
    }

    /// One repetition with the node, and one without it if the router does the same work.
    fn pair(
        &mut self,
        case: &Case,
        span: Duration,
    ) -> Result<(f64, Cost, Option<Cost>), BenchError> {
        let (clocks, with) = self.lap(&case.node, span);
        if !case.is_native {
            return Ok((clocks, with, None));
        }
        self.switch(false)?;
        let (_, without) = self.lap(&case.node, span);
        self.switch(true)?;
        Ok((clocks, with, Some(without)))
    }

    /// Measure the node's clocks per packet, and the whole router.
    pub fn measure(&mut self, case: &Case, args: &PluginArgs) -> Result<Row, BenchError> {
        self.until(WARM_UP);
        let span = Duration::from_secs_f64(args.seconds);
        let before = self.work(&case.node);
        let (drops, lost) = (self.drops(Some(&case.node)), self.drops(None));
        let laps = pace::undisturbed(args.repetitions.max(1), || self.pair(case, span));
        let laps = laps.into_iter().collect::<Result<Vec<_>, _>>()?;
        let packets = self.work(&case.node).1 - before.1;
        if packets == 0 {
            return Err(BenchError::Wrong(format!(
                "scenario {}: no packet reached the node {}",
                case.name, case.node
            )));
        }
        if case.is_native {
            self.check_lost(case, &lost)?;
        }
        let share = |(name, count): (String, u64)| {
            let new = count - drops.get(&name).unwrap_or(&0);
            (name, 100.0 * new as f64 / packets as f64)
        };
        let dropped = self.drops(Some(&case.node)).into_iter().map(share);
        let with: Vec<Cost> = laps.iter().map(|it| it.1).collect();
        let without: Vec<Cost> = laps.iter().filter_map(|it| it.2).collect();
        Ok(Row {
            scenario: case.name.clone(),
            node: case.node.clone(),
            vector_size: case.vector_size,
            packets,
            clocks: Spread::of(laps.iter().map(|it| it.0)),
            clock_samples: laps.iter().map(|it| it.0).collect(),
            whole: whole(&with),
            native: case.is_native.then(|| whole(&without)),
            dropped: dropped.filter(|(_, percent)| *percent > 0.0).collect(),
            counts: None,
            published: case.published.iter().map(Peer::of).collect(),
        })
    }

    /// A packet that is dropped costs less than one that is forwarded: no figure counts then.
    fn check_lost(&self, case: &Case, before: &BTreeMap<String, u64>) -> Result<(), BenchError> {
        let is_new = |(name, count): &(&String, &u64)| **count > *before.get(*name).unwrap_or(&0);
        let now = self.drops(None);
        let new: Vec<&str> = now.iter().filter(is_new).map(|it| it.0.as_str()).collect();
        match new.is_empty() {
            true => Ok(()),
            false => Err(BenchError::Wrong(format!(
                "scenario {}: packets are lost, although both routers forward all of them: {}",
                case.name,
                new.join(", ")
            ))),
        }
    }
}

impl Peer {
    fn of(it: &Published) -> Peer {
        Peer {
            source: it.source.clone(),
            clocks: it.clocks,
            l1_misses: it.l1_misses,
            mispredicted: it.mispredicted,
        }
    }
}

/// First and last address of the plugin's code. The router maps a copy in memory, which no other program can name.
fn code() -> Result<(u64, u64), BenchError> {
    let path = "/proc/self/maps";
    let text =
        volley_file::read_text(Path::new(path), 1 << 20).map_err(|why| file_error(path, &why))?;
    range(&text).ok_or_else(|| BenchError::Wrong(format!("{path} does not have the plugin")))
}

fn range(maps: &str) -> Option<(u64, u64)> {
    let lines = maps
        .lines()
        .filter(|line| line.contains("memfd:volley-plugin-"));
    let ranges = lines.filter_map(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).ok();
    ranges
        .filter_map(|(from, to)| number(from).zip(number(to)))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_code_of_the_plugin_is_found_among_mappings() {
        let maps = "5500-5600 r-xp 0 0:1 1 /usr/bin/volley\n\
                    7000-7100 r--p 0 0:1 9 /memfd:volley-plugin-a (deleted)\n\
                    7100-7300 r-xp 0 0:1 9 /memfd:volley-plugin-a (deleted)\n\
                    7300-7400 rw-p 0 0:0 0 \n";
        assert_eq!(super::range(maps), Some((0x7000, 0x7300)));
        assert_eq!(super::range("5500-5600 r-xp 0 0:1 1 /x\n"), None);
    }
}
