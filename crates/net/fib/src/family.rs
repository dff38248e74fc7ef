//! IPv4 and IPv6 as one type parameter, so that tables, loaders and views are written once.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use volley_tables::{Domain, Guard, Lpm4, Lpm4Snap, Lpm4View, Lpm6, Lpm6Snap, Lpm6View, LpmError};

/// IPv4.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct V4;
/// IPv6.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct V6;

pub use volley_model::Family as Af;

/// Address family: addresses (numbers in host order) and longest-prefix match.
pub trait Family: Copy + Debug + Ord + Hash + Send + Sync + 'static {
    /// An address as a number.
    type Addr: Copy + Debug + Eq + Ord + Hash + Send + Sync + 'static;
    /// An address without alignment, for dense storage.
    type Packed: Copy + Eq + Send + Sync + 'static;
    /// Writer's side of the longest-prefix match.
    type Lpm: Send;
    /// Reader handle of the longest-prefix match.
    type LpmSnap: Clone + Send + Sync + 'static;
    /// The longest-prefix match that a worker reads.
    type LpmView: 'static;
    /// The family as a value.
    const AF: Af;
    /// Bits of an address.
    const BITS: u8;

    /// Number of an address; `None` for the other family.
    fn number(ip: IpAddr) -> Option<Self::Addr>;
    /// Address of a number.
    fn ip(addr: Self::Addr) -> IpAddr;
    /// Packs an address.
    fn pack(addr: Self::Addr) -> Self::Packed;
    /// Unpacks an address.
    fn unpack(packed: Self::Packed) -> Self::Addr;
    /// The first address of the prefix of `len` bits around `addr`.
    fn first(addr: Self::Addr, len: u8) -> Self::Addr;
    /// The last address of the prefix of `len` bits around `addr`.
    fn last(addr: Self::Addr, len: u8) -> Self::Addr;
    /// Converts from 128 bits (uses the low bits).
    fn from_wide(n: u128) -> Self::Addr;
    /// Converts to 128 bits.
    fn wide(addr: Self::Addr) -> u128;

    /// Creates an empty longest-prefix match.
    fn lpm(domain: &Arc<Domain>) -> Self::Lpm;
    /// Adds or changes a prefix.
    fn insert(lpm: &mut Self::Lpm, addr: Self::Addr, len: u8, leaf: u32) -> Result<(), LpmError>;
    /// Removes a prefix.
    fn remove(lpm: &mut Self::Lpm, addr: Self::Addr, len: u8);
    /// Adds many prefixes at once.
    fn load(
        lpm: &mut Self::Lpm,
        routes: impl Iterator<Item = (Self::Addr, u8, u32)>,
    ) -> Result<(), LpmError>;
    /// Leaf of an address.
    fn lookup(lpm: &Self::Lpm, addr: Self::Addr) -> u32;
    /// Bytes that workers read.
    fn bytes(lpm: &Self::Lpm) -> usize;
    /// Creates a reader handle.
    fn snap(lpm: &Self::Lpm) -> Self::LpmSnap;
    /// The longest-prefix match for one frame.
    fn read<'g>(snap: &Self::LpmSnap, guard: Guard<'g>) -> &'g Self::LpmView;
    /// Leaf of an address, on the data path.
    fn leaf(view: &Self::LpmView, addr: Self::Addr) -> u32;
}

/// The number of an address of either family.
pub(crate) fn wide(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    }
}

impl Family for V4 {
    type Addr = u32;
    type Packed = u32;
    type Lpm = Lpm4;
    type LpmSnap = Lpm4Snap;
    type LpmView = Lpm4View;
    const AF: Af = Af::V4;
    const BITS: u8 = 32;

    fn number(ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(a) => Some(a.to_bits()),
            IpAddr::V6(_) => None,
        }
    }
    fn ip(addr: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(addr))
    }
    fn pack(addr: u32) -> u32 {
        addr
    }
    fn unpack(packed: u32) -> u32 {
        packed
    }
    fn first(addr: u32, len: u8) -> u32 {
        addr & !u32::MAX.checked_shr(u32::from(len)).unwrap_or(0)
    }
    fn last(addr: u32, len: u8) -> u32 {
        addr | u32::MAX.checked_shr(u32::from(len)).unwrap_or(0)
    }
    fn from_wide(n: u128) -> u32 {
        n as u32
    }
    fn wide(addr: u32) -> u128 {
        u128::from(addr)
    }
    fn lpm(domain: &Arc<Domain>) -> Lpm4 {
        Lpm4::new(domain)
    }
    fn insert(lpm: &mut Lpm4, addr: u32, len: u8, leaf: u32) -> Result<(), LpmError> {
        lpm.insert(addr, len, leaf).map(drop)
    }
    fn remove(lpm: &mut Lpm4, addr: u32, len: u8) {
        lpm.remove(addr, len);
    }
    fn load(lpm: &mut Lpm4, routes: impl Iterator<Item = (u32, u8, u32)>) -> Result<(), LpmError> {
        lpm.load_bulk(routes)
    }
    fn lookup(lpm: &Lpm4, addr: u32) -> u32 {
        lpm.lookup(addr)
    }
    fn bytes(lpm: &Lpm4) -> usize {
        lpm.bytes()
    }
    fn snap(lpm: &Lpm4) -> Lpm4Snap {
        lpm.snap()
    }
    #[inline(always)]
    fn read<'g>(snap: &Lpm4Snap, guard: Guard<'g>) -> &'g Lpm4View {
        snap.read(guard)
    }
    #[inline(always)]
    fn leaf(view: &Lpm4View, addr: u32) -> u32 {
        view.lookup(addr)
    }
}

