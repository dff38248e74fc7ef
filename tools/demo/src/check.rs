//! Compares the output with the plain model's.

use super::DemoError;
use super::router::Output;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use volley_daemon::show::{DropsReply, ErrorsReply, Severity};
use volley_pcap::read_packets;
use volley_reference::{Reference, Verdict};

/// Expected output for some packets.
#[derive(Default)]
pub struct Expected {
    /// Number of received packets.
    pub packets: usize,
    /// Number of packets that leave.
    pub sent: usize,
    /// Number of dropped packets.
    pub dropped: usize,
    /// Number of copies of each frame that leaves, by interface.
    frames: HashMap<String, HashMap<Vec<u8>, usize>>,
    /// Number of dropped packets by reason.
    reasons: BTreeMap<String, u64>,
}

/// Frames of a capture; without a file no packet was captured.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, DemoError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(read_packets(path)?
        .packets
        .into_iter()
        .map(|p| p.data)
        .collect())
}

/// An error unless both are equal.
pub fn same<T: PartialEq + std::fmt::Display>(
    what: &str,
    found: T,
    wanted: T,
) -> Result<(), DemoError> {
    if found == wanted {
        return Ok(());
    }
    Err(DemoError::Wrong(format!(
        "{what}: {found}, where {wanted} had to be"
    )))
}

impl Expected {
    /// The model's output for these packets.
    pub fn of(model: &Reference, input: &[Vec<u8>]) -> Self {
        let mut expected = Expected {
            packets: input.len(),
            ..Expected::default()
        };
        for frame in input {
            match model.judge(frame) {
                Verdict::Sent { tx, frames } => {
                    let open = expected.frames.entry(tx).or_default();
                    for frame in frames {
                        *open.entry(frame).or_default() += 1;
                        expected.sent += 1;
                    }
                }
                Verdict::Dropped(reason) => {
                    *expected.reasons.entry(reason.to_owned()).or_default() += 1;
                    expected.dropped += 1;
                }
            }
        }
        expected
    }

    /// Checks that exactly the expected frames left, and the expected packets were dropped.
    ///
    /// Messages of a link for other hosts are counted as information, and are not drops.
    pub fn equals(
        &self,
        outputs: &[Output],
        drops: &DropsReply,
        errors: &ErrorsReply,
    ) -> Result<(), DemoError> {
        let mut left = 0;
        for output in outputs {
            let mut open = self.frames.get(&output.tx).cloned().unwrap_or_default();
            for frame in read(&output.file)? {
                match open.get_mut(&frame) {
                    Some(times @ 1..) => *times -= 1,
                    Some(_) => return Err(wrong(output, &frame, "too often")),
                    None => return Err(wrong(output, &frame, "and should not have, so")),
                }
                left += 1;
            }
        }
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for d in &drops.drops {
            *found
                .entry(format!("{}: {}", d.node, d.reason))
                .or_default() += d.count;
        }
        for row in errors
            .errors
            .iter()
            .filter(|row| row.severity == Severity::Info)
        {
            let reason = format!("{}: {}", row.node, row.reason);
            if self.reasons.contains_key(&reason) {
                found.entry(reason).or_insert(row.count);
            }
        }
        differences(&found, &self.reasons)?;
        same("packets that left", left, self.sent)
    }

    /// Checks that each transmitted packet is among the expected ones; returns their number.
    pub fn contains(&self, outputs: &[Output]) -> Result<usize, DemoError> {
        let mut left = 0;
        for output in outputs {
            let known = self.frames.get(&output.tx);
            for frame in read(&output.file)? {
                if !known.is_some_and(|frames| frames.contains_key(&frame)) {
                    return Err(wrong(
                        output,
                        &frame,
                        "at full speed and should not have, so",
                    ));
                }
                left += 1;
            }
        }
        Ok(left)
    }
}

fn differences(
    found: &BTreeMap<String, u64>,
    wanted: &BTreeMap<String, u64>,
) -> Result<(), DemoError> {
    let reasons = found.keys().chain(wanted.keys());
    let count = |of: &BTreeMap<String, u64>, reason| of.get(reason).copied().unwrap_or(0);
    for reason in reasons {
        same(
            &format!("packets dropped by {reason}"),
            count(found, reason),
            count(wanted, reason),
        )?;
    }
    Ok(())
}

fn wrong(output: &Output, frame: &[u8], how: &str) -> DemoError {
    let start: String = frame
        .iter()
        .take(80)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    DemoError::Wrong(format!(
        "a packet of {} bytes left {} {how}: {start}",
        frame.len(),
        output.tx
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_in_one_count_is_found() {
        let map = |n| BTreeMap::from([("ip4-input: ttl-expired".to_owned(), n)]);
        assert!(differences(&map(3), &map(3)).is_ok());
        let error = differences(&map(3), &map(4)).unwrap_err().to_string();
        assert_eq!(
            error,
            "NOT verified: packets dropped by ip4-input: ttl-expired: 3, where 4 had to be"
        );
        assert!(differences(&map(1), &BTreeMap::new()).is_err());
        assert!(differences(&BTreeMap::new(), &map(1)).is_err());
    }
}
