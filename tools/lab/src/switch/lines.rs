//! The newest lines that a process has printed.
//!
//! Contract: a process never waits for a reader. What is kept is bounded: beyond it, the oldest lines are dropped, and a long line is cut into
//! parts. Bytes that are no UTF-8 are replaced.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most lines that are kept.
const MOST: usize = 1_000;
/// Most bytes of a line.
const LONGEST: u64 = 4_096;

/// Why there is no line.
#[derive(Debug, PartialEq, Eq)]
pub enum NoLine {
    /// The time is over.
    Late,
    /// All outputs are closed.
    Closed,
}

/// The lines that were not read yet.
#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    /// Outputs that are not closed.
    open: usize,
}

/// Lines of several outputs, in the order of their arrival.
#[derive(Debug, Default)]
pub struct Lines {
    kept: Mutex<Kept>,
    /// A line came, or an output was closed.
    changed: Condvar,
}

impl Lines {
    /// Read an output to its end, on a new thread.
    pub fn read(self: &Arc<Self>, from: impl Read + Send + 'static) {
        self.kept().open += 1;
        let lines = self.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            while let Some(line) = line(&mut from) {
                lines.push(line);
            }
            lines.kept().open -= 1;
            lines.changed.notify_all();
        });
    }

    /// A reader that panicked leaves whole lines.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut kept = self.kept();
        if kept.lines.len() == MOST {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
        self.changed.notify_all();
    }

    /// Wait until something has changed, or until a time.
    fn wait<'a>(&'a self, kept: MutexGuard<'a, Kept>, end: Instant) -> MutexGuard<'a, Kept> {
        let left = end.saturating_duration_since(Instant::now());
        match self.changed.wait_timeout(kept, left) {
            Ok((kept, _)) => kept,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// The oldest line; waits for it until a time.
    ///
    /// # Errors
    /// If none has come by then, or none will come.
    pub fn next(&self, end: Instant) -> Result<String, NoLine> {
        let mut kept = self.kept();
        loop {
            if let Some(line) = kept.lines.pop_front() {
                return Ok(line);
            }
            if kept.open == 0 {
                return Err(NoLine::Closed);
            }
            if Instant::now() >= end {
                return Err(NoLine::Late);
            }
            kept = self.wait(kept, end);
        }
    }

    /// The newest line of a process that has ended; a program that it has left behind may keep its output open for so long. Empty without a line.
    pub fn last(&self, most: Duration) -> String {
        let end = Instant::now() + most;
        let mut kept = self.kept();
        while kept.open > 0 && Instant::now() < end {
            kept = self.wait(kept, end);
        }
        kept.lines.back().cloned().unwrap_or_default()
    }

    /// Forget the lines that have come so far.
    pub fn clear(&self) {
        self.kept().lines.clear();
    }
}

/// The next line, or its next part; none at the end of the output, and if it cannot be read.
fn line(from: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let count = from.take(LONGEST).read_until(b'\n', &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    (count > 0).then(|| text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn the_newest_lines_are_kept_and_the_output_is_read_to_its_end() {
        let text: String = (0..5 * MOST).map(|n| format!("{n}\n")).collect();
        let lines = Arc::new(Lines::default());
        lines.read(std::io::Cursor::new(text));
        assert_eq!(
            lines.last(Duration::from_secs(20)),
            format!("{}", 5 * MOST - 1)
        );
        let all: Vec<String> = std::iter::from_fn(|| lines.next(soon()).ok()).collect();
        let wanted = (4 * MOST..5 * MOST).map(|n| n.to_string());
        assert_eq!(all, wanted.collect::<Vec<_>>());
        assert_eq!(lines.next(soon()), Err(NoLine::Closed));
    }

    #[test]
    fn endless_lines_and_bytes_that_are_no_text_do_not_end_the_reading() {
        let mut bytes = vec![b'a'; 3 * LONGEST as usize];
        bytes.extend(b"\xff\xfe\r\n\nend");
        let lines = Arc::new(Lines::default());
        lines.read(std::io::Cursor::new(bytes));
        let all: Vec<String> = std::iter::from_fn(|| lines.next(soon()).ok()).collect();
        let lengths: Vec<usize> = all.iter().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [4_096, 4_096, 4_096, 2, 0, 3]);
        assert_eq!(all[3], "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_line_that_does_not_come_is_late() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let lines = Arc::new(Lines::default());
        lines.read(reader);
        assert_eq!(lines.next(Instant::now()), Err(NoLine::Late));
        std::io::Write::write_all(&mut writer, b"one\ntwo\n").unwrap();
        assert_eq!(lines.next(soon()).as_deref(), Ok("one"));
        assert_eq!(lines.last(Duration::from_millis(1)), "two");
        lines.clear();
        drop(writer);
        assert_eq!(lines.next(soon()), Err(NoLine::Closed));
    }
}
