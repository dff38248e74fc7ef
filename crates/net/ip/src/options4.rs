//! Options of an IPv4 header that a router processes (RFC 791, 3.1; RFC 1812, 4.2.2.1 and 5.3.13): parses, checks and fills
//! them in. Section 5 of `docs/forwarding-rules.md`.

use volley_wire::ip4::option;
use volley_wire::tlv::Options;

/// Type of the option "no operation".
const NOTHING: u8 = 1;

/// Flags of a timestamp option.
const TIMES: u8 = 0;
const ADDRESSES: u8 = 1;
const NAMED: u8 = 3;
/// Largest value of the overflow counter.
const OVERFLOWN: u8 = 15;

/// Fault of options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// An option does not fit the header, or its contents are invalid.
    Bad,
    /// A source route is requested.
    SourceRoute,
}

/// Options to fill in, by their offsets behind the fixed header.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Wishes {
    record: Option<usize>,
    stamp: Option<usize>,
}

impl Wishes {
    pub(crate) fn is_any(self) -> bool {
        self.record.or(self.stamp).is_some()
    }
}

/// Parses all options: returns those to fill in, or the first fault and the offset of its byte.
pub(crate) fn read(options: &[u8]) -> Result<Wishes, (Fault, usize)> {
    let (mut wishes, mut behind) = (Wishes::default(), 0);
    for found in Options::classic(options, "IPv4 option") {
        let Ok(found) = found else {
            // The parser does not report the offset of the fault: behind the last option and padding.
            let padding = options[behind..].iter().take_while(|b| **b == NOTHING);
            return Err((Fault::Bad, behind + padding.count()));
        };
        let at = found.offset;
        behind = at + 2 + found.data.len();
        let whole = &options[at..behind];
        let (place, wrong) = match found.kind {
            option::LOOSE_SOURCE_ROUTE | option::STRICT_SOURCE_ROUTE => {
                return Err((Fault::SourceRoute, at));
            }
            option::RECORD_ROUTE => (&mut wishes.record, record_fault(whole)),
            option::TIMESTAMP => (&mut wishes.stamp, stamp_fault(whole)),
            _ => continue,
        };
        // Each option may occur once.
        let wrong = wrong.or(place.is_some().then_some(0));
        if let Some(byte) = wrong {
            return Err((Fault::Bad, at + byte));
        }
        *place = Some(at);
    }
    Ok(wishes)
}

/// Whether an option with a pointer (from 1) in byte 2 has `bytes` left. None if it is full.
fn has_room(option: &[u8], bytes: usize) -> Option<bool> {
    let pointer = usize::from(option[2]);
    (pointer <= option.len()).then_some(pointer + bytes <= option.len() + 1)
}

/// Offset of the invalid byte of a record route, if any.
fn record_fault(option: &[u8]) -> Option<usize> {
    match option {
        [_, _] => Some(1),
        [_, _, (..4), ..] => Some(2),
        _ => (has_room(option, 4) == Some(false)).then_some(2),
    }
}

/// Offset of the invalid byte of a timestamp, if any.
fn stamp_fault(option: &[u8]) -> Option<usize> {
    let [_, _, pointer, flags, ..] = *option else {
        return Some(1);
    };
    let bytes = match flags & 15 {
        ADDRESSES | NAMED => 8,
        _ => 4,
    };
    match has_room(option, bytes) {
        _ if pointer < 5 => Some(2),
        Some(false) => Some(2),
        None if flags >> 4 == OVERFLOWN => Some(3),
        _ => None,
    }
}

/// Fills in the options of `wishes`, which was parsed from the same options: `own` is the address of the egress interface (or
/// the one that the packet was sent to), `day_ms` the milliseconds since midnight UTC.
pub(crate) fn fill(
    options: &mut [u8],
    wishes: Wishes,
    (own, day_ms): (u32, u32),
    is_ours: impl FnOnce(u32) -> bool,
) {
    let rest = |at: Option<usize>| at.map(|at| at..at + usize::from(options[at + 1]));
    let (record, stamp) = (rest(wishes.record), rest(wishes.stamp));
    if let Some(option) = record.and_then(|all| options.get_mut(all)) {
        append(option, &[own]);
    }
    let Some(option) = stamp.and_then(|all| options.get_mut(all)) else {
        return;
    };
    if usize::from(option[2]) > option.len() {
        option[3] += 1 << 4;
        return;
    }
    match option[3] & 15 {
        TIMES => append(option, &[day_ms]),
        ADDRESSES => append(option, &[own, day_ms]),
        NAMED => {
            let at = usize::from(option[2]) - 1;
            let named = [option[at], option[at + 1], option[at + 2], option[at + 3]];
            let named = u32::from_be_bytes(named);
            if is_ours(named) {
                append(option, &[named, day_ms]);
            }
        }
        _ => {}
    }
}

