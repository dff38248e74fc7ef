//! The demo's router: three packet-generator interfaces, with neighbours behind two of them, and functions to drive it.

use super::DemoError;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use volley_cli::{Action, View, parse_line};
use volley_daemon::EngineSettings;
use volley_daemon::show::{
    BuffersReply, DropsReply, ErrorRow, ErrorsReply, RuntimeReply, ShowBuffers, ShowDrops,
    ShowErrors, ShowRuntime,
};
use volley_daemon::stack::{Stack, StackError};
use volley_file::Scratch;
use volley_graph::{Clock, Worker, WorkerThreads};
use volley_iface::{InterfaceRow, ShowInterfaces};
use volley_object::Query;
use volley_reference::{Hop, Reference, Table, To};

/// Number of next hops, half of them behind each egress interface.
pub const HOPS: u32 = 16;
/// MAC address of the receiving interface.
pub const RX_MAC: [u8; 6] = [0x02, 0xfe, 0, 0, 0, 0];
/// L3 MTU of the egress interfaces.
const MTU: usize = 1500;
/// Time limit for limited streams in seconds.
const LIMIT_S: u64 = 120;

/// Number of the interface of next hop `n`, and of its host in the subnet there.
fn place(n: u32) -> (u32, u32) {
    (1 + n % 2, 10 + n / 2)
}

fn address(family: &str, interface: u32, host: u32) -> String {
    match family {
        "ip" => format!("198.18.{interface}.{host}"),
        _ => format!("2001:2:0:{interface}::{host:x}"),
    }
}

/// The next hops of a family, as paths of a command.
pub fn paths(family: &str) -> String {
    let path = |n| {
        let (interface, host) = place(n);
        format!("via {} pg{interface}", address(family, interface, host))
    };
    (0..HOPS).map(path).collect::<Vec<_>>().join(" ")
}

/// The next hops for the model.
fn hops() -> Vec<Hop> {
    let hop = |n| {
        let (interface, _) = place(n);
        let source = [0x02, 0xfe, 0, 0, 0, interface as u8];
        Hop {
            mac: [0x02, 0xaa, 0, 0, 0, n as u8],
            source,
            tx: format!("pg{interface}"),
            mtu: MTU,
            address: address("ip", interface, 1)
                .parse()
                .ok()
                .map(Ipv4Addr::to_bits),
        }
    };
    (0..HOPS).map(hop).collect()
}

/// The model of this router with these routes: those of files, and those of addresses and neighbours.
pub fn model(v4: &[(u32, u8, u32)], v6: &[(u128, u8, u32)]) -> Reference {
    let net4 = |interface: u32| 198 << 24 | 18 << 16 | interface << 8;
    let net6 = |interface: u32| 0x2001_0002u128 << 96 | u128::from(interface) << 64;
    let (mut v4, mut v6) = (Table::new(v4, hops()), Table::new(v6, hops()));
    for n in 0..3 {
        v4.set(net4(n), 24, To::Drop("ip4-glean: unresolved"));
        v4.set(net4(n), 32, To::Drop("ip4-lookup: subnet-broadcast"));
        v4.set(net4(n) | 255, 32, To::Drop("ip4-lookup: subnet-broadcast"));
        // Packets to the router itself are neither in the model nor in the demo.
        v4.set(net4(n) | 1, 32, To::Drop("ip4-local: not modelled"));
        v6.set(net6(n), 64, To::Drop("ip6-glean: unresolved"));
        v6.set(net6(n) | 1, 128, To::Drop("ip6-local: not modelled"));
    }
    for n in 0..HOPS {
        let (interface, host) = place(n);
        v4.set(net4(interface) | host, 32, To::Hop(n));
        v6.set(net6(interface) | u128::from(host), 128, To::Hop(n));
    }
    Reference::new(RX_MAC, v4, v6)
        .with_address(net4(0) | 1, 24)
        .with_address6(net6(0) | 1, 64)
}

/// A capture of the packets that an interface transmits.
pub struct Output {
    /// The interface.
    pub tx: String,
    /// The file, which exists once a packet was captured.
    pub file: PathBuf,
}

/// Results of the measurement.
pub struct Speed {
    /// Received packets per microsecond.
    pub mpps: f64,
    /// Cycles per packet of all nodes except the source.
    pub cycles: f64,
    /// Cycles per packet of the sources.
    pub source: f64,
    /// Cycles per packet of everything: nodes, sources, and the rounds' cost outside them.
    pub together: f64,
}

/// The router, stepped by the demo or on its worker thread.
pub struct Lab {
    stack: Stack,
    workers: Vec<Worker>,
    ran: Duration,
}

