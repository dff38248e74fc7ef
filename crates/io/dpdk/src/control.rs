//! Creates ports, follows their links and counters, and deletes them.
//!
//! A deleted port is closed as soon as no worker has its queues: its receive queues return by the queue migration, its
//! transmit queue is freed with its node. Until then its device cannot be used again.

use crate::eal::{self, EalError};
use crate::model::{DpdkEal, DpdkInterface};
use crate::node::dpdk_input::DpdkInput;
use crate::node::dpdk_tx::DpdkTx;
use crate::place::{MOST, Placed, Shared};
use crate::ring::{Port, RxQueue, Store, TxQueue};
use crate::sys::{self, Conf, Info, PortLink, RawPort, Refused, Stats};
use crate::{KIND, show};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_graph::buf::{Cache, Pool};
use volley_graph::{GraphError, ProcessInfo, Source, Watch};
use volley_iface::driver::{Caps, DriverHost, Port as DriverPort, PortRefusal};
use volley_iface::{AdminState, RxMode, Switch};
use volley_iface::{IfIdx, Link, NewInterface, QueueMigration, QueueTarget, Registry, TxQueuePool};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};

/// Interval for checking links, counters and returned queues.
const TICK: Duration = Duration::from_millis(20);
/// Maximum time that a new port waits for one that is being closed.
const PATIENCE: Duration = Duration::from_secs(2);
const MTU: u32 = 1500;

const INFO: ProcessInfo = ProcessInfo {
    name: "dpdk-process",
    text: "Links and counters of DPDK's ports; closes those that are deleted.",
};

