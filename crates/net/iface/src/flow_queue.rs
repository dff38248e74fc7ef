//! The choice of a transmit queue for a packet, if a worker transmits to several: the same for all packets of a flow.

/// The queue, below `queues`, for a packet with these words of its headers: a hash of them, spread evenly.
#[inline(always)]
pub fn flow_queue(words: impl IntoIterator<Item = u32>, queues: usize) -> u32 {
    let mix = |hash: u32, word: u32| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b1);
    let hash = words.into_iter().fold(0, mix);
    ((u64::from(hash) * queues as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::flow_queue;

    #[test]
    fn neighbouring_flows_are_spread_over_all_queues() {
        for queues in 1..=8 {
            let mut flows = vec![0; queues];
            for n in 0..4096u32 {
                // Addresses and ports of IPv4: the last byte of the address, and the port, count up.
                let words = [0x0a00_0001, 0x1400_0000 | (n % 64), ((1024 + n) << 16) | 80];
                let queue = flow_queue(words, queues) as usize;
                flows[queue] += 1;
            }
            let even = 4096 / queues;
            assert!(
                flows.iter().all(|n| (even / 2..=even * 2).contains(n)),
                "{queues} queues: {flows:?}"
            );
        }
    }
}