impl Family for V6 {
    type Addr = u128;
    type Packed = [u32; 4];
    type Lpm = Lpm6;
    type LpmSnap = Lpm6Snap;
    type LpmView = Lpm6View;
    const AF: Af = Af::V6;
    const BITS: u8 = 128;

    fn number(ip: IpAddr) -> Option<u128> {
        match ip {
            IpAddr::V6(a) => Some(a.to_bits()),
            IpAddr::V4(_) => None,
        }
    }
    fn ip(addr: u128) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(addr))
    }
    fn pack(addr: u128) -> [u32; 4] {
        [
            (addr >> 96) as u32,
            (addr >> 64) as u32,
            (addr >> 32) as u32,
            addr as u32,
        ]
    }
    fn unpack(p: [u32; 4]) -> u128 {
        p.iter().fold(0, |n, w| n << 32 | u128::from(*w))
    }
    fn first(addr: u128, len: u8) -> u128 {
        addr & !u128::MAX.checked_shr(u32::from(len)).unwrap_or(0)
    }
    fn last(addr: u128, len: u8) -> u128 {
        addr | u128::MAX.checked_shr(u32::from(len)).unwrap_or(0)
    }
    fn from_wide(n: u128) -> u128 {
        n
    }
    fn wide(addr: u128) -> u128 {
        addr
    }
    fn lpm(domain: &Arc<Domain>) -> Lpm6 {
        Lpm6::new(domain)
    }
    fn insert(lpm: &mut Lpm6, addr: u128, len: u8, leaf: u32) -> Result<(), LpmError> {
        lpm.insert((addr >> 64) as u64, addr as u64, len, leaf)
            .map(drop)
    }
    fn remove(lpm: &mut Lpm6, addr: u128, len: u8) {
        lpm.remove((addr >> 64) as u64, addr as u64, len);
    }
    fn load(lpm: &mut Lpm6, routes: impl Iterator<Item = (u128, u8, u32)>) -> Result<(), LpmError> {
        lpm.load_bulk(routes.map(|(a, len, leaf)| ((a >> 64) as u64, a as u64, len, leaf)))
    }
    fn lookup(lpm: &Lpm6, addr: u128) -> u32 {
        lpm.lookup((addr >> 64) as u64, addr as u64)
    }
    fn bytes(lpm: &Lpm6) -> usize {
        lpm.bytes()
    }
    fn snap(lpm: &Lpm6) -> Lpm6Snap {
        lpm.snap()
    }
    #[inline(always)]
    fn read<'g>(snap: &Lpm6Snap, guard: Guard<'g>) -> &'g Lpm6View {
        snap.read(guard)
    }
    #[inline(always)]
    fn leaf(view: &Lpm6View, addr: u128) -> u32 {
        view.lookup((addr >> 64) as u64, addr as u64)
    }
}

/// A prefix of one family; host bits are zero.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<F: Family> {
    addr: F::Addr,
    len: u8,
}

impl<F: Family> Prefix<F> {
    /// The prefix of `len` bits around `addr`; host bits are cleared, a longer length means a host.
    pub fn around(addr: F::Addr, len: u8) -> Self {
        let len = len.min(F::BITS);
        Self {
            addr: F::first(addr, len),
            len,
        }
    }
    /// The prefix if `len` fits and all host bits are zero.
    pub fn exact(addr: F::Addr, len: u8) -> Option<Self> {
        (len <= F::BITS && F::first(addr, len) == addr).then_some(Self { addr, len })
    }
    /// One address.
    pub fn host(addr: F::Addr) -> Self {
        Self { addr, len: F::BITS }
    }
    /// First address.
    pub fn addr(self) -> F::Addr {
        self.addr
    }
    /// Last address.
    pub fn last(self) -> F::Addr {
        F::last(self.addr, self.len)
    }
    /// Prefix length.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a prefix length is no collection length"
    )]
    pub fn len(self) -> u8 {
        self.len
    }
    /// Whether the prefix contains an address.
    pub fn contains(self, addr: F::Addr) -> bool {
        F::first(addr, self.len) == self.addr
    }
}

impl<F: Family> Debug for Prefix<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<F: Family> fmt::Display for Prefix<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", F::ip(self.addr), self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_know_their_ends_at_the_extreme_lengths() {
        let p = Prefix::<V4>::around(0x0a01_02ff, 24);
        assert_eq!(p.to_string(), "10.1.2.0/24");
        assert_eq!(
            (p.last(), p.contains(0x0a01_0280), p.contains(0x0a01_0300)),
            (0x0a01_02ff, true, false)
        );
        let all = Prefix::<V6>::around(u128::MAX, 0);
        assert_eq!((all.addr(), all.last()), (0, u128::MAX));
        assert_eq!(Prefix::<V6>::host(5).last(), 5);
        assert_eq!(Prefix::<V4>::exact(1, 31), None);
        assert_eq!(Prefix::<V4>::exact(2, 31), Some(Prefix::around(2, 31)));
    }

    #[test]
    fn packing_keeps_the_number() {
        let n = 0x2001_0db8_0000_0001_ffff_1234_5678_9abc_u128;
        assert_eq!(V6::unpack(V6::pack(n)), n);
    }
}