/// Reason why a port cannot be created.
#[derive(Debug, thiserror::Error)]
enum PortError {
    #[error(transparent)]
    Eal(#[from] EalError),
    #[error("DPDK has no such device: {0}")]
    Probe(Refused),
    #[error("the device {0} is in use by another interface: delete that first")]
    InUse(String),
    #[error("{0} cannot use Volley's packet buffers: {1}")]
    Driver(String, &'static str),
    #[error("{driver} has at most {most} {way} queues, and {asked} are requested")]
    Queues {
        driver: String,
        way: &'static str,
        most: u16,
        asked: u32,
    },
    #[error("its MTU is {asked}, and {driver} takes {least} to {most}")]
    Mtu {
        driver: String,
        asked: u32,
        least: u16,
        most: u16,
    },
    #[error("it needs {0} packet buffers, and fewer are free: raise `buffers` in [engine]")]
    Buffers(usize),
    #[error("DPDK refuses {0}: {1}")]
    Refused(&'static str, Refused),
}

/// One interface.
struct Entry {
    index: IfIdx,
    device: String,
    shared: Arc<Shared>,
    port: Arc<Port>,
    lost: u64,
}

/// A deleted port that is not yet closed.
struct Closing {
    device: String,
    port: Arc<Port>,
}

/// All interfaces of the kind.
struct Ports {
    host: DriverHost,
    pool: Arc<Pool>,
    migration: Arc<QueueMigration<Placed>>,
    settings: DpdkEal,
    entries: Vec<Entry>,
    closing: Vec<Closing>,
    /// Created with the first port.
    store: Option<Arc<Store>>,
    cache: Option<Cache>,
    tick: Option<Watch>,
}

/// The request handler of the interface kind.
pub struct DpdkHandler(Rc<RefCell<Ports>>);

/// Properties of a new port.
struct Made {
    port: Port,
    info: Info,
    conf: Conf,
    mac: [u8; 6],
    /// The device's original MAC address.
    factory: [u8; 6],
    caps: Caps,
}

impl DpdkHandler {
    /// Register the receive node; DPDK does not start before the first port.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let host = registry.host();
        let mut engine = host.engine.borrow_mut();
        let migration = QueueMigration::new(engine.settings().workers, MOST);
        let (table, mine) = (registry.table(), migration.clone());
        engine.add_source(DpdkInput::NAME, move |worker| {
            DpdkInput::new(worker, table.clone(), mine.clone())
        })?;
        let pool = engine.pool().clone();
        drop(engine);
        Ok(DpdkHandler(Rc::new(RefCell::new(Ports {
            host,
            pool,
            migration,
            settings: DpdkEal::default(),
            entries: Vec::new(),
            closing: Vec::new(),
            store: None,
            cache: None,
            tick: None,
        }))))
    }

    /// Register the ports as the owner of the objects of this crate.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let ports = DpdkHandler(self.0.clone());
        registry.own(move |_, eal: Option<DpdkEal>| ports.set(&eal.unwrap_or_default()));
    }

    fn create(&self, spec: &InterfaceSpec, dpdk: &DpdkInterface) -> Result<Applied, ModelError> {
        let mut ports = self.0.borrow_mut();
        ports.host.check_free(&spec.name)?;
        let made = ports.make(spec, dpdk);
        let made = made.map_err(|e| ModelError::invalid(format!("interface {}", spec.name), e))?;
        ports.attach(spec, dpdk, made)?;
        if ports.tick.is_none() {
            let me = Rc::downgrade(&self.0);
            let body = move || {
                let ports = me.upgrade()?;
                if let Ok(mut ports) = ports.try_borrow_mut() {
                    ports.look();
                }
                Some(TICK)
            };
            let tick = ports.host.processes.every(INFO, body);
            ports.tick = Some(tick);
        }
        Ok(Applied::one().named(&spec.name))
    }

    fn set(&self, eal: &DpdkEal) -> Result<Applied, ModelError> {
        let mut ports = self.0.borrow_mut();
        if ports.settings == *eal {
            return Ok(Applied::nothing());
        }
        eal::check_changeable().map_err(|e| ModelError::invalid("set dpdk eal", e))?;
        ports.settings = eal.clone();
        Ok(Applied::one())
    }
}

/// The capabilities of the port that are to be used.
fn used(info: &Info, dpdk: &DpdkInterface) -> u16 {
    let offloads = match dpdk.offload {
        // With DPDK 22.11, `net_tap` loses most super-segments.
        true if info.driver() == "net_tap" => sys::CAN_CHECKSUM,
        true => sys::CAN_CHECKSUM | sys::CAN_TSO,
        false => 0,
    };
    (info.can & (offloads | sys::CAN_SEGMENTS | sys::CAN_SCATTER)) as u16
}

fn caps(used: u16) -> Caps {
    let tso = u32::from(used) & sys::CAN_TSO != 0;
    Caps {
        checksum: u32::from(used) & sys::CAN_CHECKSUM != 0,
        tcp4: tso,
        tcp6: tso,
        udp: false,
    }
}

/// Refuse drivers that use their own packet locations instead of the mbuf's.
fn check_driver(name: &str, device: &str) -> Result<(), PortError> {
    let bad = |why| Err(PortError::Driver(name.to_owned(), why));
    if name.starts_with("net_af_xdp") {
        bad("it wants them behind its mbufs; use `create interface af_xdp` instead")
    } else if name.starts_with("net_memif") && device.contains("zero-copy=yes") {
        bad("its zero-copy mode wants DPDK's own memory; leave zero-copy=yes out")
    } else {
        Ok(())
    }
}

/// Whether the port sends packets of several buffers. These virtual ports do, but do not report it.
fn takes_chains(info: &Info, conf: &Conf) -> bool {
    let silent = ["net_pcap", "net_memif", "net_ring", "net_null", "net_tap"];
    u32::from(conf.used) & sys::CAN_SEGMENTS != 0 || silent.contains(&info.driver().as_str())
}

fn check(info: &Info, dpdk: &DpdkInterface, workers: usize, mtu: u32) -> Result<(), PortError> {
    let driver = info.driver();
    let asked = [
        ("receive", info.max_rx_queues, dpdk.queues),
        ("transmit", info.max_tx_queues, workers.min(1) as u32),
    ];
    for (way, most, asked) in asked {
        if asked > u32::from(most) {
            return Err(PortError::Queues {
                driver,
                way,
                most,
                asked,
            });
        }
    }
    let (least, most) = (info.min_mtu, info.max_mtu);
    if mtu < u32::from(least) || mtu > u32::from(most) {
        return Err(PortError::Mtu {
            driver,
            asked: mtu,
            least,
            most,
        });
    }
    Ok(())
}

impl Ports {
    fn workers(&self) -> usize {
        self.host.engine.borrow().worker_set().count()
    }

    /// The buffer store; starts DPDK if necessary.
    fn store(&mut self) -> Result<Arc<Store>, PortError> {
        eal::start(&self.settings, self.pool.total())?;
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let size = self.host.engine.borrow().settings().vector_size;
        let store = Store::new(&self.pool, size);
        let store = store.map_err(|e| PortError::Refused("memory for packet headers", e))?;
        self.cache = Some(self.pool.cache());
        self.store = Some(store.clone());
        Ok(store)
    }

