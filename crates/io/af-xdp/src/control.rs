//! Opens XDP sockets on interfaces of the kernel, attaches the program, and takes both away.

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
use volley_iface::driver::{Port, Refusal};
use volley_iface::{NewInterface, Registry};
use volley_linux::{Driver, Link, Links, LinuxError, Namespace, Standing};
use volley_model::{
    AdminState, Applied, Handler, InterfaceKind, InterfaceSpec, ModelError, Query, Reply, Request,
    XdpCopy, XdpMode, XdpSpec,
};

/// Name of the kind.
pub const KIND: &str = "af_xdp";
const NEEDS: &str = "cap_net_admin,cap_net_raw,cap_bpf";
/// How long a queue may be busy because a worker has not yet given its old socket back.
const PATIENCE: Duration = Duration::from_millis(200);

/// Carries out requests about interfaces of the kind.
pub struct XdpHandler {
    driver: Driver<XdpRx>,
    pool: Arc<Pool>,
}

/// What was opened on an interface.
struct Opened {
    halves: Vec<(RxHalf, TxHalf)>,
    link: OwnedFd,
    native: bool,
}

/// Open a socket on each queue: on those asked for, or on as many as there are.
fn sockets(pool: &Arc<Pool>, spec: &XdpSpec, link: &Link) -> io::Result<Vec<(RxHalf, TxHalf)>> {
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
            // The kernel counts queues that are not in use too.
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

fn attach(program: &OwnedFd, spec: &XdpSpec, link: &Link) -> io::Result<(OwnedFd, bool)> {
    let generic = || sys::attach(program, link.index, false).map(|fd| (fd, false));
    if spec.mode == XdpMode::Generic {
        return generic();
    }
    match sys::attach(program, link.index, true) {
        Err(error) if spec.mode == XdpMode::Auto => generic().map_err(|_| error),
        other => other.map(|fd| (fd, true)),
    }
}

/// Open everything, in this thread's namespace.
fn open(pool: &Arc<Pool>, spec: &XdpSpec, link: &Link) -> Result<Opened, LinuxError> {
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
    Ok(Opened {
        halves,
        link: fd,
        native,
    })
}

/// Setting our interface up sets the kernel's up.
struct XdpPort {
    links: Rc<Links>,
    link: u32,
}

impl Port for XdpPort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), Refusal> {
        match state {
            AdminState::Up => self.links.set_up(self.link, true).map_err(Refusal::new),
            AdminState::Down => Ok(()),
        }
    }
}

fn details(spec: &XdpSpec, link: &Link, opened: &Opened) -> Vec<String> {
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

impl XdpHandler {
    /// Bring in the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let pool = registry.engine.borrow().pool().clone();
        let driver = Driver::register(registry)?;
        Ok(XdpHandler { driver, pool })
    }

    /// Open, and wait a little for a queue that was ours a moment ago.
    fn open(
        &self,
        namespace: &Namespace,
        spec: &XdpSpec,
        link: &Link,
    ) -> Result<Opened, LinuxError> {
        let end = Instant::now() + PATIENCE;
        loop {
            self.driver.reap();
            let pool = &self.pool;
            let opened = namespace.run(|| open(pool, spec, link));
            let busy = matches!(&opened, Err(LinuxError::System(_, e)) if e.raw_os_error() == Some(libc::EBUSY));
            if !busy || Instant::now() > end {
                return opened;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn create(&mut self, spec: &InterfaceSpec, xdp: &XdpSpec) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let about = |error: LinuxError| error.about(&spec.name);
        let namespace = Namespace::new(xdp.namespace.as_deref());
        let links = Rc::new(Links::open(&namespace).map_err(about)?);
        let link = links.by_name(&xdp.host).map_err(about)?;
        let Some(mac) = link.mac else {
            return Err(about(LinuxError::NotEthernet(xdp.host.clone())));
        };
        let opened = self.open(&namespace, xdp, &link).map_err(about)?;
        let port = XdpPort {
            links: links.clone(),
            link: link.index,
        };
        let new = NewInterface {
            mac: Some(spec.mac.map_or(mac, |m| m.0)),
            mtu: spec.mtu.unwrap_or(link.mtu),
            details: details(xdp, &link, &opened),
            port: Box::new(port),
            ..NewInterface::new(&spec.name, KIND)
        };
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for (from, to) in opened.halves {
            rx.push(XdpRx::new(from, link.is_virtual));
            tx.push(XdpTx::new(to));
        }
        let standing = Standing::new(new, links, link, Box::new(opened.link));
        self.driver.attach(standing, rx, tx)?;
        Ok(Applied::one().named(&spec.name))
    }
}

impl Handler for XdpHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => match &spec.kind {
                InterfaceKind::AfXdp(xdp) => Some(self.create(spec, xdp)),
                _ => None,
            },
            Request::InterfaceDelete { name } => self.driver.delete(name),
            _ => None,
        }
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
