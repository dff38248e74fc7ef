//! Addresses and prefixes as values of fields.

use crate::kind::{Choice, FieldType, Kind, Shape, TextKind};
use crate::packing::{PACKED, Packed, Packing};
use crate::text_field;
use crate::value::Value;
use std::net::IpAddr;
use volley_wire::{Family, IfAddress, MacAddr, Prefix};

text_field!(
    MacAddr,
    "a MAC address",
    Mac,
    ["02:fe:00:00:00:01", "02:fe:00:00:00:02"]
);
text_field!(
    IfAddress,
    "an address with its prefix length",
    Prefix,
    ["192.0.2.1/24", "2001:db8::1/64"]
);

impl Choice for Family {
    const ALL: &'static [(&'static str, &'static str, Self)] =
        &[("ip4", "IPv4", Family::V4), ("ip6", "IPv6", Family::V6)];
}

/// Packed prefixes: IP version, address, length.
static PACKING: Packing = Packing {
    pack: |text| Some(packed(text.parse().ok()?)),
    text: |packed| Prefix::unpack(packed).map_or_else(String::new, |it| it.to_string()),
    step: |packed, steps| Some(self::packed(Prefix::unpack(packed)?.step(steps)?)),
};

fn packed(prefix: Prefix) -> Packed {
    let mut bytes = [0; PACKED];
    bytes[0] = prefix.family().version();
    match prefix.addr() {
        IpAddr::V4(addr) => bytes[1..5].copy_from_slice(&addr.octets()),
        IpAddr::V6(addr) => bytes[1..17].copy_from_slice(&addr.octets()),
    }
    bytes[PACKED - 1] = prefix.len();
    Packed(bytes)
}

impl FieldType for Prefix {
    fn kind() -> Kind {
        let check = |text: &str| {
            let read = text.parse::<Prefix>();
            read.map(|it| it.to_string())
                .map_err(|error| error.to_string().into())
        };
        let samples = &["10.0.0.0/8", "2001:db8::/32"];
        Kind::Text(TextKind {
            packing: Some(&PACKING),
            ..TextKind::new("a prefix", Shape::Prefix, samples, check)
        })
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text()?.parse().ok()
    }

    fn to_value(&self) -> Value {
        Value::text(self.to_string())
    }

    fn unpack(packed: &Packed) -> Option<Self> {
        let bytes = &packed.0;
        let addr: IpAddr = match packed.version() {
            4 => <[u8; 4]>::try_from(&bytes[1..5]).ok()?.into(),
            6 => <[u8; 16]>::try_from(&bytes[1..17]).ok()?.into(),
            _ => return None,
        };
        Prefix::new(addr, bytes[PACKED - 1]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_prefixes_have_the_order_of_prefixes() {
        let mut all = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/24",
            "10.0.1.0/24",
            "255.255.255.255/32",
            "::/0",
            "2001:db8::/32",
            "2001:db8::1/128",
        ]
        .map(|text| text.parse::<Prefix>().unwrap());
        all.sort();
        assert!(all.is_sorted_by_key(|it| packed(*it)));
        for prefix in all {
            assert_eq!(Prefix::unpack(&packed(prefix)), Some(prefix));
        }
        let step = |text: &str, n| (PACKING.step)(&(PACKING.pack)(text).unwrap(), n);
        assert_eq!(step("10.0.0.0/24", 2), (PACKING.pack)("10.0.2.0/24"));
        assert_eq!(step("255.255.255.0/24", 1), None);
    }
}
