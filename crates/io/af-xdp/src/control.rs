//! Opens XDP sockets on interfaces of the kernel, attaches the XDP program, and removes both.

use crate::model::{XdpCopy, XdpInterface, XdpMode};
use crate::queue::{XdpRx, XdpTx};
use crate::ring::{self, RxHalf, TxHalf, Wanted};
use crate::sys;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_graph::GraphError;
use volley_graph::buf::Pool;
use volley_iface::Registry;
use volley_iface::driver::Caps;
use volley_linux::{
    Driver, KernelLink, LinuxError, Namespace, Opened, Opener, Sharers, check_present,
};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};

/// Name of the kind.
pub const KIND: &str = "af_xdp";
const NEEDS: &str = "cap_net_admin,cap_net_raw,cap_bpf";
/// Maximum wait for a busy queue whose old socket a worker has not yet returned.
const PATIENCE: Duration = Duration::from_millis(200);

/// The request handler of the interface kind.
pub struct XdpHandler {
    driver: Driver<XdpRx>,
    pool: Arc<Pool>,
}

/// Resources opened on an interface.
struct Sockets {
    halves: Vec<(RxHalf, TxHalf)>,
    link: OwnedFd,
    native: bool,
}

/// Open a socket on each requested queue, or on all queues.
fn sockets(
    pool: &Arc<Pool>,
    spec: &XdpInterface,
    link: &KernelLink,
) -> io::Result<Vec<(RxHalf, TxHalf)>> {
    let copy = match spec.copy {
        XdpCopy::Auto => 0,
        XdpCopy::Copy => libc::XDP_COPY,
        XdpCopy::Zero => libc::XDP_ZEROCOPY,
    };
    let mut halves = Vec::new();
    for queue in 0..spec.queues.unwrap_or(link.rx_queues) {
        let wanted = Wanted {
            interface: link.index,
            queue,
            ring: spec.ring,
            copy,
        };
        match ring::open(pool, wanted) {
            Ok(both) => halves.push(both),
            // The kernel's number of queues includes unused ones.
            Err(e)
                if e.raw_os_error() == Some(libc::EINVAL) && queue > 0 && spec.queues.is_none() =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(halves)
}

fn attach(
    program: &OwnedFd,
    spec: &XdpInterface,
    link: &KernelLink,
) -> io::Result<(OwnedFd, bool)> {
    let generic = || sys::attach(program, link.index, false).map(|fd| (fd, false));
    if spec.mode == XdpMode::Generic {
        return generic();
    }
    match sys::attach(program, link.index, true) {
        Err(error) if spec.mode == XdpMode::Auto => generic().map_err(|_| error),
        other => other.map(|fd| (fd, true)),
    }
}

/// Open sockets and program, in this thread's namespace.
fn open(pool: &Arc<Pool>, spec: &XdpInterface, link: &KernelLink) -> Result<Sockets, LinuxError> {
    let failed = |what| move |error| LinuxError::of(what, NEEDS, error);
    let halves = sockets(pool, spec, link).map_err(|error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => LinuxError::Unsupported(
            "this kernel has no XDP sockets (CONFIG_XDP_SOCKETS): use host-interface instead"
                .into(),
        ),
        Some(libc::EOPNOTSUPP) if spec.copy == XdpCopy::Zero => LinuxError::Unsupported(format!(
            "the driver of {} has no zero-copy: leave zero-copy out",
            link.name
        )),
        Some(libc::EINVAL) => LinuxError::Unsupported(format!(
            "{} has fewer queues than {}: ask for fewer",
            link.name,
            spec.queues.unwrap_or(1)
        )),
        _ => failed("opening an XDP socket")(error),
    })?;
    let map = sys::socket_map(halves.len() as u32).map_err(failed("making an XDP map"))?;
    for (queue, (rx, _)) in halves.iter().enumerate() {
        let put = sys::map_queue(&map, queue as u32, rx.socket());
        put.map_err(failed("filling an XDP map"))?;
    }
    let program = sys::load(&map).map_err(failed("loading an XDP program"))?;
    let (fd, native) = attach(&program, spec, link).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => LinuxError::Unsupported(format!(
            "{0} has an XDP program already: `ip link set dev {0} xdp off` takes it away",
            link.name
        )),
        Some(libc::EOPNOTSUPP) => LinuxError::Unsupported(format!(
            "the driver of {} runs no XDP programs: leave native out",
            link.name
        )),
        _ => failed("attaching an XDP program")(e),
    })?;
    Ok(Sockets {
        halves,
        link: fd,
        native,
    })
}

