//! Packets held outside the graph and resumed: none is lost or duplicated; order and chains are kept.

use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::Mutex;
use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum ToTest { Out => "out", Wait => "wait" } }
nexts! { enum FromWait { Drop => "error-drop", Out => "out" } }
counters! {
    /// What wait counts.
    enum Count {
        /// the packet's number is even
        Unwanted = "unwanted" (Error),
    }
}

/// The length of the packet with a number. A packet begins with both.
fn length(number: u32) -> usize {
    if number.is_multiple_of(7) { 5000 } else { 64 }
}

/// Sends `left` packets to `wait`, and resumed packets to `out`.
struct Numbers {
    left: u32,
    next: u32,
    back: Arc<ArrayQueue<HeldPacket>>,
    codes: Column,
}

impl Source for Numbers {
    const NAME: &'static str = "numbers";
    type Next = ToTest;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToTest>) -> usize {
        let fresh = out.new_from_held(|| self.back.pop());
        self.codes.words_mut(fresh.len()).fill(ToTest::Out as u32);
        let resumed = fresh.send_by(&mut self.codes);
        let n = (self.left as usize).min(10);
        let mut fresh = out.alloc(n, 1);
        for row in 0..fresh.len() {
            let mut bytes = vec![0x5a; length(self.next)];
            bytes[..4].copy_from_slice(&self.next.to_be_bytes());
            assert!(fresh.write(row, &bytes));
            (self.next, self.left) = (self.next + 1, self.left - 1);
        }
        resumed
            + if fresh.is_empty() {
                0
            } else {
                fresh.send(ToTest::Wait)
            }
    }
}

/// Holds two of three packets; of the others the even ones are dropped, and some odd ones are freed.
struct Wait(Arc<ArrayQueue<(u32, HeldPacket)>>);

impl Node for Wait {
    const NAME: &'static str = "wait";
    type Next = FromWait;
    type Count = Count;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, FromWait>) -> Consumed {
        let queue = &self.0;
        v.each_or_hold(
            |packet| {
                let number = number(packet.bytes());
                match (number % 3, number % 5, number % 2) {
                    (1 | 2, ..) => HoldAction::Hold(number),
                    (_, 0, _) => HoldAction::Done,
                    (_, _, 0) => {
                        packet.fail(cx, Count::Unwanted);
                        HoldAction::Send(FromWait::Drop)
                    }
                    _ => HoldAction::Send(FromWait::Out),
                }
            },
            |key, held| assert!(queue.push((key, held)).is_ok()),
        )
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Number, length and receive interface of each packet.
type Seen = Arc<Mutex<Vec<(u32, usize, u32)>>>;

struct Out(Seen);

impl Node for Out {
    const NAME: &'static str = "out";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let view = v.view(row);
            let mut bytes = Vec::new();
            view.segments(0, |part| bytes.extend_from_slice(part));
            assert!(bytes[4..].iter().all(|b| *b == 0x5a));
            let seen = (number(&bytes), bytes.len(), view.rx());
            self.0.lock().unwrap().push(seen);
        }
        v.free()
    }
}

#[test]
fn held_packets_come_back_whole_and_in_order() {
    for vector_size in [4, 256] {
        let pool = Pool::new(2048).unwrap();
        let settings = Settings {
            vector_size,
            clock: Clock::manual(),
            ..Settings::default()
        };
        let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
        let (held, back) = (
            Arc::new(ArrayQueue::new(512)),
            Arc::new(ArrayQueue::new(512)),
        );
        let seen = Seen::default();
        let (to, from, sink) = (held.clone(), back.clone(), seen.clone());
        let add = engine.add_source("numbers", move |_| Numbers {
            left: 90,
            next: 1,
            back: from.clone(),
            codes: Column::new(256),
        });
        add.unwrap();
        engine.add("wait", move |_| Wait(to.clone())).unwrap();
        engine.add("out", move |_| Out(sink.clone())).unwrap();
        let mut worker = engine.build().unwrap().pop().unwrap();
        while worker.step() > 0 {}
        let at_once: Vec<u32> = std::mem::take(&mut *seen.lock().unwrap())
            .iter()
            .map(|s| s.0)
            .collect();
        assert_eq!(at_once, [3, 9, 21, 27, 33, 39, 51, 57, 63, 69, 81, 87]);
        let long = (1..=90u32).filter(|n| n % 3 != 0 && n % 7 == 0).count();
        assert_eq!(held.len(), 60);
        assert_eq!(
            pool.report().in_use(),
            60 + 2 * long,
            "allocated = free + held"
        );
        while let Some((key, packet)) = held.pop() {
            assert_eq!((packet.len(), packet.rx()), (length(key), 1));
            // Ten are dropped, which frees their buffers; the others are resumed.
            if key > 15 {
                assert!(back.push(packet).is_ok());
            }
        }
        while worker.step() > 0 {}
        let want = (16..=90).filter(|n| n % 3 != 0);
        let want: Vec<_> = want.map(|n| (n, length(n), 1)).collect();
        assert_eq!(*seen.lock().unwrap(), want);
        assert_eq!(pool.report().in_use(), 0);
    }
}

#[test]
fn a_packet_of_another_pool_does_not_come_in() {
    let other = Pool::new(64).unwrap();
    let queue = Arc::new(ArrayQueue::new(512));
    let run = |pool: &Arc<Pool>, left| {
        let mut engine = Engine::new(Settings::default(), pool.clone(), Domain::new()).unwrap();
        let (held, back, seen) = (
            Arc::new(ArrayQueue::new(64)),
            queue.clone(),
            Seen::default(),
        );
        let (to, sink) = (held.clone(), seen.clone());
        let add = engine.add_source("numbers", move |_| Numbers {
            left,
            next: 1,
            back: back.clone(),
            codes: Column::new(256),
        });
        add.unwrap();
        engine.add("wait", move |_| Wait(to.clone())).unwrap();
        engine.add("out", move |_| Out(sink.clone())).unwrap();
        let mut worker = engine.build().unwrap().pop().unwrap();
        while worker.step() > 0 {}
        (held, seen)
    };
    let (held, _) = run(&other, 4);
    while let Some((_, packet)) = held.pop() {
        assert!(queue.push(packet).is_ok());
    }
    assert_eq!(queue.len(), 3);
    let pool = Pool::new(64).unwrap();
    let (_, seen) = run(&pool, 0);
    assert!(seen.lock().unwrap().is_empty() && queue.is_empty());
    assert_eq!((other.report().in_use(), pool.report().in_use()), (0, 0));
}