impl Lab {
    /// A router without interfaces.
    pub fn new() -> Result<Self, DemoError> {
        let (stack, workers) = Stack::new(&EngineSettings::default(), Clock::system())?;
        Ok(Lab {
            stack,
            workers,
            ran: Duration::ZERO,
        })
    }

    /// Create the interfaces, with addresses and neighbours.
    pub fn wire(&mut self) -> Result<(), DemoError> {
        for n in 0..3 {
            self.line(&format!(
                "create packet-generator interface pg{n} mac 02:fe:00:00:00:{n:02x} mtu {MTU}"
            ))?;
            self.line(&format!(
                "set interface ip address pg{n} {}/24",
                address("ip", n, 1)
            ))?;
            self.line(&format!(
                "set interface ip6 address pg{n} {}/64",
                address("ip6", n, 1)
            ))?;
            self.line(&format!("set interface state pg{n} up"))?;
        }
        // The model covers forwarding and drops only, so ICMP errors are off.
        self.line("set ip icmp errors off")?;
        for n in 0..HOPS {
            let (interface, host) = place(n);
            for family in ["ip", "ip6"] {
                let neighbour = address(family, interface, host);
                self.line(&format!(
                    "set {family} neighbor pg{interface} {neighbour} 02:aa:00:00:00:{n:02x}"
                ))?;
            }
        }
        Ok(())
    }

    /// Start or stop a stream, or all (`None`).
    pub fn switch(&mut self, stream: Option<&str>, on: bool) -> Result<(), DemoError> {
        let switched = self.stack.pg.switch(stream, on);
        switched.map_err(StackError::from)?;
        self.settle();
        Ok(())
    }

    /// Let the worker apply changes.
    fn settle(&mut self) {
        while !self.stack.settled() {
            self.step();
        }
    }

    /// Execute a command, and let the worker apply it.
    pub fn line(&mut self, line: &str) -> Result<(), DemoError> {
        let refused = |why: String| DemoError::Refused {
            line: line.chars().take(120).collect(),
            why,
        };
        match parse_line(line).map_err(|e| refused(e.to_string()))?.action {
            Action::Request(request) => self
                .stack
                .apply(&request)
                .map_err(|e| refused(e.to_string()))?,
            _ => return Err(refused("it is no change".to_owned())),
        };
        self.settle();
        Ok(())
    }

    /// `show runtime`, only nodes with packets.
    pub fn runtime(&self) -> Result<String, DemoError> {
        let mut runtime = self.clocks()?;
        for worker in &mut runtime.workers {
            worker.nodes.retain(|node| node.vectors > 0);
        }
        Ok(ShowRuntime::text(&runtime, View::Table))
    }

    /// The output of a `show` command.
    pub fn show(&self, line: &str) -> Result<String, DemoError> {
        let refused = |why: String| DemoError::Refused {
            line: line.to_owned(),
            why,
        };
        match parse_line(line).map_err(|e| refused(e.to_string()))?.action {
            Action::Query(query, view) => {
                let reply = self.stack.query(&query);
                let reply = reply.map_err(|e| refused(e.to_string()))?;
                Ok(reply.text(view))
            }
            _ => Err(refused("it is no question".to_owned())),
        }
    }

    fn ask<Q: Query>(&self, query: &Q) -> Result<Q::Reply, DemoError> {
        let refused = |e: volley_model::ModelError| DemoError::Refused {
            line: format!("show {}", Q::NAME),
            why: e.to_string(),
        };
        self.stack.ask(query).map_err(refused)
    }

    fn step(&mut self) -> usize {
        let entered = self.workers.iter_mut().map(Worker::step).sum();
        self.stack.drain();
        entered
    }

    /// Step until limited streams have sent everything.
    pub fn step_until_idle(&mut self) -> Result<(), DemoError> {
        let start = Instant::now();
        let mut idle = 0;
        while idle < 1000 {
            idle = if self.step() == 0 { idle + 1 } else { 0 };
            if start.elapsed() > Duration::from_secs(LIMIT_S) {
                return Err(DemoError::Endless(LIMIT_S));
            }
        }
        Ok(())
    }

    /// Run on the worker's own thread, for a time.
    pub fn run_for(&mut self, time: Duration) -> Result<(), DemoError> {
        let start = Instant::now();
        let running = WorkerThreads::start(std::mem::take(&mut self.workers), &[])
            .map_err(|_| DemoError::Worker)?;
        while start.elapsed() < time && running.is_alive() {
            std::thread::sleep(Duration::from_millis(2));
            self.stack.drain();
        }
        self.workers = running.stop();
        self.ran = start.elapsed();
        self.stack.drain();
        if self.workers.is_empty() {
            Err(DemoError::Worker)
        } else {
            Ok(())
        }
    }

