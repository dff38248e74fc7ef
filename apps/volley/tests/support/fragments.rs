//! Fragments of IPv4: single ones for streams of the packet generator, and a flood of them from a namespace.

use super::bed::Bed;
use super::{Daemon, text};
use std::process::Child;

/// A router with three workers, and 10.0.0.1/24 on pg0.
pub fn three_workers() -> Daemon {
    let daemon = Daemon::start("[engine]\nworkers = 3\n", &[]);
    daemon.ok("create packet-generator interface pg0 mac 02:fe:00:00:00:00 mtu 1500");
    daemon.ok("set interface state pg0 up");
    daemon.ok("set interface ip address pg0 10.0.0.1/24");
    daemon
}

/// The fragment at byte `from` of a datagram of 10.0.0.2, 32 bytes long; `whole` is the datagram without its IP header. `more`
/// is the flag "more fragments".
pub fn part(
    id: u16,
    (protocol, to): (u8, [u8; 4]),
    whole: &[u8],
    from: usize,
    more: bool,
) -> Vec<u8> {
    let flags = u16::from(more) << 13 | (from / 8) as u16;
    let mut p = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 52];
    p.extend(id.to_be_bytes());
    p.extend(flags.to_be_bytes());
    p.extend([64, protocol, 0, 0, 10, 0, 0, 2]);
    p.extend(to);
    let sum = volley_wire::checksum::checksum(&p[14..]);
    p[24..26].copy_from_slice(&sum.to_be_bytes());
    p.extend(&whole[from..from + 32]);
    p
}

/// Sends fragments of UDP from host a for six seconds, each of a separate datagram; then prints how many.
const FLOOD: &str = "
import signal; signal.alarm(40)
router=bytes.fromhex('ROUTER'.replace(':',''))
def packet(n):
    ip=struct.pack('>BBHHHBBH',0x45,0,60,n&0xffff,WORD,64,17,0)+bytes([10,77,n>>24&255,n>>16&255])+bytes([TO])
    total=sum(struct.unpack('>10H',ip)); total=(total&0xffff)+(total>>16); total=(total&0xffff)+(total>>16)
    return router+me+b'\\x08\\0'+ip[:10]+struct.pack('>H',total^0xffff)+ip[12:]+b'x'*40
end=time.monotonic()+6; n=1<<16
while time.monotonic()<end:
    for _ in range(50): s.send(packet(n)); n+=1
    time.sleep(0.004)
print(n-(1<<16))
";

pub struct Flood(Child);

impl Flood {
    /// Starts a flood through the router to an address. `word` is Python for the flags and the offset of fragment `n`.
    pub fn start(bed: &Bed, daemon: &Daemon, word: &str, to: [u8; 4]) -> Flood {
        let mac = daemon.json("show interface left")["interfaces"][0]["mac"].clone();
        let program = FLOOD
            .replace("ROUTER", mac.as_str().unwrap())
            .replace("WORD", word)
            .replace("TO", &to.map(|byte| byte.to_string()).join(","));
        Flood(bed.python("a", &program))
    }

    /// Waits for the end of the flood; returns the number of fragments.
    pub fn sent(self) -> u64 {
        let message = text(&self.0.wait_with_output().unwrap().stdout);
        message.trim().parse().unwrap()
    }
}
