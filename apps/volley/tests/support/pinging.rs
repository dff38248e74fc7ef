//! A ping that runs while a test does something, and reports every missing reply.

use super::bed::Bed;
use super::signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970, the clock of `ping -D`.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs_f64()
}

/// The longest duration of a ping, in seconds.
const LONGEST: &str = "5400";
/// The sequence number wraps: a reply belongs to a request that was missed at most this many seconds before.
const LATE: f64 = 60.0;

/// A ping from host a that runs until it is stopped.
pub struct Pinging {
    child: Child,
    reader: Option<JoinHandle<Pinged>>,
}

/// The result of a [`Pinging`].
#[derive(Default)]
pub struct Pinged {
    /// The time of each missing reply.
    pub missed: Vec<f64>,
    /// The number of replies.
    pub answered: usize,
}

/// Time and sequence number of a line such as `[1.5] 64 bytes from ...: icmp_seq=7 ttl=63 time=0.2 ms`.
fn parse(line: &str) -> Option<(f64, u32)> {
    let time = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
    let digits = line.split("icmp_seq=").nth(1)?.split(' ').next()?;
    Some((time, digits.parse().ok()?))
}

/// Reads the output of ping as it comes, because a full pipe would stop it.
fn read(out: ChildStdout) -> Pinged {
    let (mut missed, mut answered) = (Vec::new(), 0);
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let Some((time, number)) = parse(&line) else {
            continue;
        };
        if line.contains("no answer yet") {
            missed.push((time, number));
        } else if line.contains(" ttl=") {
            // ping also prints `no answer yet` for a reply that comes after the next request.
            missed.retain(|(then, it)| *it != number || time - then > LATE);
            answered += 1;
        }
    }
    Pinged {
        missed: missed.into_iter().map(|(time, _)| time).collect(),
        answered,
    }
}

impl Pinging {
    /// `every` is the time between two packets, in seconds.
    pub fn start(bed: &Bed, to: &str, every: &str) -> Self {
        let space = bed.name("a");
        let words = [
            "netns", "exec", &space, "ping", "-n", "-D", "-O", "-i", every, "-w", LONGEST, to,
        ];
        let child = Command::new("ip")
            .args(words)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let out = child.stdout.take().unwrap();
        let reader = Some(std::thread::spawn(move || read(out)));
        Pinging { child, reader }
    }

    pub fn stop(mut self) -> Pinged {
        signal(self.child.id(), "INT");
        self.reader.take().unwrap().join().unwrap()
    }
}

impl Drop for Pinging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