    /// Wait up to [`PATIENCE`] until workers have released deleted ports.
    fn settle(&mut self, device: &str) {
        let end = Instant::now() + PATIENCE;
        self.reap();
        while self.closing.iter().any(|c| c.device == device) && Instant::now() < end {
            self.host.wake();
            std::thread::sleep(Duration::from_millis(1));
            self.reap();
        }
    }

    /// Create and start a port; on failure nothing remains of it.
    fn make(&mut self, spec: &InterfaceSpec, dpdk: &DpdkInterface) -> Result<Made, PortError> {
        let store = self.store()?;
        let (device, name) = (dpdk.argument(), dpdk.device());
        self.settle(&name);
        check_driver(&name, &device)?;
        let raw = RawPort::probe(&device).map_err(|e| match e.is_there() {
            true => PortError::InUse(name),
            false => PortError::Probe(e),
        })?;
        let refused = |what| move |e| PortError::Refused(what, e);
        let info = raw.info().map_err(refused("to describe the port"))?;
        let mtu = spec.mtu.unwrap_or(MTU.min(info.max_mtu.into()));
        check(&info, dpdk, self.workers(), mtu)?;
        let mut conf = Conf {
            rx_queues: dpdk.queues as u16,
            // Workers share queues if the port has fewer.
            tx_queues: (self.workers() as u16).min(info.max_tx_queues),
            rx_desc: dpdk.rx_desc as u16,
            tx_desc: dpdk.tx_desc as u16,
            mtu: mtu as u16,
            used: used(&info, dpdk),
        };
        // Many drivers take a buffer for each descriptor before they start.
        let room = (dpdk.queues * dpdk.rx_desc) as usize;
        if let Some(cache) = &mut self.cache
            && !store.fill(cache, room)
        {
            return Err(PortError::Buffers(room));
        }
        let port = Port::open(raw, &store, &mut conf).map_err(refused("the port's settings"))?;
        let factory = port.raw().mac().map_err(refused("its MAC address"))?;
        if let Some(mac) = spec.mac {
            let set = port.raw().set_mac(mac.0);
            set.map_err(refused("the MAC address"))?;
        }
        let mac = port.raw().mac().map_err(refused("its MAC address"))?;
        Ok(Made {
            port,
            info,
            conf,
            mac,
            factory,
            caps: caps(conf.used),
        })
    }

    fn attach(
        &mut self,
        spec: &InterfaceSpec,
        dpdk: &DpdkInterface,
        made: Made,
    ) -> Result<(), ModelError> {
        let conf = made.conf;
        let placed = self.host.assign_workers(dpdk.queues as usize);
        let port = Arc::new(made.port);
        let shared = Arc::new(Shared::default());
        let size = self.host.engine.borrow().settings().vector_size;
        let new = NewInterface {
            mac: Some(made.mac),
            mtu: conf.mtu.into(),
            default_mtu: MTU,
            details: show::fixed(&made.info, &conf, dpdk, port.number()),
            link: link_of(port.raw().link()),
            caps: made.caps,
            rx_node: DpdkInput::NAME,
            rx_queues: placed.clone(),
            tx_queues: conf.tx_queues.into(),
            port: Box::new(Side {
                port: port.clone(),
                factory: made.factory,
            }),
            ..NewInterface::new(&spec.name, KIND)
        };
        let table = self.host.interfaces.borrow().table().clone();
        let queues = (0..conf.tx_queues).map(|q| TxQueue::new(port.clone(), q, size));
        let (queues, hand) = (TxQueuePool::new(queues), shared.clone());
        let chains = takes_chains(&made.info, &conf);
        let index = self.host.attach(new, move |worker, index| {
            hand.set_interface(index.0);
            DpdkTx::new(worker, table.clone(), index.0, queues.clone(), chains, size)
        })?;
        let put = |(queue, worker): (u16, usize)| {
            let (shared, queue) = (shared.clone(), RxQueue::new(port.clone(), queue, size));
            // There are more slots than ports have queues; a queue beyond them is not polled.
            self.migration.assign(worker, Placed { shared, queue })
        };
        let ways: Vec<Arc<QueueTarget>> = (0..conf.rx_queues).zip(placed).map(put).collect();
        let migration = self.migration.clone();
        self.host.set_queue_mover(index, move |queue, worker| {
            if let Some(way) = ways.get(queue) {
                migration.migrate(way, worker);
            }
        });
        self.host.wake();
        self.entries.push(Entry {
            index,
            device: dpdk.device(),
            shared,
            port,
            lost: 0,
        });
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.host.index(name).ok()?;
        let at = self.entries.iter().position(|e| e.index == index)?;
        if let Err(error) = self.host.detach(index) {
            return Some(Err(error));
        }
        let Entry {
            device,
            shared,
            port,
            ..
        } = self.entries.remove(at);
        shared.set_gone();
        self.host.wake();
        self.closing.push(Closing { device, port });
        self.reap();
        Some(Ok(Applied::one()))
    }

