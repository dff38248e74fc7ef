//! Objects of the FIB: settings of the router and of interfaces.

use crate::family::Af;
use crate::route::Route;
use crate::route_file::RouteFile;
use crate::show::{ShowFib, ShowRouteCounters, ShowTables};
use crate::source::Fib;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use volley_model::{Applied, IfAddress, Mac, Owners, Prefix, key_value};
use volley_object::{Class, DefinitionError, FieldError, FieldType, Object, Query, refuse};

/// Sharing of a route's flows among its paths (multipath).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Object)]
#[object(class = "multipath", file = "[multipath]", check = Multipath::check)]
#[object(set = "set ip multipath {resilient@resilient=on | buckets <buckets>}")]
#[object(example = "set ip multipath resilient buckets 512")]
pub struct Multipath {
    /// Move only the flows of a path that goes; when the path returns, move as few flows as possible to it.
    #[object(default = false)]
    pub resilient: bool,
    /// Buckets of a resilient route, a power of two.
    #[object(default = 256, range = 16u32..=4096)]
    pub buckets: u32,
}

impl Multipath {
    fn check(&self) -> Result<(), FieldError> {
        match self.buckets.is_power_of_two() {
            true => Ok(()),
            false => refuse(
                "buckets",
                format!("must be a power of two, not '{}'", self.buckets),
            ),
        }
    }
}

/// Directed broadcasts: packets from other networks to the broadcast address of a network of the interface are sent to all
/// hosts of that network (RFC 2644).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "directed_broadcast", file = "interface.directed_broadcast")]
#[object(set = "set interface ip directed-broadcast <interface> <enabled>")]
#[object(example = "set interface ip directed-broadcast pg1 on")]
pub struct DirectedBroadcast {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Send directed broadcasts.
    #[object(default = false)]
    pub enabled: bool,
}

/// Static neighbour: MAC address of a host on the link of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "neighbor", file = "[[neighbor]]", check = StaticNeighbor::check)]
#[object(group("set ip", "Static neighbours and settings of IPv4."))]
#[object(group("set ip6", "Static neighbours and settings of IPv6."))]
#[object(group("set ip neighbor", "Add and remove static IPv4 neighbours."))]
#[object(group("set ip6 neighbor", "Add and remove static IPv6 neighbours."))]
#[object(formerly = "neighbor-add")]
#[object(set = "set (ip | ip6) neighbor [static] <interface> <address> <mac> [static]")]
#[object(unset = "set (ip | ip6) neighbor del <interface> <address>")]
#[object(unset = "set (ip | ip6) neighbor del <interface> <address> <mac>")]
#[object(example = "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:02")]
pub struct StaticNeighbor {
    /// Interface on whose link the neighbour is.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP address of the neighbour.
    #[object(key)]
    pub address: IpAddr,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

impl StaticNeighbor {
    fn check(&self) -> Result<(), FieldError> {
        let addr = self.address;
        let broadcast = matches!(addr, IpAddr::V4(a) if a.is_broadcast());
        if addr.is_unspecified() || addr.is_multicast() || broadcast {
            let why = "must be the address of one host, not zero, multicast or broadcast:";
            return refuse("address", format!("{why} {addr}"));
        }
        if let Some(why) = self.mac.not_of_one_host() {
            return refuse("mac", format!("must be {why}, not {}", self.mac));
        }
        Ok(())
    }
}

/// IP table (VRF): routes of one IP version that packets of some interfaces are looked up in. Table 0 is always there.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "table", file = "[[table]]")]
#[object(group("ip table", "Add and remove IPv4 tables (VRFs)."))]
#[object(group("ip6 table", "Add and remove IPv6 tables (VRFs)."))]
#[object(set = "(ip@family=ip4 | ip6@family=ip6) table add <id>")]
#[object(unset = "(ip@family=ip4 | ip6@family=ip6) table del <id>")]
#[object(example = "ip table add 7")]
#[object(once, formerly = "table-add table=id")]
pub struct IpTable {
    /// Number of the IP table.
    #[object(key, built_in = 0, example = "7")]
    pub id: u32,
    /// IP version.
    #[object(key, each)]
    pub family: Af,
}

/// Route counter: packets and bytes of the route of a prefix alone. Without it, the routes of a table with one source and the
/// same paths are counted together. The counters begin at zero when the source or the paths of the route change.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "route_counter", file = "[[route_counter]]")]
#[object(group("set ip route-counter", "Add and remove counters of IPv4 routes."))]
#[object(group("set ip6 route-counter", "Add and remove counters of IPv6 routes."))]
#[object(set = "set (ip | ip6) route-counter <prefix> {table <table> | longer@longer=on}")]
#[object(unset = "set (ip | ip6) route-counter del <prefix> [table <table>]")]
#[object(example = "set ip route-counter 10.0.0.0/8")]
pub struct RouteCounter {
    /// Prefix of the route.
    #[object(key, example = "10.0.0.0/8")]
    pub prefix: Prefix,
    /// IP table (VRF) of the IP version of the prefix.
    #[object(key, default = 0, needs = "table", example = "7")]
    pub table: u32,
    /// Count the routes of all longer prefixes inside the prefix, too, each by itself.
    #[object(default = false)]
    pub longer: bool,
}

/// IP table (VRF) of an interface, for one IP version. The addresses of the interface move to the table.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "interface_table", file = "interface.table.*")]
#[object(set = "set interface (ip@family=ip4 | ip6@family=ip6) table <interface> <table>")]
#[object(example = "set interface ip table pg0 7")]
#[object(formerly = "interface-table name=interface")]
pub struct InterfaceTable {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP version.
    #[object(key)]
    pub family: Af,
    /// IP table in which packets that the interface receives are looked up.
    #[object(default = 0, needs = "table", example = "7")]
    pub table: u32,
}

/// Address of an interface, with the length of its network's prefix. The addresses of an interface have an order: the first
/// one of an IP version is the source of the router's own packets to other networks.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "address", file = "interface.addresses[]", check = Address::check)]
#[object(set = "set interface (ip | ip6) address <interface> <address>")]
#[object(unset = "set interface (ip | ip6) address del <interface> <address>")]
#[object(group(
    "set interface ip",
    "IPv4 settings of an interface: address, table and others."
))]
#[object(group(
    "set interface ip6",
    "IPv6 settings of an interface: address, table and others."
))]
#[object(example = "set interface ip address pg0 192.0.2.1/24")]
#[object(once, ordered, after = "interface_table", formerly = "address-add")]
#[object(
    interrupts = "the addresses of <interface> are removed and added again: traffic to and from them stops meanwhile"
)]
pub struct Address {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Address and length of the prefix of its network.
    #[object(key)]
    pub address: IfAddress,
}

