//! Long packets and offload requests, from a driver's source to a driver's transmit node.

use std::sync::{Arc, Mutex};
use volley_graph::buf::Pool;
use volley_graph::harness::{In, run_once};
use volley_graph::{
    BadOffload, Checksum, Clock, ColumnInfo, ColumnKind, Consumed, Cx, Domain, Engine, Gso,
    GsoKind, Isa, Level, Life, NoCounters, NoNext, Node, Offload, Output, PacketTrace, Settings,
    Source, Vector, nexts,
};

nexts! {
    enum Next { Tx => "tx" }
}

/// The transmitted packets: segment lengths, bytes, offload.
type Sent = Arc<Mutex<Vec<(Vec<usize>, Vec<u8>, Offload)>>>;

struct Tx(Sent);

impl Node for Tx {
    const NAME: &'static str = "tx";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let view = v.view(row);
            let lens = view.slices().map(<[u8]>::len).collect();
            let bytes = view.slices().flatten().copied().collect();
            self.0.lock().unwrap().push((lens, bytes, view.offload()));
        }
        v.free()
    }
}

struct Rx {
    wanted: Vec<(usize, usize, Offload)>,
    refused: Arc<Mutex<Vec<BadOffload>>>,
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

impl Source for Rx {
    const NAME: &'static str = "rx";
    type Next = Next;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        let mut fresh = out.alloc(self.wanted.len(), 0);
        for (row, (len, room, offload)) in self.wanted.drain(..).enumerate() {
            let got = fresh.scatter(row, room, |slices| {
                let mut left = &pattern(len)[..];
                for slice in slices.iter_mut() {
                    let n = left.len().min(slice.len());
                    slice[..n].copy_from_slice(&left[..n]);
                    left = &left[n..];
                }
                len - left.len()
            });
            assert_eq!(got, Some(len));
            if let Err(why) = fresh.set_offload(row, &offload) {
                self.refused.lock().unwrap().push(why);
            }
        }
        fresh.send(Next::Tx)
    }
}

fn gso(size: u16, headers: u16) -> Option<Gso> {
    Some(Gso {
        kind: GsoKind::new(0).with_flag(true),
        size,
        headers,
    })
}

fn sum(start: u16, offset: u16) -> Option<Checksum> {
    Some(Checksum { start, offset })
}

#[test]
fn long_packets_keep_their_bytes_and_requests() {
    let whole = Offload {
        checksum: sum(34, 16),
        gso: gso(1448, 66),
    };
    let bad = |checksum, gso| (100, 100, Offload { checksum, gso });
    let wanted = vec![
        (60, 65_550, Offload::NONE),
        (65_549, 65_550, whole),
        (2048, 4096, Offload { gso: None, ..whole }),
        (2049, 4096, whole),
        bad(sum(84, 16), None),
        bad(sum(u16::MAX, u16::MAX), None),
        bad(None, gso(0, 54)),
        bad(None, gso(1448, 101)),
        bad(None, gso(1448, 0)),
    ];
    let pool = Pool::new(4096).unwrap();
    let settings = Settings {
        level: Level::detect(),
        clock: Clock::manual(),
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    let (sent, refused) = (Sent::default(), Arc::default());
    let (out, no) = (sent.clone(), Arc::clone(&refused));
    let feed = wanted.clone();
    engine.add("tx", move |_| Tx(out.clone())).unwrap();
    engine
        .add_source("rx", move |_| Rx {
            wanted: feed.clone(),
            refused: Arc::clone(&no),
        })
        .unwrap();
    let mut workers = engine.build().unwrap();
    assert_eq!(workers[0].step(), wanted.len());
    assert_eq!(pool.report().in_use(), 0);
    let sent = sent.lock().unwrap();
    for ((len, _, offload), (lens, bytes, got)) in wanted.iter().zip(&*sent).take(4) {
        assert_eq!(*bytes, pattern(*len));
        assert!(lens.iter().all(|&n| n <= 2048) && lens.len() == len.div_ceil(2048));
        assert_eq!(got, offload);
    }
    assert!(
        sent[4..]
            .iter()
            .all(|(.., offload)| *offload == Offload::NONE)
    );
    use BadOffload as B;
    let why = [B::Checksum, B::Checksum, B::Size, B::Headers, B::Headers];
    assert_eq!(*refused.lock().unwrap(), why);
}

#[test]
fn a_long_packet_without_buffers_leaves_an_empty_one() {
    struct Short(Arc<Mutex<Vec<Option<usize>>>>);
    impl Source for Short {
        const NAME: &'static str = "short";
        type Next = Next;
        type Count = NoCounters;
        fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
            let mut fresh = out.alloc(60, 0);
            let got = fresh.scatter(0, 65_535, |_| unreachable!());
            self.0.lock().unwrap().push(got);
            fresh.send(Next::Tx)
        }
    }
    let pool = Pool::new(64).unwrap();
    let settings = Settings {
        clock: Clock::manual(),
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    let (sent, got) = (Sent::default(), Arc::default());
    let (out, seen) = (sent.clone(), Arc::clone(&got));
    engine.add("tx", move |_| Tx(out.clone())).unwrap();
    engine
        .add_source("short", move |_| Short(Arc::clone(&seen)))
        .unwrap();
    let mut workers = engine.build().unwrap();
    workers[0].step();
    assert_eq!(*got.lock().unwrap(), [None]);
    assert!(
        sent.lock()
            .unwrap()
            .iter()
            .all(|(_, bytes, _)| bytes.is_empty())
    );
    assert_eq!(pool.report().in_use(), 0);
}

/// The length to which a packet is cut.
const CUT: ColumnInfo = ColumnInfo::new("cut", ColumnKind::Value, 5, Life::Hop);

/// Cuts each packet to the length in its column, and records the buffers and bytes that a device would get.
struct Cut(Arc<Mutex<Vec<(usize, usize)>>>);

impl Node for Cut {
    const NAME: &'static str = "cut";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = &[CUT];

    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next>) -> Consumed {
        let cut = |packet: &mut volley_graph::Packet<'_>| {
            packet.truncate(packet.get(CUT.col).unwrap() as usize);
            true
        };
        v.sift(cut, Next::Tx);
        v.trim_chains();
        for row in 0..v.len() {
            let (view, mut members) = (v.view(row), 0);
            view.segments(0, |_| members += 1);
            self.0.lock().unwrap().push((view.len(), members));
        }
        v.send_all(Next::Tx)
    }
}

#[test]
fn members_behind_the_end_are_freed_and_nothing_else() {
    let lengths = [5000, 4097, 4096, 2049, 2048, 60, 0];
    let packets: Vec<In> = lengths
        .iter()
        .map(|&cut| In::new(&pattern(5000)).column(CUT.col, cut))
        .collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let out = run_once(Level::detect(), 7, &packets, &Domain::new(), move |_| {
        Cut(log.clone())
    })
    .unwrap();
    for (out, &len) in out.iter().zip(&lengths) {
        assert_eq!(out.bytes, pattern(5000)[..len as usize]);
    }
    let members = lengths.map(|len| (len as usize, (len as usize).div_ceil(2048).max(1)));
    assert_eq!(*seen.lock().unwrap(), members);
}