    /// Close ports that no worker uses any more.
    fn reap(&mut self) {
        self.migration.collect_retired();
        let before = self.closing.len();
        self.closing.retain(|c| Arc::strong_count(&c.port) > 1);
        // Without ports no worker maintains the level of the store.
        let idle = self.entries.is_empty() && self.closing.is_empty();
        if let (true, Some(store), Some(cache)) = (idle, &self.store, &mut self.cache)
            && (before > 0 || store.level() > 0)
        {
            store.empty(cache);
        }
    }

    /// Check all ports.
    fn look(&mut self) {
        if !self.closing.is_empty() {
            // The engine frees what workers have replaced when `settled` is called.
            let _ = self.host.engine.borrow().settled();
        }
        self.reap();
        for entry in &mut self.entries {
            let raw = entry.port.raw();
            let link = link_of(raw.link());
            let lost = raw.stats().map_or(entry.lost, |s| lost(&s));
            entry.shared.add_lost(lost.saturating_sub(entry.lost));
            entry.lost = lost;
            let same = {
                let all = self.host.interfaces.borrow();
                all.get(entry.index).is_some_and(|i| i.link == link)
            };
            if !same {
                self.host.set_link(entry.index, link);
            }
        }
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        self.entries.iter().for_each(|e| e.shared.set_gone());
    }
}

fn lost(stats: &Stats) -> u64 {
    stats.rx_missed + stats.rx_errors + stats.rx_no_buffer
}

fn link_of(link: Result<PortLink, Refused>) -> Link {
    match link {
        Ok(link) if link.is_up() => Link::Up,
        Ok(_) => Link::down("the port has no link"),
        Err(why) => Link::down(format!("the port does not tell its link: {why}")),
    }
}

/// The driver's side of an interface.
struct Side {
    port: Arc<Port>,
    /// The device's original MAC address.
    factory: [u8; 6],
}

fn refusal(error: Refused) -> PortRefusal {
    match error.is_unsupported() {
        true => PortRefusal::new("the port's driver cannot do that"),
        false => PortRefusal::new(error),
    }
}

impl DriverPort for Side {
    fn set_admin(&mut self, state: AdminState) -> Result<(), PortRefusal> {
        // Ports that cannot change their link are always up; the graph drops their packets.
        match self.port.raw().set_link(state == AdminState::Up) {
            Err(error) if !error.is_unsupported() => Err(refusal(error)),
            _ => Ok(()),
        }
    }

    fn set_mac(&mut self, mac: [u8; 6]) -> Result<(), PortRefusal> {
        self.port.raw().set_mac(mac).map_err(refusal)
    }

    fn unset_mac(&mut self, _made_up: [u8; 6]) -> Result<[u8; 6], PortRefusal> {
        self.set_mac(self.factory)?;
        Ok(self.factory)
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<(), PortRefusal> {
        let mtu = u16::try_from(mtu).map_err(PortRefusal::new)?;
        self.port.raw().set_mtu(mtu).map_err(refusal)
    }

    fn set_promiscuous(&mut self, on: Switch) -> Result<(), PortRefusal> {
        let set = self.port.raw().set_promiscuous(on == Switch::On);
        set.map_err(refusal)
    }

    fn set_rx_mode(&mut self, mode: RxMode) -> Result<(), PortRefusal> {
        match mode {
            RxMode::Interrupt => Err(PortRefusal::new(
                "ports of DPDK are polled: use adaptive, which looks twice in a millisecond when nothing comes",
            )),
            RxMode::Polling | RxMode::Adaptive => Ok(()),
        }
    }

    fn speed_bps(&self) -> Option<u64> {
        let link = self.port.raw().link().ok()?;
        let mbps = Some(link.mbps).filter(|mbps| ![0, u32::MAX].contains(mbps));
        mbps.map(|mbps| u64::from(mbps) * 1_000_000)
    }

    fn details(&self) -> Vec<String> {
        show::now(&self.port)
    }
}

impl Handler for DpdkHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => Some(self.create(spec, &spec.kind_as()?)),
            Request::InterfaceDelete { name } => self.0.borrow_mut().delete(name),
            _ => None,
        }
    }
}
