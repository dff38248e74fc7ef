//! EtherTypes as plain numbers in host order, for code that compares the words of a header: the values of [`EtherType`].

use crate::EtherType;

macro_rules! plain {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("The value of [`EtherType::", stringify!($name), "`].")]
            pub const $name: u16 = EtherType::$name.value();
        )*
    };
}

plain!(IP4 ARP VLAN QINQ QINQ_OLD IP6 MPLS MPLS_MCAST PPPOE TEB);

/// The first of the two types that IEEE 802 reserves for local experiments.
pub const EXPERIMENT: u16 = 0x88b5;

/// Whether the type is that of a VLAN tag.
#[inline(always)]
pub const fn is_tag(kind: u16) -> bool {
    matches!(kind, VLAN | QINQ | QINQ_OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_typed_form() {
        for kind in 0..=u16::MAX {
            assert_eq!(is_tag(kind), EtherType::new(kind).is_vlan(), "{kind:#06x}");
        }
    }
}
