//! Cache lines and the workers that access them: which lines workers hand off in order, and for which two workers
//! contend.
//!
//! This is a happens-before analysis with vector clocks: each worker has a clock, and knows how much of the others'
//! clocks it has seen. The code places that synchronise (`orders` in [`super::meant`]) propagate that knowledge: a write
//! stores the writer's knowledge at the line, and a read adopts it. A worker that accesses a line which another worker
//! has written, or writes a line which another has read, without knowledge of that access, contends for the line: both
//! accesses may happen at the same time. With the knowledge the line was handed off, like a packet.

use super::decode::Access;
use std::collections::HashMap;

/// Bytes of a cache line.
pub const LINE: u64 = 64;
/// Maximum number of workers.
pub const WORKERS: usize = 4;

/// A number of [`Place`].
pub type PlaceId = u32;
/// Code without a known place.
pub const NOWHERE: PlaceId = 0;

/// A place in the code that accesses memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    pub function: String,
    /// `file:line`.
    pub at: String,
    /// Index of its entry in [`super::meant`].
    pub meant: Option<usize>,
    /// Whether the place synchronises workers.
    pub orders: bool,
}

/// The last access of a worker to a line.
#[derive(Clone, Copy, Default)]
struct Touch {
    /// Clock of the worker; 0: never.
    clock: u32,
    meant: Option<u8>,
}

/// Number of accesses of one worker to one line at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub reads: u32,
    pub writes: u32,
}

#[derive(Default)]
pub struct Line {
    /// Workers with the line in their caches, one bit each.
    sharers: u8,
    /// Number of times that the line moved from one worker's cache to another's.
    pub transfers: u32,
    /// Number of unordered accesses: two workers write, and one writes while another reads.
    pub fights: u32,
    pub looks: u32,
    /// Last accesses by worker, read or write, and whether the place is in the list.
    last: [[[Touch; 2]; 2]; WORKERS],
    /// Clocks that synchronising places have stored at the line.
    left: [u32; WORKERS],
    pub uses: Vec<((usize, PlaceId), Use)>,
    /// The call stack of each worker's and place's first unordered access.
    pub stacks: Vec<((usize, PlaceId), Vec<u64>)>,
}

/// Classification of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Used by one worker, or read only.
    Own,
    /// Handed off between workers, in order.
    Handed,
    /// Only unordered accesses of an entry of the list.
    Meant(usize),
    /// Written by one worker, read often by another without order.
    Looked,
    /// Written by two workers without order.
    Fought,
}

/// Number of unordered reads of a line that another worker writes; fewer cost nothing.
pub const OFTEN: u32 = 8;

/// All accessed lines.
pub struct Lines {
    pub lines: HashMap<u64, Line>,
    clocks: [[u32; WORKERS]; WORKERS],
}

/// The accessing worker and code place.
pub struct By<'a> {
    pub worker: usize,
    pub place: PlaceId,
    pub is: &'a Place,
    /// Returns the call stack.
    pub stack: &'a dyn Fn() -> Vec<u64>,
}

impl Default for Lines {
    fn default() -> Self {
        let mut clocks = [[0; WORKERS]; WORKERS];
        (0..WORKERS).for_each(|w| clocks[w][w] = 1);
        Lines {
            lines: HashMap::new(),
            clocks,
        }
    }
}

impl Lines {
    /// Records an access to memory.
    pub fn touch(&mut self, access: Access, by: &By<'_>) {
        let last = access.address.wrapping_add(access.bytes - 1) / LINE;
        for number in access.address / LINE..=last {
            self.touch_line(number, access, by);
        }
    }

    fn touch_line(&mut self, number: u64, access: Access, by: &By<'_>) {
        let line = self.lines.entry(number).or_default();
        let me = by.worker;
        if by.is.orders {
            // A read adopts the clocks stored at the line; a write stores this worker's clocks.
            for other in 0..WORKERS {
                let known = &mut self.clocks[me][other];
                *known = (*known).max(if access.reads { line.left[other] } else { 0 });
            }
        }
        line.note(access, by);
        line.compare(access, by, &self.clocks[me]);
        let touch = Touch {
            clock: self.clocks[me][me],
            meant: by.is.meant.map(|m| m as u8),
        };
        let meant = usize::from(touch.meant.is_some());
        if access.reads {
            line.last[me][0][meant] = touch;
        }
        if access.writes {
            line.last[me][1][meant] = touch;
        }
        if by.is.orders && access.writes {
            for other in 0..WORKERS {
                line.left[other] = line.left[other].max(self.clocks[me][other]);
            }
            self.clocks[me][me] += 1;
        }
    }
}

impl Line {
    /// Counts the access, and whether the line moves between caches.
    fn note(&mut self, access: Access, by: &By<'_>) {
        let me = 1 << by.worker;
        let moves = if access.writes {
            self.sharers & !me != 0
        } else {
            self.sharers & me == 0 && self.sharers != 0
        };
        // Several workers may cache a line that one has written; a write leaves it in one cache.
        let written = self.uses.iter().any(|(_, u)| u.writes > 0);
        if moves && (written || access.writes) {
            self.transfers += 1;
        }
        self.sharers = if access.writes { me } else { self.sharers | me };
        let key = (by.worker, by.place);
        let at = self.uses.iter().position(|(k, _)| *k == key);
        let at = at.unwrap_or_else(|| {
            self.uses.push((key, Use::default()));
            self.uses.len() - 1
        });
        let of = &mut self.uses[at].1;
        of.reads += u32::from(access.reads);
        of.writes += u32::from(access.writes);
    }

