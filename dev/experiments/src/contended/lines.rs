//! Cache lines and who touches them: which are handed from worker to worker in good order, which two workers fight for.
//!
//! Each worker has a clock, and knows how far it has seen the clocks of the others. What synchronises (the places of
//! [`super::meant`] that say so) carries that knowledge: who writes leaves what it knows at the line, who reads takes it up. A
//! worker that touches a line which another has written, or writes one which another has read, without knowing of that, contends
//! for it: nothing keeps both from doing so at the same time. With knowledge the line was handed over, as packets are.

use super::decode::Access;
use std::collections::HashMap;

/// Bytes of a line.
pub const LINE: u64 = 64;
/// The most workers that can be watched.
pub const WORKERS: usize = 4;

/// A number of [`Place`].
pub type PlaceId = u32;
/// Nothing is known of the code.
pub const NOWHERE: PlaceId = 0;

/// A place in the code that touches memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    pub function: String,
    /// `file:line`.
    pub at: String,
    /// The number of the entry of [`super::meant`] that it belongs to.
    pub meant: Option<usize>,
    /// What it does orders what others do.
    pub orders: bool,
}

/// The last time that a worker touched a line.
#[derive(Clone, Copy, Default)]
struct Touch {
    /// 0: never.
    clock: u32,
    meant: Option<u8>,
}

/// What one worker does to one line at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub reads: u32,
    pub writes: u32,
}

#[derive(Default)]
pub struct Line {
    /// Workers that have it in their caches, a bit each.
    sharers: u8,
    /// Times that it went from one worker's cache to another's.
    pub transfers: u32,
    /// Times that two workers wrote it without order, and times that one wrote and another read it so.
    pub fights: u32,
    pub looks: u32,
    /// Touches by places that are meant to, and by those that are not.
    last: [[[Touch; 2]; 2]; WORKERS],
    /// What synchronising places have left.
    left: [u32; WORKERS],
    pub uses: Vec<((usize, PlaceId), Use)>,
    /// The calls that led to the first fight of each worker and place.
    pub stacks: Vec<((usize, PlaceId), Vec<u64>)>,
}

/// How a line is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// One worker's own, or read only.
    Own,
    /// It goes from worker to worker, in order.
    Handed,
    /// An entry of the list.
    Meant(usize),
    /// Written by one, read often by another.
    Looked,
    /// Written by two.
    Fought,
}

/// Unordered reads of a line that another worker writes: fewer are no cost.
pub const OFTEN: u32 = 8;

/// All lines that were touched.
pub struct Lines {
    pub lines: HashMap<u64, Line>,
    clocks: [[u32; WORKERS]; WORKERS],
}

/// Who touches, from where.
pub struct By<'a> {
    pub worker: usize,
    pub place: PlaceId,
    pub is: &'a Place,
    /// Tells the calls that led here.
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
    /// Somebody touches a piece of memory.
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
            // A look takes up what was left; a store leaves what is known.
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
    /// Count it, and whether the line changes caches.
    fn note(&mut self, access: Access, by: &By<'_>) {
        let me = 1 << by.worker;
        let moves = if access.writes {
            self.sharers & !me != 0
        } else {
            self.sharers & me == 0 && self.sharers != 0
        };
        // Many may read what one has written; only one has what it writes.
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

    /// Compare it with what others did last, as far as this worker does not know of that.
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

    /// How often a worker reads and writes it.
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

    /// The ring's index at 0, the thing at 128.
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
        // It was touched again after it was given.
        let late = [
            ('w', 0, 0, 1),
            ('w', 0, 128, 0),
            ('r', 1, 0, 1),
            ('w', 1, 128, 0),
        ];
        assert_eq!(verdict(&late, 128), Verdict::Fought);
        // What another worker knows is passed on.
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