impl Address {
    /// In IPv4 networks shorter than /31 no host has the first or the last address (RFC 1122, 3.2.1.3).
    fn check(&self) -> Result<(), FieldError> {
        let refuse = |why: String| refuse("address", why);
        let (address, addr) = (self.address, self.address.addr());
        let broadcast = matches!(addr, IpAddr::V4(a) if a.is_broadcast());
        if addr.is_unspecified() || addr.is_multicast() || broadcast {
            let why = "must be the address of one host, not zero, multicast or broadcast:";
            return refuse(format!("{why} {address}"));
        }
        if addr.is_loopback() {
            let why = "it is a loopback address, which never leaves a host (RFC 1122, 3.2.1.3; RFC 4291, 2.5.3)";
            return refuse(format!("must be another one than {address}: {why}"));
        }
        let IpAddr::V4(own) = addr else {
            return Ok(());
        };
        let hosts = u32::MAX.checked_shr(address.len().into()).unwrap_or(0);
        let (net, what) = match own.to_bits() & hosts {
            _ if hosts <= 1 => return Ok(()),
            0 => (own.to_bits(), "network"),
            part if part == hosts => (own.to_bits() - hosts, "broadcast"),
            _ => return Ok(()),
        };
        let (net, len) = (Ipv4Addr::from_bits(net), address.len());
        let why = format!(
            "it is the {what} address of {net}/{len}: give one of its hosts, or another length"
        );
        refuse(format!("must be another one than {address}: {why}"))
    }
}

