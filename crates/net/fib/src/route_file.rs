//! Class of route files.

use crate::family::Af;
use crate::path::Path;
use std::net::IpAddr;
use std::path::PathBuf;
use volley_object::{Choice, FieldError, Instance, Object, at_most, refuse};

/// Range of the number of next hops that the routes of a file are spread over.
const NEXT_HOPS: std::ops::RangeInclusive<u32> = 1..=65_536;

/// Format of a route file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum RouteFormat {
    /// By the first bytes of the content.
    #[default]
    Auto,
    /// `PREFIX NEXTHOP`, one a line; the next hop is an address or a number.
    Text,
    /// A table dump in the format MRT (RFC 6396).
    Mrt,
}

/// IP versions of the routes that a file gives a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum RouteFamily {
    /// IPv4 and IPv6.
    #[default]
    Both,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// How the rank of a next hop of a file is folded into the few that are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum Fold {
    /// Next hops of the file are spread evenly over those given.
    #[default]
    Modulo,
    /// Next hops of the file beyond the last one given are that one.
    Clamp,
}

impl Fold {
    /// Index of a rank among n (n = 0 counts as 1).
    pub fn index(self, rank: u64, n: u64) -> u64 {
        let n = n.max(1);
        match self {
            Fold::Modulo => rank % n,
            Fold::Clamp => rank.min(n - 1),
        }
    }
}

/// Route file: a text or MRT file, plain or compressed (`.gz`, `.bz2`, `.xz`, `.zst`), whose routes an IP table has, as source
/// `file`. Its next hops are addresses and meant as they are, or each has a rank (its number in the file, else the order of
/// its first appearance) that is folded into the next hops or the paths given.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "route_file", file = "[[route_file]]", check = RouteFile::check)]
#[object(upgrade = crate::upgrade::request)]
#[object(
    set = "(ip | ip6) route load <path> {format <format> | table <table> | family <family> | limit <limit> | fold <fold> | \
           next-hops <next_hops> <count> {<interfaces>} | <paths>}"
)]
#[object(unset = "(ip | ip6) route unload [table <table>]")]
#[object(example = "ip route load rib4.txt.xz next-hops 192.0.2.2 2 pg1")]
#[object(recreate, ordered, together)]
#[object(
    interrupts = "the routes of table <table> that come from files are removed and loaded again"
)]
pub struct RouteFile {
    /// IP table (VRF) that has the routes.
    #[object(key, default = 0, needs = "table", example = "7")]
    pub table: u32,
    /// Path of the file.
    #[object(key, example = "/var/lib/volley/rib4.txt.xz")]
    pub path: PathBuf,
    /// IP versions of the routes that are loaded.
    #[object(key, default = RouteFamily::Both)]
    pub family: RouteFamily,
    /// Format of the file.
    #[object(default = RouteFormat::Auto)]
    pub format: RouteFormat,
    /// Number of routes that are loaded at most.
    #[object(range = 1u64..=u64::MAX)]
    pub limit: Option<u64>,
    /// How many next hops of the file become the few that are given.
    #[object(default = Fold::Modulo)]
    pub fold: Fold,
    /// First of the next hops, the one of rank 0; the address behind it is that of the next rank.
    pub next_hops: Option<IpAddr>,
    /// Number of next hops, from the first one on.
    #[object(default = 1, range = NEXT_HOPS)]
    pub count: u32,
    /// Interfaces of the next hops, taken in turn.
    #[object(needs = "interface")]
    pub interfaces: Vec<String>,
    /// Paths, one for each rank.
    pub paths: Vec<Path>,
}

impl RouteFile {
    /// A file whose next hops are used as they are.
    pub fn new(path: impl Into<PathBuf>) -> RouteFile {
        RouteFile {
            table: 0,
            path: path.into(),
            family: RouteFamily::Both,
            format: RouteFormat::Auto,
            limit: None,
            fold: Fold::Modulo,
            next_hops: None,
            count: 1,
            interfaces: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Whether an object is a route file.
    pub fn is(object: &Instance) -> bool {
        object.class().name() == Self::CLASS
    }

    /// The only IP version of the routes.
    pub fn only(&self) -> Option<Af> {
        match self.family {
            RouteFamily::Both => None,
            RouteFamily::Ip4 => Some(Af::V4),
            RouteFamily::Ip6 => Some(Af::V6),
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        if self.path.as_os_str().is_empty() {
            return refuse("path", "must be the path of a file");
        }
        if !self.paths.is_empty() && (self.next_hops.is_some() || !self.interfaces.is_empty()) {
            let why = "must not be given together with next hops and their interfaces";
            return refuse("paths", why);
        }
        at_most("paths", self.paths.len(), *NEXT_HOPS.end() as usize)?;
        for path in &self.paths {
            if let Err(error) = path.validate(self.only()) {
                return refuse("paths", format!("have a fault: {error}"));
            }
        }
        match (self.next_hops, self.interfaces.is_empty()) {
            (None, true) if self.count == 1 => Ok(()),
            (None, _) => refuse(
                "next_hops",
                "is missing: give the first next hop, their number and their interfaces",
            ),
            (Some(_), true) => refuse("interfaces", "must be given for next hops"),
            (Some(first), false) => self.check_next_hops(first),
        }
    }

    fn check_next_hops(&self, first: IpAddr) -> Result<(), FieldError> {
        let refuse = |why: String| refuse("next_hops", why);
        let broadcast = matches!(first, IpAddr::V4(a) if a.is_broadcast());
        if first.is_unspecified() || first.is_multicast() || broadcast {
            let why = "must be the address of one host, not zero, multicast or broadcast:";
            return refuse(format!("{why} {first}"));
        }
        if self.only().is_some_and(|af| af != Af::of(first)) {
            return refuse(format!(
                "must be of the IP version of the routes, not {first}"
            ));
        }
        let room = match first {
            IpAddr::V4(a) => u128::from(u32::MAX - a.to_bits()),
            IpAddr::V6(a) => u128::MAX - a.to_bits(),
        };
        let count = self.count;
        match u128::from(count.saturating_sub(1)) > room {
            true => refuse(format!(
                "must be another one than {first}: the address space ends before {count} next hops"
            )),
            false => Ok(()),
        }
    }
}
