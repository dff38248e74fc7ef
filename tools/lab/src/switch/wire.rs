//! The generator's packets on the wire.

use volley_model::Mac;

/// Bytes of a frame that are on the wire but not in the frame: preamble, gap, frame check sequence.
const WIRE: f64 = 24.0;
/// Bytes of the frame check sequence, which the sizes of the paper include.
pub const FCS: usize = 4;

/// VLAN of tagged packets.
pub const VLAN: u16 = 10;
/// MAC address of the sender.
pub const SOURCE_MAC: Mac = Mac([2, 0, 0, 0, 0, 0x99]);
/// MAC address of the receiver.
pub const MAC: Mac = Mac([2, 0, 0, 0, 0, 0x98]);

/// Gbit/s on the wire of packets per second.
pub fn gbps(pps: f64, size: usize) -> f64 {
    pps * ((size - FCS) as f64 + WIRE) * 8.0 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_that_of_ethernet() {
        let ten = gbps(14_880_952.0, 64);
        assert!((ten - 10.0).abs() < 0.001, "{ten}");
        assert!((gbps(1_197_318.0, 1024) - 10.0).abs() < 0.001);
    }
}
