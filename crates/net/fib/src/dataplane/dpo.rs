//! Result of a lookup: one 32-bit word, type in the top four bits, index in the low 28.
//!
//! Load balances, bucket groups and packet columns contain this word. Every bit pattern is valid: unknown types and unknown
//! reasons read as a drop, so a reader never has to handle an error.

/// Data-plane object: where a packet goes after the lookup.
#[derive(Copy, Clone, Eq, PartialEq, Hash)]
pub struct Dpo(pub u32);

/// Type of a [`Dpo`]; each variant documents the meaning of the index.
#[repr(u32)]
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
pub enum DpoKind {
    /// Drop; index is a [`DropWhy`].
    Drop = 0,
    /// Complete adjacency; index is the adjacency slot.
    Adj = 1,
    /// Attached network, neighbour not known; index is the interface.
    Glean = 2,
    /// For this router; index is the interface that owns the address ([`Dpo::NO_IFACE`] when none does).
    Local = 3,
    /// Answer with "unreachable"; index 0.
    Unreachable = 4,
    /// Answer with "prohibited"; index 0.
    Prohibit = 5,
    /// Several next hops; index is the bucket group, pick by flow hash.
    Multi = 6,
    /// Next hop known, its MAC not; index is the adjacency slot.
    Incomplete = 7,
    /// Look the destination up again in another table; index is the table.
    LookupIn = 8,
    /// All hosts of a connected network; index is the slot of the interface's broadcast adjacency.
    Broadcast = 9,
}

/// Why a route drops; the discriminant is the index of a `Drop` object.
#[repr(u32)]
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash, PartialOrd, Ord)]
pub enum DropWhy {
    /// No route matches, or only the default route's drop does.
    NoRoute = 0,
    /// A route with target drop.
    Blackhole = 1,
    /// The unspecified address (0.0.0.0).
    Unspecified = 2,
    /// Multicast, which the unicast table does not forward.
    Multicast = 3,
    /// Reserved class E space (240.0.0.0/4).
    Reserved = 4,
    /// Limited broadcast (255.255.255.255).
    Broadcast = 5,
    /// Network or broadcast address of a connected subnet.
    SubnetBroadcast = 6,
    /// Link-local IPv6 destinations are never forwarded.
    LinkLocal = 7,
    /// A recursive next hop has no usable route.
    Unresolved = 8,
    /// Resolving the next hop leads back to the same route.
    RecursionLoop = 9,
    /// The interface of the next hop is down.
    InterfaceDown = 10,
}

impl DropWhy {
    /// All reasons in the order of their numbers.
    pub const ALL: [DropWhy; 11] = [
        DropWhy::NoRoute,
        DropWhy::Blackhole,
        DropWhy::Unspecified,
        DropWhy::Multicast,
        DropWhy::Reserved,
        DropWhy::Broadcast,
        DropWhy::SubnetBroadcast,
        DropWhy::LinkLocal,
        DropWhy::Unresolved,
        DropWhy::RecursionLoop,
        DropWhy::InterfaceDown,
    ];

    /// The name operators see in counters and traces.
    pub fn name(self) -> &'static str {
        match self {
            DropWhy::NoRoute => "no-route",
            DropWhy::Blackhole => "blackhole",
            DropWhy::Unspecified => "unspecified",
            DropWhy::Multicast => "multicast",
            DropWhy::Reserved => "reserved",
            DropWhy::Broadcast => "broadcast",
            DropWhy::SubnetBroadcast => "subnet-broadcast",
            DropWhy::LinkLocal => "link-local",
            DropWhy::Unresolved => "unresolved",
            DropWhy::RecursionLoop => "recursion-loop",
            DropWhy::InterfaceDown => "interface-down",
        }
    }

    /// Decodes an index; unknown indexes read as `NoRoute`.
    #[inline(always)]
    pub fn from_index(i: u32) -> Self {
        Self::ALL
            .get(i as usize)
            .copied()
            .unwrap_or(DropWhy::NoRoute)
    }
}

impl Dpo {
    /// The low 28 bits.
    pub const INDEX_MASK: u32 = (1 << 28) - 1;
    /// Interface index of a local object that belongs to no interface.
    pub const NO_IFACE: u32 = Self::INDEX_MASK;
    /// No route: the all-zero word.
    pub const NO_ROUTE: Dpo = Dpo(0);

    /// Packs a type and an index.
    #[inline(always)]
    pub const fn new(kind: DpoKind, index: u32) -> Self {
        Dpo((kind as u32) << 28 | index & Self::INDEX_MASK)
    }

    /// A drop with its reason.
    #[inline(always)]
    pub const fn drop(why: DropWhy) -> Self {
        Self::new(DpoKind::Drop, why as u32)
    }

    /// The type; unknown bits read as `Drop`.
    #[inline(always)]
    pub const fn kind(self) -> DpoKind {
        match self.0 >> 28 {
            1 => DpoKind::Adj,
            2 => DpoKind::Glean,
            3 => DpoKind::Local,
            4 => DpoKind::Unreachable,
            5 => DpoKind::Prohibit,
            6 => DpoKind::Multi,
            7 => DpoKind::Incomplete,
            8 => DpoKind::LookupIn,
            9 => DpoKind::Broadcast,
            _ => DpoKind::Drop,
        }
    }

    /// The low 28 bits: see [`DpoKind`] for their meaning.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0 & Self::INDEX_MASK
    }

    /// True for a complete adjacency, the one fast-path case.
    #[inline(always)]
    pub const fn is_adj(self) -> bool {
        self.0 >> 28 == DpoKind::Adj as u32
    }

    /// The reason of a drop; `NoRoute` for other types.
    #[inline(always)]
    pub fn why(self) -> DropWhy {
        match self.kind() {
            DpoKind::Drop => DropWhy::from_index(self.index()),
            _ => DropWhy::NoRoute,
        }
    }
}

impl std::fmt::Debug for Dpo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            DpoKind::Drop => write!(f, "Drop({})", self.why().name()),
            kind => write!(f, "{kind:?}({})", self.index()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_strange_bits_read_as_a_drop() {
        let kinds = [
            DpoKind::Drop,
            DpoKind::Adj,
            DpoKind::Glean,
            DpoKind::Local,
            DpoKind::Unreachable,
            DpoKind::Prohibit,
            DpoKind::Multi,
            DpoKind::Incomplete,
            DpoKind::LookupIn,
            DpoKind::Broadcast,
        ];
        for kind in kinds {
            let d = Dpo::new(kind, 0x0abc_def1);
            assert_eq!((d.kind(), d.index()), (kind, 0x0abc_def1));
            assert_eq!(d.is_adj(), kind == DpoKind::Adj);
        }
        assert_eq!(Dpo(0xf000_0001).kind(), DpoKind::Drop);
        assert_eq!(
            Dpo::drop(DropWhy::InterfaceDown).why(),
            DropWhy::InterfaceDown
        );
        assert_eq!(Dpo::new(DpoKind::Drop, 999).why(), DropWhy::NoRoute);
        assert_eq!(format!("{:?}", Dpo::NO_ROUTE), "Drop(no-route)");
    }

    #[test]
    fn reasons_keep_their_numbers() {
        for (i, why) in DropWhy::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, i);
            assert_eq!(DropWhy::from_index(i as u32), why);
        }
    }
}