/// Unnumbered interface: an interface without addresses that uses those of another interface (RFC 1812, 2.2.7).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "unnumbered", file = "interface.unnumbered", check = Unnumbered::check)]
#[object(set = "set interface unnumbered <interface> use <uses>")]
#[object(unset = "set interface unnumbered del <interface>")]
#[object(example = "set interface unnumbered pg0 use pg1")]
#[object(
    recreate,
    after = "interface_table",
    formerly = "interface-unnumbered name=interface"
)]
#[object(
    interrupts = "the addresses of <interface> are removed and added again: traffic to and from them stops meanwhile"
)]
pub struct Unnumbered {
    /// Interface without addresses.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Interface whose addresses are used.
    #[object(needs = "interface")]
    pub uses: String,
}

impl Unnumbered {
    fn check(&self) -> Result<(), FieldError> {
        match self.uses == self.interface {
            true => refuse(
                "uses",
                "must be another interface, not the interface itself",
            ),
            false => Ok(()),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowFib::query()?;
    ShowTables::query()?;
    ShowRouteCounters::query()?;
    Ok(vec![
        Multipath::class()?,
        DirectedBroadcast::class()?,
        StaticNeighbor::class()?,
        IpTable::class()?,
        RouteCounter::class()?,
        InterfaceTable::class()?,
        Address::class()?,
        Unnumbered::class()?,
        RouteFile::class()?,
        Route::class()?,
    ])
}

/// Registers the FIB as the one that answers its queries.
fn answer(owners: &mut Owners, fib: &Rc<RefCell<Fib>>) -> Result<(), DefinitionError> {
    let shared = fib.clone();
    owners.answer(move |asked: ShowFib| shared.borrow().routes_shown(&asked))?;
    let shared = fib.clone();
    owners.answer(move |asked: ShowTables| Ok(shared.borrow().tables(&asked)))?;
    let shared = fib.clone();
    owners.answer(move |asked: ShowRouteCounters| Ok(shared.borrow().route_counters(&asked)))?;
    Ok(())
}

/// Registers the FIB as the owner of its classes and queries.
pub fn own(owners: &mut Owners, fib: &Rc<RefCell<Fib>>) -> Result<(), DefinitionError> {
    answer(owners, fib)?;
    let shared = fib.clone();
    owners.own(move |_, now: Option<Multipath>| {
        let now = now.unwrap_or_default();
        let buckets = now.resilient.then_some(now.buckets as usize);
        let changed = shared.borrow_mut().set_resilient(buckets);
        Ok(Applied::changed(changed.into()))
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<StaticNeighbor>| {
        let interface = key.owner().unwrap_or_default();
        let address = key.values().get(1).and_then(IpAddr::from_value);
        let Some(address) = address else {
            return Ok(Applied::nothing());
        };
        let mac = now.map(|it| it.mac);
        shared.borrow_mut().neighbor_of(interface, address, mac)
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<DirectedBroadcast>| {
        let on = now.is_some_and(|it| it.enabled);
        let interface = key.owner().unwrap_or_default();
        shared.borrow_mut().directed_broadcast_of(interface, on)
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<IpTable>| {
        let (table, family) = (key_value(key, 0), key_value(key, 1));
        shared.borrow_mut().ip_table(family, table, now.is_some())
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<RouteCounter>| {
        let prefix = key.values().first().and_then(Prefix::from_value);
        let (table, longer) = (key_value(key, 1), now.map(|it| it.longer));
        let count = |prefix| shared.borrow_mut().route_counter(table, prefix, longer);
        prefix.map_or(Ok(Applied::nothing()), count)
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<InterfaceTable>| {
        let table = now.map_or(0, |it| it.table);
        let interface = key.owner().unwrap_or_default();
        let mut fib = shared.borrow_mut();
        fib.bind(interface, key_value(key, 1), table)
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<Address>| {
        let interface = key.owner().unwrap_or_default();
        let address = key.values().get(1).and_then(IfAddress::from_value);
        let Some(address) = address else {
            return Ok(Applied::nothing());
        };
        shared
            .borrow_mut()
            .configured_address(interface, address, now.is_some())
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<Unnumbered>| {
        let interface = key.owner().unwrap_or_default();
        let uses = now.as_ref().map(|it| it.uses.as_str());
        shared.borrow_mut().unnumbered(interface, uses)
    })?;
    let shared = fib.clone();
    owners.own_bulk::<Route>(move |bulk| shared.borrow_mut().routes(bulk))?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<RouteFile>| match now {
        Some(file) => shared.borrow_mut().load_file(&file),
        None => shared.borrow_mut().unload_files(key_value(key, 0)),
    })?;
    Ok(())
}
