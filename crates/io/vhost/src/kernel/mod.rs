//! Driver rings that the kernel serves: vhost-net copies packets between the rings and a queue of a tap, in a kernel
//! thread, so a packet costs no system call. The driver ends are those of the front end ([`crate::driver`]); a few ioctls
//! instead of a socket describe them to the kernel.
//!
//! - True on entry: the caller has a tap queue for each pair of rings, with headers of [`HEADER_LEN`] bytes.
//! - True on exit: when a [`Service`] is dropped, no worker and no kernel thread uses its rings any more.
//! - A fault while packets pass takes the interface down permanently, with a name, and removes its rings.

#[allow(unsafe_code)]
mod sys;

use crate::driver::{RingDirection, Shared, SplitDriver, Spot};
use crate::fault::{Fault, RingFault};
use crate::feature;
use crate::memory::Memory;
use crate::wire::{MAX_PAIRS, PortList, Ring, RingSlot, Running, VhostPort};
use std::cell::{OnceCell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use sys::{Device, Events};
use volley_graph::{GraphError, ProcessInfo, Watch};
use volley_iface::driver::DriverHost;
use volley_iface::{IfIdx, Link, Registry};
use volley_shm::Event;

/// The kernel's device.
pub use sys::PATH;

/// Name of the source that receives from such rings.
pub const INPUT: &str = "vhost-net-input";
/// Maximum number of queues.
pub const MAX_QUEUES: usize = MAX_PAIRS;
/// Bytes in front of each packet: the header with the number of buffers.
pub const HEADER_LEN: usize = crate::batch::HEADER;
/// Descriptors of each ring.
pub const RING_SIZE: u16 = 1024;
/// Interval of the check for faults.
const TICK: Duration = Duration::from_millis(50);
/// Required features: super-segments occupy many buffers.
const NEEDED: u64 = feature::VERSION_1 | feature::MRG_RXBUF;
const WANTED: u64 = NEEDED | feature::EVENT_IDX;

const INFO: ProcessInfo = ProcessInfo {
    name: "vhost-net",
    text: "Looks after rings that the kernel serves.",
};

/// Reason why the kernel does not serve rings.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The device does not exist.
    #[error("{PATH} is not on this machine: load it with `modprobe vhost_net`")]
    Missing,
    /// The device cannot be opened.
    #[error("{PATH} does not open ({0}): run volley as root, or give its user rights to it")]
    Closed(io::Error),
    /// The kernel is too old.
    #[error("this kernel's vhost-net does not know {0}")]
    Old(String),
    /// There are too many queues.
    #[error("vhost-net serves at most {MAX_QUEUES} queues of an interface, not {0}")]
    Queues(usize),
    /// A set-up step failed.
    #[error("vhost-net was not set up: {0}")]
    SetUp(#[from] io::Error),
}

/// Features common to this machine's kernel and the driver.
pub fn features() -> Result<u64, Refused> {
    use rustix::io::Errno;
    let none = [Errno::NOENT, Errno::NXIO, Errno::NODEV];
    let offered = sys::offered().map_err(|error| match error.raw_os_error() {
        Some(code) if none.iter().any(|e| e.raw_os_error() == code) => Refused::Missing,
        _ => Refused::Closed(error),
    })?;
    match NEEDED & !offered {
        0 => Ok(WANTED & offered),
        missing => Err(Refused::Old(feature::names(missing))),
    }
}

/// Rings that the kernel serves, before workers use them.
pub struct Rings {
    devices: Vec<Device>,
    /// Receive and transmit ring of each queue.
    ends: Vec<[Running; 2]>,
    fault: Event,
    features: u64,
}

impl Rings {
    /// New rings for these tap queues: a pair of rings and a device for each queue.
    pub fn new(queues: &[BorrowedFd<'_>]) -> Result<Rings, Refused> {
        if queues.len() > MAX_QUEUES {
            return Err(Refused::Queues(queues.len()));
        }
        let features = features()?;
        let shared = Shared::new(sys::RINGS * queues.len(), RING_SIZE)?;
        let memory = Arc::new(shared.memory);
        let mut rings = Rings {
            devices: Vec::new(),
            ends: Vec::new(),
            fault: Event::private()?,
            features,
        };
        for (queue, spots) in queues.iter().zip(shared.spots.chunks_exact(sys::RINGS)) {
            rings.add(*queue, spots, &memory)?;
        }
        Ok(rings)
    }

    fn add(
        &mut self,
        queue: BorrowedFd<'_>,
        spots: &[Spot],
        memory: &Arc<Memory>,
    ) -> io::Result<()> {
        let mut device = Device::new(memory.clone(), self.features)?;
        let [rx, tx] = [(0, RingDirection::Receive), (1, RingDirection::Send)]
            .map(|(ring, way)| self.end(&device, (ring, way), &spots[ring], memory));
        self.ends.push([rx?, tx?]);
        device.bind(queue)?;
        self.devices.push(device);
        Ok(())
    }

    /// Create one ring: the driver end with its kick and call eventfds.
    fn end(
        &self,
        device: &Device,
        (ring, way): (usize, RingDirection),
        spot: &Spot,
        memory: &Arc<Memory>,
    ) -> io::Result<Running> {
        let event_idx = self.features & feature::EVENT_IDX != 0;
        let layout = spot.layout(memory, RING_SIZE, event_idx, true);
        let layout = layout.ok_or_else(|| io::Error::other("the rings do not fit their memory"))?;
        // No call eventfd for transmit: used buffers are collected when one is needed.
        let call = match way {
            RingDirection::Receive => Some(Event::private()?),
            RingDirection::Send => None,
        };
        let kick = Event::private()?;
        let events = Events {
            kick: kick.as_fd(),
            call: call.as_ref().map(AsFd::as_fd),
            fault: self.fault.as_fd(),
        };
        device.describe(ring, &layout, &events)?;
        Ok(Running {
            ring: Ring::SplitDriver(SplitDriver::new(layout, spot, memory, way)),
            memory: memory.clone(),
            call: Some(Arc::new(kick)),
            alarm: call.map(Arc::new),
        })
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.ends.len()
    }

    /// Line for `show hardware-interfaces`.
    pub fn describe(&self) -> String {
        format!(
            "vhost-net serves {} queue(s), rings of {RING_SIZE} descriptors, features {}",
            self.devices.len(),
            feature::names(self.features)
        )
    }
}

/// Reason why an interface is down permanently; empty while it works.
pub type Ended = Rc<OnceCell<String>>;

struct Entry {
    wire: Arc<VhostPort>,
    fault: Event,
    ended: Ended,
}

/// All interfaces whose rings the kernel serves.
pub struct Kernel {
    host: DriverHost,
    entries: RefCell<Vec<Entry>>,
    roll: RefCell<PortList>,
    tick: OnceCell<Watch>,
}

impl Kernel {
    /// Register the source, without interfaces.
    pub fn register(registry: &mut Registry) -> Result<Rc<Kernel>, GraphError> {
        let list = crate::source(registry, INPUT)?;
        Ok(Rc::new(Kernel {
            host: registry.host(),
            entries: RefCell::default(),
            roll: RefCell::new(PortList::new(list)),
            tick: OnceCell::new(),
        }))
    }

    /// Let workers use the rings of a new interface. `rx` are the workers of its queues. `ended` receives the reason if
    /// the interface fails before it is deleted.
    pub fn start(
        self: &Rc<Self>,
        wire: Arc<VhostPort>,
        rings: Rings,
        rx: &[usize],
        ended: Ended,
    ) -> Service {
        let Rings {
            devices,
            ends,
            fault,
            ..
        } = rings;
        let queues = ends.len();
        for (queue, [receive, send]) in ends.into_iter().enumerate() {
            wire.places[queue].set(rx.get(queue).copied().unwrap_or(0));
            // No worker uses the interface yet, so no worker holds a slot.
            let _ = wire.rx[queue].put(Some(receive), Instant::now());
            let _ = wire.tx[queue].put(Some(send), Instant::now());
        }
        wire.offloads.store(true, Relaxed);
        wire.pairs.store(queues, Relaxed);
        let (to, worker_set) = (wire.clone(), self.host.engine.borrow().worker_set().clone());
        self.host
            .set_queue_mover(wire.interface, move |queue, worker| {
                if let Some(place) = to.places.get(queue) {
                    place.request(worker, &worker_set);
                }
            });
        self.entries.borrow_mut().push(Entry {
            wire: wire.clone(),
            fault,
            ended,
        });
        self.publish();
        self.tick.get_or_init(|| self.look_after());
        Service {
            kernel: Rc::downgrade(self),
            wire,
            _devices: devices,
        }
    }

    /// Publish the list of interfaces to the workers.
    fn publish(&self) {
        let wires = self
            .entries
            .borrow()
            .iter()
            .map(|e| e.wire.clone())
            .collect();
        self.roll.borrow_mut().show(wires);
        self.host.wake();
    }

    fn look_after(self: &Rc<Self>) -> Watch {
        let me = Rc::downgrade(self);
        let look = move || {
            me.upgrade()?.look();
            Some(TICK)
        };
        self.host.processes.every(INFO, look)
    }

    /// Take interfaces with a fault down.
    fn look(&self) {
        self.roll.borrow_mut().reap();
        // A link callback may call this module again, so release the borrow first.
        let broken: Vec<_> = {
            let entries = self.entries.borrow();
            let broken = |e: &Entry| Some((e.wire.clone(), e.ended.clone(), e.broken()?));
            entries.iter().filter_map(broken).collect()
        };
        for (wire, ended, why) in broken {
            wire.clear();
            let why = ended.get_or_init(|| why.to_string());
            // An existing reason takes precedence: vhost-net also fails when the tap was deleted.
            if self.is_up(wire.interface) {
                self.host.set_link(wire.interface, Link::down(why));
            }
        }
    }

    fn is_up(&self, index: IfIdx) -> bool {
        let interfaces = self.host.interfaces.borrow();
        interfaces.get(index).is_some_and(|i| i.link == Link::Up)
    }
}

impl Entry {
    fn broken(&self) -> Option<Fault> {
        let by_kernel = || {
            let text = "the kernel's vhost-net could not go on with a ring";
            self.fault
                .clear()
                .then(|| Fault::new("vhost-net-error", text))
        };
        let found = self.wire.take_fault().map(|fault: RingFault| fault.into());
        found.or_else(by_kernel)
    }
}

/// Ring counters for `show hardware-interfaces`.
pub fn details(wire: &VhostPort) -> Vec<String> {
    let line = |way: &str, queue: usize, lane: &RingSlot| {
        lane.is_live().then(|| {
            let (packets, kicks) = (&lane.counts.packets, &lane.counts.notifications_sent);
            format!(
                "{way} ring {queue}: {} packets, the kernel was woken {} times",
                packets.load(Relaxed),
                kicks.load(Relaxed)
            )
        })
    };
    let queues = 0..wire.pairs.load(Relaxed).min(MAX_PAIRS);
    let both = queues.flat_map(|q| [line("rx", q, &wire.rx[q]), line("tx", q, &wire.tx[q])]);
    both.flatten().collect()
}

/// An interface with rings in service, until this value is dropped.
pub struct Service {
    kernel: Weak<Kernel>,
    wire: Arc<VhostPort>,
    /// Fields are dropped after [`Drop::drop`], so devices are released after the rings were removed.
    _devices: Vec<Device>,
}

impl Service {
    /// Index of the interface.
    pub fn interface(&self) -> IfIdx {
        self.wire.interface
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.wire.clear();
        if let Some(kernel) = self.kernel.upgrade() {
            let is_other = |entry: &Entry| !Arc::ptr_eq(&entry.wire, &self.wire);
            kernel.entries.borrow_mut().retain(is_other);
            kernel.publish();
        }
    }
}