    /// Capture transmitted packets, without limit or that number on each interface.
    pub fn capture(
        &mut self,
        scratch: &Scratch,
        name: &str,
        count: Option<u64>,
    ) -> Result<Vec<Output>, DemoError> {
        let mut outputs = Vec::new();
        for tx in ["pg1", "pg2"] {
            let file = scratch.file(&format!("{name}-{tx}.pcap"));
            let count = count.map_or_else(String::new, |n| format!(" count {n}"));
            self.line(&format!(
                "packet-generator capture {tx} pcap {}{count}",
                quoted(&file)
            ))?;
            outputs.push(Output {
                tx: tx.to_owned(),
                file,
            });
        }
        Ok(outputs)
    }

    /// Close the captures.
    pub fn stop_captures(&mut self) -> Result<(), DemoError> {
        self.stack.drain();
        self.line("packet-generator capture pg1 disable")?;
        self.line("packet-generator capture pg2 disable")
    }

    /// Packets dropped so far, with reasons.
    pub fn drops(&self) -> Result<DropsReply, DemoError> {
        self.ask(&ShowDrops)
    }

    /// Counters of all nodes.
    pub fn errors(&self) -> Result<ErrorsReply, DemoError> {
        self.ask(&ShowErrors)
    }

    fn interfaces(&self) -> Result<Vec<InterfaceRow>, DemoError> {
        let all = self.ask(&ShowInterfaces { name: None })?;
        Ok(all.interfaces)
    }

    fn buffers(&self) -> Result<BuffersReply, DemoError> {
        self.ask(&ShowBuffers)
    }

    /// Clear all counters.
    pub fn clear(&mut self) -> Result<(), DemoError> {
        for what in ["runtime", "errors", "interfaces"] {
            self.line(&format!("clear {what}"))?;
        }
        Ok(())
    }

    /// Speed of the last [`Lab::run_for`], if counters were cleared before it.
    pub fn speed(&self) -> Result<Speed, DemoError> {
        let received: u64 = self.interfaces()?.iter().map(|i| i.rx.packets).sum();
        let runtime = self.clocks()?;
        let nodes = || runtime.workers.iter().flat_map(|w| &w.nodes);
        let cycles = |state: &str| {
            nodes()
                .filter(|n| n.state == state)
                .map(|n| n.cycles)
                .sum::<u64>() as f64
        };
        let packets = received.max(1) as f64;
        let (nodes, sources) = (
            cycles("active"),
            cycles("polling") + cycles("interrupt wait"),
        );
        Ok(Speed {
            mpps: received as f64 / self.ran.as_secs_f64() / 1e6,
            cycles: nodes / packets,
            source: sources / packets,
            together: (nodes + sources + cycles("loop")) / packets,
        })
    }

    fn clocks(&self) -> Result<RuntimeReply, DemoError> {
        self.ask(&ShowRuntime)
    }

    /// Packets that were freed without being sent, whether the reason counts as a drop or as information.
    fn ended_in_error_drop(&self) -> Result<u64, DemoError> {
        let runtime = self.clocks()?;
        let nodes = runtime.workers.iter().flat_map(|worker| &worker.nodes);
        let ended = nodes.filter(|node| node.name == "error-drop");
        Ok(ended.map(|node| node.vectors).sum())
    }

    /// Number of additional packets by fragmentation.
    fn added_by_cutting(&self) -> Result<u64, DemoError> {
        let errors = self.errors()?;
        let count = |name: &str| -> u64 {
            let of = |e: &&ErrorRow| e.node == "ip4-frag" && e.reason == name;
            errors.errors.iter().filter(of).map(|e| e.count).sum()
        };
        Ok(count("fragments").saturating_sub(count("fragmented")))
    }

    /// After all streams are deleted, checks that received packets + added fragments = sent + dropped, and that every
    /// buffer is free. Returns the number of received packets.
    pub fn balance(&mut self) -> Result<u64, DemoError> {
        self.step_until_idle()?;
        let rows = self.interfaces()?;
        let received: u64 = rows.iter().map(|i| i.rx.packets).sum();
        let sent: u64 = rows.iter().map(|i| i.tx.packets).sum();
        let dropped = self.ended_in_error_drop()?;
        let added = self.added_by_cutting()?;
        if received + added != sent + dropped {
            let what = format!(
                "{received} packets came in and cutting made {added} more, but {sent} left and {dropped} were dropped"
            );
            return Err(DemoError::Wrong(what));
        }
        for arena in self.buffers()?.arenas {
            if arena.free + arena.cached != arena.total {
                let what = format!(
                    "{} of {} buffers did not come back",
                    arena.used, arena.total
                );
                return Err(DemoError::Wrong(what));
            }
        }
        Ok(received)
    }
}

/// A path as a word of a command.
pub fn quoted(path: &Path) -> String {
    volley_model::quote(&path.display().to_string())
}
