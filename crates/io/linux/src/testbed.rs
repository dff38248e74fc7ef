//! Test environment for drivers of Linux interfaces: namespaces that live as long as the test, a daemon in the test's
//! process, and time-limited programs on the kernel's side. Needs root and `ip`.

use crate::sys::LiveFrames;
use crate::{KernelLinks, Namespace};
use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::{Clock, Domain, Engine, GraphError, Settings, WorkerThreads};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::{IfCounts, Registry};
use volley_model::{Applied, InterfaceSpec, ModelError, Request};
use volley_object::Instance;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Namespaces, deleted with their contents when dropped.
pub struct Testbed {
    spaces: Vec<String>,
    number: u32,
}

fn can(program: &str) -> bool {
    Command::new(program).arg("-V").output().is_ok()
}

/// Print why a test cannot run.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP: {why}");
}

/// Run a program for at most `seconds`.
pub fn run(seconds: u32, program: &str, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", &seconds.to_string(), program])
        .args(args);
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{program} {args:?}: {error}"),
    }
}

/// Run a program that must succeed.
pub fn must(seconds: u32, program: &str, args: &[&str]) -> String {
    let output = run(seconds, program, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {}: {text}{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

impl Testbed {
    /// A test bed with `n` namespaces; `None`, and a printed reason, if they cannot be created or a program is missing.
    pub fn new(n: usize, programs: &[&str]) -> Option<Self> {
        if let Some(missing) = ["ip"].iter().chain(programs).find(|p| !can(p)) {
            skip(&format!("{missing} is not installed"));
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut bed = Testbed {
            spaces: Vec::new(),
            number,
        };
        for at in 0..n {
            let name = format!("vt{}-{number}-{at}", std::process::id());
            if !run(10, "ip", &["netns", "add", &name]).status.success() {
                skip("network namespaces cannot be made (are we root?)");
                return None;
            }
            bed.spaces.push(name);
            bed.ip(at, "link set lo up");
        }
        Some(bed)
    }

    /// Name of a namespace.
    pub fn name(&self, at: usize) -> &str {
        &self.spaces[at]
    }

    /// Run `ip ...` in a namespace; words are separated by blanks.
    pub fn ip(&self, at: usize, words: &str) -> String {
        let args: Vec<&str> = ["-n", self.name(at)]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        must(10, "ip", &args)
    }

    /// A veth pair: `name` in namespace `at`, up, and the other end in this process's namespace.
    pub fn veth(&self, at: usize, name: &str, extra: &str) -> String {
        let ours = format!(
            "v{}x{}{name}{at}",
            std::process::id() % 100_000,
            self.number
        );
        let words = format!(
            "link add {ours} {extra} type veth peer name {name} {extra} netns {}",
            self.name(at)
        );
        let words = words.split_whitespace();
        must(10, "ip", &words.collect::<Vec<_>>());
        self.ip(at, &format!("link set {name} up"));
        must(10, "ip", &["link", "set", &ours, "up"]);
        // Only Volley may send and reply here.
        let quiet = format!("/proc/sys/net/ipv6/conf/{ours}/disable_ipv6");
        let _ = std::fs::write(quiet, "1");
        ours
    }

    /// Run a program in a namespace.
    pub fn exec(&self, at: usize, seconds: u32, words: &str) -> Output {
        let args: Vec<&str> = ["netns", "exec", self.name(at)]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        run(seconds, "ip", &args)
    }

    /// Start a program in a namespace, until the value is dropped or `seconds` have passed.
    pub fn start(&self, at: usize, seconds: u32, words: &str) -> Started {
        let bound = seconds.to_string();
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", &bound, "ip", "netns", "exec", self.name(at)])
            .args(words.split(' '));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        match command.spawn() {
            Ok(child) => Started(Some(child)),
            Err(error) => panic!("{words}: {error}"),
        }
    }

    /// Whether `to` answers three pings of `size` bytes without fragments.
    pub fn pings(&self, at: usize, to: &str, size: usize) -> bool {
        let words = format!("ping -n -q -i 0.01 -c 3 -W 2 -M do -s {size} {to}");
        self.exec(at, 10, &words).status.success()
    }

    /// Like `pings`, repeated for five seconds: after an interface came up, neighbor resolution may have to start again.
    pub fn pings_soon(&self, at: usize, to: &str, size: usize) -> bool {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if self.pings(at, to, size) {
                return true;
            }
        }
        false
    }

    /// A UDP socket in a namespace that waits at most `wait` for a datagram.
    pub fn udp(&self, at: usize, address: &str, wait: Duration) -> UdpSocket {
        let open = || {
            let ip: IpAddr = address.parse().unwrap_or_else(|e| panic!("{address}: {e}"));
            let socket = UdpSocket::bind(SocketAddr::new(ip, 0));
            Ok(socket.unwrap_or_else(|e| panic!("{address}: {e}")))
        };
        let socket = Namespace::Other(self.name(at).to_owned()).run(open);
        let socket = socket.unwrap_or_else(|e| panic!("{e}"));
        let set = socket.set_read_timeout(Some(wait));
        set.unwrap_or_else(|e| panic!("{e}"));
        socket
    }
}

/// A program in the background.
pub struct Started(Option<Child>);

impl Started {
    /// Wait until the program ends; returns its output.
    pub fn output(mut self) -> String {
        let output = self.0.take().map(Child::wait_with_output);
        match output {
            Some(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
            _ => String::new(),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // `timeout` passes the signal on to the program.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for name in &self.spaces {
            let _ = run(10, "ip", &["netns", "del", name]);
        }
    }
}

/// A datagram of `size` bytes with its size and position.
pub fn payload(size: usize) -> Vec<u8> {
    (0..size)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ size) as u8)
        .collect()
}

/// Send datagrams of many sizes from `a` to `b`; each must arrive unchanged.
pub fn datagrams(a: &UdpSocket, b: &UdpSocket, sizes: impl Iterator<Item = usize>) {
    let to = b.local_addr().unwrap_or_else(|e| panic!("{e}"));
    let mut got = vec![0; 1 << 16];
    for size in sizes {
        let sent = payload(size);
        a.send_to(&sent, to)
            .unwrap_or_else(|e| panic!("{size} bytes: {e}"));
        let n =
            received(b, &mut got).unwrap_or_else(|e| panic!("{size} bytes did not arrive: {e}"));
        assert!(
            got[..n] == sent[..],
            "{size} bytes: {n} other bytes arrived"
        );
    }
}

/// The next datagram of `socket`. A signal does not end the wait: DPDK's tap driver has the kernel signal the process for
/// each frame that arrives, and the kernel does not restart the wait on a socket with a time limit (signal(7)).
fn received(socket: &UdpSocket, into: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match socket.recv(into) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A source of frames until it is dropped.
pub struct Source {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Testbed {
    /// Send a frame by interface `name` of a namespace, from one core and as fast as the kernel can generate raw XDP
    /// frames ([`LiveFrames`]). A virtual interface accepts them if its other end has an XDP program or GRO.
    pub fn live_frames(&self, at: usize, name: &str, core: usize, frame: Vec<u8>) -> Source {
        let space = Namespace::new(Some(self.name(at)));
        let link = KernelLinks::open(&space).and_then(|links| links.by_name(name));
        let index = link.unwrap_or_else(|e| panic!("{name}: {e}")).index;
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let send = move || {
            let pinned = core_affinity::set_for_current(core_affinity::CoreId { id: core });
            assert!(pinned, "core {core}");
            let live = LiveFrames::new(index)?;
            while !stop.load(Ordering::Relaxed) {
                live.send(&frame, 8192)?;
            }
            Ok::<_, std::io::Error>(())
        };
        let inside = move || {
            let sent = space.run(|| Ok(send()));
            sent.map_or_else(
                |e| panic!("{e}"),
                |sent| sent.unwrap_or_else(|e| panic!("{e}")),
            );
        };
        Source {
            over,
            thread: Some(std::thread::spawn(inside)),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let died = thread.join().is_err();
            assert!(
                !died || std::thread::panicking(),
                "the source of frames died"
            );
        }
    }
}

/// A daemon in this process: engine, interfaces, and what `register` registers.
pub struct Daemon {
    /// The daemon's registry.
    pub registry: Registry,
    running: Option<WorkerThreads>,
    pool: Arc<Pool>,
}

impl Daemon {
    /// A running daemon, its worker pinned to `core` if that is given.
    pub fn new(
        buffers: usize,
        core: Option<usize>,
        register: impl FnOnce(&mut Registry) -> Result<(), GraphError>,
    ) -> Self {
        let pool = Pool::new(buffers).unwrap_or_else(|e| panic!("{e}"));
        let settings = Settings {
            clock: Clock::system(),
            buffers,
            ..Settings::default()
        };
        let build = || {
            let engine = Engine::new(settings, pool.clone(), Domain::new())?;
            let mut registry = Registry::new(engine);
            volley_iface::register(&mut registry)?;
            register(&mut registry)?;
            let workers = registry.engine.borrow_mut().build()?;
            let cores: Vec<usize> = core.into_iter().collect();
            Ok::<_, GraphError>((registry, WorkerThreads::start(workers, &cores)?))
        };
        let (registry, running) = build().unwrap_or_else(|e| panic!("{e}"));
        Daemon {
            registry,
            running: Some(running),
            pool,
        }
    }

    /// Execute a request, and wait until the worker applies it.
    pub fn ask(&mut self, request: Request) -> Result<Applied, ModelError> {
        request.validate()?;
        let handlers = &mut self.registry.handlers;
        let ready = handlers.iter_mut().find_map(|h| h.ready(&request));
        ready.unwrap_or(Ok(()))?;
        let owned = self.registry.owners.apply(&request);
        let answer = owned.or_else(|| handlers.iter_mut().find_map(|h| h.apply(&request)));
        let answer = answer.unwrap_or_else(|| panic!("no handler takes `{request}`"));
        self.until("changes are used", |daemon| {
            daemon.registry.engine.borrow().settled()
        });
        answer
    }

    /// Execute a request that must succeed.
    pub fn must(&mut self, request: Request) {
        let text = request.to_string();
        self.ask(request).unwrap_or_else(|e| panic!("{text}: {e}"));
    }

    /// Create an interface and set it up.
    pub fn create(&mut self, name: &str, kind: Instance, mtu: Option<u32>) {
        self.must(Request::InterfaceCreate(InterfaceSpec {
            name: name.into(),
            kind: kind.named(name),
            mac: None,
            mtu,
        }));
        self.must(Admin::request(name, AdminState::Up).unwrap());
    }

    /// Patch two interfaces together, in both directions.
    pub fn patch(&mut self, a: &str, b: &str) {
        self.patch_one_way(a, b);
        self.patch_one_way(b, a);
    }

    /// Patch one interface to another, in one direction.
    pub fn patch_one_way(&mut self, rx: &str, tx: &str) {
        let classes = volley_object::classes();
        let class = classes.get("l2patch").expect("volley-l2 is registered");
        let patch = class.instance(vec![Some(rx.into()), Some(tx.into())]);
        self.must(Request::Set(patch.expect("names of interfaces")));
    }

    /// Run the control thread until `done`, for at most five seconds.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(5);
        while !done(self) {
            assert!(
                Instant::now() < end,
                "in five seconds it did not come to this: {what}; {:?}",
                self.registry
                    .interfaces
                    .borrow()
                    .iter()
                    .map(|i| (i.name.clone(), i.link.clone()))
                    .collect::<Vec<_>>()
            );
            self.registry.processes.run_manual();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reason why an interface has no link.
    pub fn link_fault(&self, name: &str) -> Option<String> {
        let all = self.registry.interfaces.borrow();
        all.by_name(name)
            .and_then(|i| i.link.reason().map(str::to_owned))
    }

    /// Counters of an interface.
    pub fn counts(&self, name: &str) -> IfCounts {
        let all = self.registry.interfaces.borrow();
        all.by_name(name)
            .map_or(IfCounts::default(), |i| all.counts(i))
    }

    /// A node's counter.
    pub fn counter(&self, node: &str, name: &str) -> u64 {
        let counters = self.registry.engine.borrow().counters();
        let found = counters
            .iter()
            .find(|c| c.node == node && c.info.name == name);
        found.map_or(0, |c| c.count)
    }

    /// Delete all interfaces and stop the worker; checks that no buffer is missing.
    pub fn stop(mut self) {
        let names: Vec<String> = {
            let all = self.registry.interfaces.borrow();
            all.iter().map(|i| i.name.clone()).collect()
        };
        for name in names {
            self.must(Request::InterfaceDelete { name });
        }
        let pool = self.pool.clone();
        self.until("every buffer came back", |_| pool.report().in_use() == 0);
        if let Some(running) = self.running.take() {
            drop(running.stop());
        }
        assert_eq!(self.pool.report().in_use(), 0, "every buffer came back");
    }
}