fn details(spec: &XdpInterface, link: &KernelLink, opened: &Sockets) -> Vec<String> {
    let namespace = Namespace::new(spec.namespace.as_deref());
    let mode = if opened.native { "native" } else { "generic" };
    let zero = opened.halves.iter().all(|(_, tx)| tx.is_zero_copy());
    let copy = if zero {
        "zero-copy"
    } else {
        "copied once, by the kernel"
    };
    vec![
        format!("kernel interface {}{}", link.name, namespace.place()),
        format!(
            "XDP {mode}, {} queue(s) of {} entries, packets {copy}, UMEM is the buffer arena",
            opened.halves.len(),
            spec.ring
        ),
    ]
}

/// Opens XDP sockets on the kernel's interface.
struct XdpOpener {
    spec: XdpInterface,
    pool: Arc<Pool>,
    reap: Rc<dyn Fn()>,
    /// Maximum wait for a busy queue; after it, opening is tried again periodically, without waiting.
    patience: Duration,
}

impl Opener for XdpOpener {
    type Rx = XdpRx;
    type Tx = XdpTx;

    /// Open, and wait a short time for a queue that Volley has just released.
    fn open(
        &mut self,
        namespace: &Namespace,
        link: &KernelLink,
        _sharers: Sharers,
    ) -> Result<Opened<XdpRx, XdpTx>, LinuxError> {
        let end = Instant::now() + std::mem::take(&mut self.patience);
        let (pool, spec) = (&self.pool, &self.spec);
        let sockets = loop {
            (self.reap)();
            let opened = namespace.run(|| open(pool, spec, link));
            let busy = matches!(&opened, Err(LinuxError::System(_, e)) if e.raw_os_error() == Some(libc::EBUSY));
            if !busy || Instant::now() > end {
                break opened?;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let details = details(spec, link, &sockets);
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for (from, to) in sockets.halves {
            rx.push(XdpRx::new(from, link.is_virtual));
            tx.push(XdpTx::new(to));
        }
        Ok(Opened {
            rx,
            tx,
            details,
            keep: Box::new(sockets.link),
        })
    }
}

impl XdpHandler {
    /// Register the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let pool = registry.engine.borrow().pool().clone();
        let driver = Driver::register(registry)?;
        Ok(XdpHandler { driver, pool })
    }

    fn create(&mut self, spec: &InterfaceSpec, xdp: &XdpInterface) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let opener = XdpOpener {
            spec: xdp.clone(),
            pool: self.pool.clone(),
            reap: self.driver.reaper(),
            patience: PATIENCE,
        };
        let wanted = (&*xdp.host, Namespace::new(xdp.namespace.as_deref()));
        self.driver.bind(spec, (KIND, Caps::NONE), wanted, opener)?;
        Ok(Applied::one().named(&spec.name))
    }
}

impl Handler for XdpHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => Some(self.create(spec, &spec.kind_as()?)),
            Request::InterfaceDelete { name } => self.driver.delete(name),
            _ => None,
        }
    }

    fn ready(&mut self, request: &Request) -> Option<Result<(), ModelError>> {
        let Request::InterfaceCreate(spec) = request else {
            return None;
        };
        let xdp: XdpInterface = spec.kind_as()?;
        let namespace = Namespace::new(xdp.namespace.as_deref());
        let wanted = (&*xdp.host, &namespace);
        Some(check_present(&spec.name, wanted, xdp.wait))
    }
}