    /// Compares the access with the others' last accesses that this worker does not know of.
    fn compare(&mut self, access: Access, by: &By<'_>, known: &[u32; WORKERS]) {
        let mine = by.is.meant.map(|m| m as u8);
        let (mut fights, mut looks) = (false, false);
        for other in (0..WORKERS).filter(|w| *w != by.worker) {
            let unknown =
                |t: &Touch| t.clock > known[other] && !(t.meant.is_some() && t.meant == mine);
            let [reads, writes] = &self.last[other];
            let written = writes.iter().any(unknown);
            fights |= access.writes && written;
            looks |= written || access.writes && reads.iter().any(unknown);
        }
        if !fights && !looks {
            return;
        }
        self.fights += u32::from(fights);
        self.looks += u32::from(looks && !fights);
        let key = (by.worker, by.place);
        if !self.stacks.iter().any(|(k, _)| *k == key) {
            self.stacks.push((key, (by.stack)()));
        }
    }

    /// Number of reads and writes of a worker.
    pub fn of(&self, worker: usize) -> Use {
        let mine = self.uses.iter().filter(|((w, _), _)| *w == worker);
        mine.fold(Use::default(), |sum, (_, u)| Use {
            reads: sum.reads + u.reads,
            writes: sum.writes + u.writes,
        })
    }

    pub fn verdict(&self, places: &[Place]) -> Verdict {
        if self.fights > 0 {
            return Verdict::Fought;
        }
        if self.looks >= OFTEN {
            return Verdict::Looked;
        }
        if self.transfers == 0 {
            return Verdict::Own;
        }
        let mut meant = self
            .uses
            .iter()
            .filter_map(|((_, p), _)| places[*p as usize].meant);
        meant.next().map_or(Verdict::Handed, Verdict::Meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Place> {
        let ring = Place {
            meant: Some(3),
            orders: true,
            ..Place::default()
        };
        vec![Place::default(), ring]
    }

    /// `r` or `w`, the worker, the address, the place.
    fn run(script: &[(char, usize, u64, PlaceId)]) -> Lines {
        let (mut lines, places) = (Lines::default(), places());
        for &(way, worker, address, place) in script {
            let by = By {
                worker,
                place,
                is: &places[place as usize],
                stack: &Vec::new,
            };
            let access = Access {
                address,
                bytes: 8,
                reads: way == 'r',
                writes: way == 'w',
            };
            lines.touch(access, &by);
        }
        lines
    }

    fn verdict(script: &[(char, usize, u64, PlaceId)], address: u64) -> Verdict {
        run(script).lines[&(address / LINE)].verdict(&places())
    }

    #[test]
    fn two_writers_of_one_line_fight_even_at_different_words() {
        assert_eq!(
            verdict(&[('w', 0, 0, 0), ('w', 1, 8, 0)], 0),
            Verdict::Fought
        );
        assert_eq!(verdict(&[('w', 0, 0, 0), ('w', 1, 64, 0)], 0), Verdict::Own);
        let straddles = run(&[('w', 0, 60, 0), ('w', 1, 64, 0)]);
        assert_eq!(straddles.lines[&1].verdict(&places()), Verdict::Fought);
    }

    #[test]
    fn who_reads_often_what_another_writes_is_told() {
        let script: Vec<_> = (0..20)
            .map(|n| (if n % 2 == 0 { 'w' } else { 'r' }, n % 2, 0, 0))
            .collect();
        assert_eq!(verdict(&script, 0), Verdict::Looked);
        assert_eq!(run(&script).lines[&0].transfers, 19);
        let read: Vec<_> = (0..20).map(|n| ('r', n % 2, 0, 0)).collect();
        assert_eq!(verdict(&read, 0), Verdict::Own);
        assert_eq!(run(&read).lines[&0].transfers, 0);
    }

    /// The ring's index is at 0, the data at 128.
    #[test]
    fn what_goes_through_a_ring_is_handed_over() {
        let there = [
            ('w', 0, 128, 0),
            ('w', 0, 0, 1),
            ('r', 1, 0, 1),
            ('w', 1, 128, 0),
        ];
        assert_eq!(verdict(&there, 128), Verdict::Handed);
        assert_eq!(verdict(&there, 0), Verdict::Meant(3));
        // Access to the data after it was handed off.
        let late = [
            ('w', 0, 0, 1),
            ('w', 0, 128, 0),
            ('r', 1, 0, 1),
            ('w', 1, 128, 0),
        ];
        assert_eq!(verdict(&late, 128), Verdict::Fought);
        // The knowledge of another worker is passed on.
        let on = [
            ('w', 0, 128, 0),
            ('w', 0, 0, 1),
            ('r', 1, 0, 1),
            ('w', 1, 256, 1),
            ('r', 2, 256, 1),
            ('w', 2, 128, 0),
        ];
        assert_eq!(verdict(&on, 128), Verdict::Handed);
    }

    #[test]
    fn a_meant_word_on_a_line_with_others_is_no_excuse() {
        assert_eq!(
            verdict(&[('w', 0, 0, 1), ('w', 1, 0, 1)], 0),
            Verdict::Meant(3)
        );
        let mut script = Vec::new();
        for _ in 0..OFTEN {
            script.extend([('w', 0, 8, 0), ('r', 1, 0, 1)]);
        }
        assert_eq!(verdict(&script, 0), Verdict::Looked);
        assert_eq!(
            verdict(&[('w', 0, 8, 0), ('w', 1, 0, 1)], 0),
            Verdict::Fought
        );
    }
}