/// Writes words at the pointer and advances it; does nothing if they do not fit.
fn append(option: &mut [u8], words: &[u32]) {
    let at = usize::from(option[2]) - 1;
    let Some(room) = option.get_mut(at..at + 4 * words.len()) else {
        return;
    };
    for (place, word) in room.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    option[2] += 4 * words.len() as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read = Result<Wishes, (Fault, usize)>;

    #[test]
    fn options_are_walked_to_their_end() {
        let none = Ok(Wishes::default());
        let (bad, refused) = (
            |at| Err((Fault::Bad, at)),
            |at| Err((Fault::SourceRoute, at)),
        );
        let cases: [(&[u8], Read); 12] = [
            (&[1, 1, 1, 0], none),
            (&[0, 131, 131, 131], none),
            (&[148, 4, 0, 0], none),
            (&[9, 5, 4, 0], bad(0)),
            (&[9, 1, 4, 0], bad(0)),
            (&[1, 1, 1, 9], bad(3)),
            (&[131, 3, 4, 0], refused(0)),
            (&[1, 137, 3, 4], refused(1)),
            (&[7, 2, 1, 1], bad(1)),
            (&[1, 7, 3, 3], bad(3)),
            (&[7, 6, 4, 0, 0, 0, 1, 1], bad(2)),
            (&[7, 3, 4, 7, 3, 4, 0, 0], bad(3)),
        ];
        for (options, want) in cases {
            assert_eq!(read(options), want, "{options:?}");
        }
    }

    #[test]
    fn what_a_timestamp_says_is_looked_at() {
        let cases: [(&[u8], Option<usize>); 9] = [
            (&[68, 3, 5, 0], Some(1)),
            (&[68, 8, 4, 0, 0, 0, 0, 0], Some(2)),
            (&[68, 8, 5, 0, 0, 0, 0, 0], None),
            (&[68, 8, 6, 0, 0, 0, 0, 0], Some(2)),
            (&[68, 8, 5, 1, 0, 0, 0, 0], Some(2)),
            (&[68, 8, 5, 3, 0, 0, 0, 0], Some(2)),
            (&[68, 8, 9, 0xe0, 0, 0, 0, 0], None),
            (&[68, 8, 9, 0xf0, 0, 0, 0, 0], Some(3)),
            (&[68, 8, 5, 2, 0, 0, 0, 0], None),
        ];
        for (options, wrong) in cases {
            let found = read(options).err();
            assert_eq!(found, wrong.map(|at| (Fault::Bad, at)), "{options:?}");
        }
    }

    fn filled(options: &[u8]) -> Vec<u8> {
        let (mut all, wishes) = (options.to_vec(), read(options).unwrap());
        fill(&mut all, wishes, (0x0a00_0001, 0x0102_0304), |address| {
            address == 0x0a00_0009
        });
        all
    }

    #[test]
    fn addresses_and_times_stand_where_the_pointer_was() {
        let cases: [(&[u8], &[u8]); 8] = [
            (&[7, 7, 4, 0, 0, 0, 0, 0], &[7, 7, 8, 10, 0, 0, 1, 0]),
            (&[7, 7, 8, 9, 9, 9, 9, 0], &[7, 7, 8, 9, 9, 9, 9, 0]),
            (&[68, 8, 5, 0, 0, 0, 0, 0], &[68, 8, 9, 0, 1, 2, 3, 4]),
            (&[68, 8, 9, 0x20, 9, 9, 9, 9], &[68, 8, 9, 0x30, 9, 9, 9, 9]),
            (
                &[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0],
                &[68, 12, 13, 1, 10, 0, 0, 1, 1, 2, 3, 4],
            ),
            (
                &[68, 12, 5, 3, 10, 0, 0, 9, 0, 0, 0, 0],
                &[68, 12, 13, 3, 10, 0, 0, 9, 1, 2, 3, 4],
            ),
            (
                &[68, 12, 5, 3, 10, 0, 0, 8, 0, 0, 0, 0],
                &[68, 12, 5, 3, 10, 0, 0, 8, 0, 0, 0, 0],
            ),
            (
                &[7, 7, 4, 0, 0, 0, 0, 68, 8, 5, 0, 0, 0, 0, 0, 0],
                &[7, 7, 8, 10, 0, 0, 1, 68, 8, 9, 0, 1, 2, 3, 4, 0],
            ),
        ];
        for (options, want) in cases {
            assert_eq!(filled(options), want, "{options:?}");
        }
    }

    proptest! {
        /// Arbitrary bytes are parsed and filled in without a panic, nothing outside the two options is written, and the result
        /// parses to the same options.
        #[test]
        fn hostile_options_stay_inside(options in prop::collection::vec(
            prop_oneof![Just(7u8), Just(68), 0u8..13, any::<u8>()], 0..=40,
        )) {
            let Ok(wishes) = read(&options) else { return Ok(()) };
            let mut all = options.clone();
            fill(&mut all, wishes, (1, 2), |_| true);
            let inside = |at: usize| {
                [wishes.record, wishes.stamp].into_iter().flatten().any(|start| {
                    (start + 2..start + usize::from(options[start + 1])).contains(&at)
                })
            };
            for at in 0..options.len() {
                prop_assert!(all[at] == options[at] || inside(at), "byte {at}");
            }
            match read(&all) {
                Ok(again) => prop_assert_eq!(again, wishes),
                // Less space is left than the next entry needs, or the overflow counter is now full.
                Err((fault, byte)) => {
                    let pointers = [wishes.record, wishes.stamp].into_iter().flatten().map(|at| at + 2);
                    let mut full = pointers.chain(wishes.stamp.map(|at| at + 3));
                    prop_assert!(fault == Fault::Bad && full.any(|at| at == byte), "byte {byte}");
                }
            }
        }
    }
}
