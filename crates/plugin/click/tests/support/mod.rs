//! Runs configurations: packets of files in, packets of files out.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use volley_click::Live;
use volley_click::graph::{Environment, build};
use volley_click_lang::Source;
use volley_graph::buf::Pool;
use volley_graph::{Clock, Domain, Engine, Level, Settings, Worker};
use volley_pcap::{FileFormat, LinkType, Packet, Writer, WriterOptions, read_packets};

/// A graph on one worker.
pub struct Bench {
    pub engine: Engine,
    pub worker: Worker,
    pub clock: Clock,
    pub live: Live,
    /// What elements have printed.
    pub lines: Vec<String>,
    domain: Arc<Domain>,
    folder: PathBuf,
}

impl Bench {
    /// A graph of a configuration whose files are in `folder`; an error is its sentence.
    pub fn new(text: &str, folder: &Path, vector_size: usize) -> Result<Bench, String> {
        let settings = Settings {
            vector_size,
            buffers: 4096,
            level: Level::detect(),
            workers: 1,
            clock: Clock::manual(),
        };
        let pool = Pool::new(4096).map_err(|error| error.to_string())?;
        let clock = settings.clock.clone();
        let domain = Domain::new();
        let mut engine = Engine::new(settings, pool, domain.clone()).map_err(|e| e.to_string())?;
        let worker = engine.build().map_err(|error| error.to_string())?.pop();
        let mut bench = Bench {
            engine,
            worker: worker.ok_or("there is no worker")?,
            clock,
            live: Live::new(&domain),
            lines: Vec::new(),
            domain,
            folder: folder.to_owned(),
        };
        bench.change(text)?;
        Ok(bench)
    }

    /// Another graph in the place of the one that runs, from the next round on.
    pub fn change(&mut self, text: &str) -> Result<(), String> {
        let interface = |name: &str| Err(format!("there is no interface {name}"));
        let environment = Environment {
            interface: &interface,
            addresses: &|_| None,
            domain: &self.domain,
            folder: &self.folder,
            vector_size: self.engine.settings().vector_size,
        };
        let source = Source::new("t.click", text);
        let graph = build(&source, &environment, &self.live).map_err(|error| error.to_string())?;
        let changed = self.live.change(&mut self.engine, graph);
        changed.map_err(|error| error.to_string())
    }

    /// Rounds, with this time between them.
    pub fn rounds(&mut self, rounds: usize, step: Duration) {
        for _ in 0..rounds {
            self.worker.step();
            let lines = &mut self.lines;
            self.live
                .drain(&self.engine, &mut |line| lines.push(line.to_owned()));
            self.clock.advance(step.as_nanos() as u64);
        }
    }

    /// Read a handler.
    pub fn read(&self, handler: &str) -> String {
        let (element, name) = handler.rsplit_once('.').expect("ELEMENT.HANDLER");
        let placed = self.live.placed().find(|it| it.name == element);
        placed
            .expect("the element is there")
            .read(name)
            .expect("the handler is there")
    }

    /// Write a handler.
    pub fn write(&self, handler: &str, value: &str) {
        let (element, name) = handler.rsplit_once('.').expect("ELEMENT.HANDLER");
        let placed = self.live.placed().find(|it| it.name == element);
        placed
            .expect("the element is there")
            .write(name, value)
            .expect("the value fits");
    }

    /// Whether every buffer is free.
    pub fn is_empty(&self) -> bool {
        let report = self.engine.pool().report();
        report.total == report.shared_free + report.cached_free
    }

    /// Drops by node and reason.
    pub fn drops(&self) -> Vec<(String, String, u64)> {
        let mut all = Vec::new();
        for row in self.engine.counters() {
            let is_ours = row.node.starts_with("click/") || row.node == volley_graph::DROP_NODE;
            if row.count > 0 && is_ours {
                all.push((row.node, row.info.name.to_owned(), row.count));
            }
        }
        all
    }
}

/// Write packets to a file.
pub fn write_file(path: &Path, packets: &[Vec<u8>]) {
    let options = WriterOptions {
        linktype: LinkType::ETHERNET,
        ..WriterOptions::new(FileFormat::PcapUs)
    };
    let mut writer = Writer::create(path, options).expect("the file is made");
    for (n, packet) in packets.iter().enumerate() {
        let packet = Packet::ethernet(n as u64 * 1000, packet.clone());
        writer
            .write(packet.as_ref())
            .expect("the packet is written");
    }
    writer.finish().expect("the file is closed");
}

/// The packets of a file.
pub fn read_file(path: &Path) -> Vec<Vec<u8>> {
    let all = read_packets(path).expect("the file is read");
    all.packets.into_iter().map(|it| it.data).collect()
}

/// Run `configuration`, which reads `in.pcap` and writes `out.pcap`, at several vector sizes: all results are equal.
pub fn run(configuration: &str, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for size in [4, 64, 256] {
        let folder = tempfile::tempdir().expect("a folder");
        write_file(&folder.path().join("in.pcap"), packets);
        let mut bench = Bench::new(configuration, folder.path(), size).expect("the graph");
        bench.rounds(packets.len() + 20, Duration::from_micros(10));
        let out = read_file(&folder.path().join("out.pcap"));
        match &first {
            None => first = Some(out),
            Some(first) => assert_eq!(*first, out, "vectors of {size}"),
        }
    }
    first.unwrap_or_default()
}

/// The sentence of a configuration that is refused.
pub fn refusal(configuration: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    match Bench::new(configuration, folder.path(), 64) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error,
    }
}
