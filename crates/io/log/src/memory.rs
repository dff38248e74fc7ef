//! The records that `show log` reads: the newest, bounded by number and bytes.

use crate::record::LogRecord;
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of records.
pub(crate) const RECORDS: usize = 10_000;
/// The maximum number of their bytes.
pub(crate) const BYTES: usize = 8 << 20;

#[derive(Default)]
pub(crate) struct Memory {
    records: VecDeque<Arc<LogRecord>>,
    bytes: usize,
}

/// The approximate size of a record.
fn size(record: &LogRecord) -> usize {
    let fields = record.fields.iter();
    let fields: usize = fields
        .map(|(name, value)| name.len() + value.len() + 64)
        .sum();
    std::mem::size_of::<LogRecord>() + record.module.len() + record.message.len() + fields
}

impl Memory {
    pub fn push(&mut self, record: Arc<LogRecord>) {
        self.bytes += size(&record);
        self.records.push_back(record);
        while self.records.len() > RECORDS || self.bytes > BYTES {
            let Some(oldest) = self.records.pop_front() else {
                return;
            };
            self.bytes -= size(&oldest);
        }
    }

    pub fn oldest(&self) -> Option<&Arc<LogRecord>> {
        self.records.front()
    }

    /// From the newest to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<LogRecord>> {
        self.records.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64, bytes: usize) -> Arc<LogRecord> {
        Arc::new(LogRecord {
            sequence,
            message: "x".repeat(bytes),
            ..LogRecord::default()
        })
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_they_are_too_large() {
        let mut memory = Memory::default();
        (1..=RECORDS as u64 + 5).for_each(|n| memory.push(record(n, 10)));
        assert_eq!(memory.newest_first().count(), RECORDS);
        assert_eq!(memory.oldest().unwrap().sequence, 6);
        (0..5000).for_each(|n| memory.push(record(20_000 + n, 4096)));
        let held: usize = memory.newest_first().map(|r| size(r)).sum();
        assert!(held <= BYTES && held > BYTES - 8192, "{held}");
        assert_eq!(held, memory.bytes);
        memory.push(record(99_999, BYTES));
        assert_eq!((memory.newest_first().count(), memory.bytes), (0, 0));
    }
}
