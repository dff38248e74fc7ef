//! A router that scapy plays on a link: it sends what a test requests, and records what the other side sends.

use super::bed::Bed;
use super::oracle;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A router that runs Python lines and prints their values, and records what the other side sends. Routers in `alive` reply to
/// solicitations with their MAC address there; `heard` has the received solicitations: target, whether multicast, time.
/// `passed` has the ports of UDP packets by destination MAC address.
const ROUTER: &str = "import socket,sys,time,json,threading,signal\n\
    from scapy.all import Ether,IPv6,ICMPv6ND_RA,ICMPv6ND_NA,ICMPv6NDOptPrefixInfo,ICMPv6NDOptMTU,ICMPv6NDOptSrcLLAddr,\
    ICMPv6NDOptDstLLAddr,ICMPv6Unknown,Raw\n\
    signal.alarm(170)\n\
    s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); s.bind(('e',0)); s.settimeout(0.2)\n\
    asked=[]; probed=[]; answer=[]; alive={}; heard=[]; passed={}\n\
    n=lambda b: socket.inet_ntop(socket.AF_INET6,b)\n\
    def listen():\n\
    \x20 while True:\n\
    \x20  try: f,w=s.recvfrom(2000)\n\
    \x20  except socket.timeout: continue\n\
    \x20  if w[2]==4 or f[12:14]!=b'\\x86\\xdd': continue\n\
    \x20  if f[20]==17: passed.setdefault(f[:6].hex(':'),[]).append(f[56]*256+f[57])\n\
    \x20  if f[20]!=58: continue\n\
    \x20  if f[54]==135 and f[22:38]!=bytes(16):\n\
    \x20   t=n(f[62:78]); heard.append([t,f[38]==255,time.time()])\n\
    \x20   if t in alive: m=alive[t]; put(Ether(src=m,dst=f[6:12].hex(':'))/IPv6(src=t,dst=n(f[22:38]),hlim=255)/\
    ICMPv6ND_NA(tgt=t,R=1,S=1,O=1)/ICMPv6NDOptDstLLAddr(lladdr=m))\n\
    \x20  if f[54]==133: asked.append([round(time.time(),3),f[:6].hex(':'),n(f[22:38]),n(f[38:54]),f[21],len(f),good(f)])\n\
    \x20  if f[54]==135 and f[22:38]==bytes(16):\n\
    \x20   t=n(f[62:78]); probed.append(t)\n\
    \x20   if t in answer: put(Ether(src='02:00:00:00:00:66',dst='33:33:00:00:00:01')/IPv6(src=t,dst='ff02::1',hlim=255)/\
    ICMPv6ND_NA(tgt=t,R=0,S=0,O=1)/ICMPv6NDOptDstLLAddr(lladdr='02:00:00:00:00:66'))\n\
    def good(f):\n\
    \x20 p=Ether(f); x=p[IPv6].payload; c=x.cksum; del x.cksum; return Ether(bytes(p))[IPv6].payload.cksum==c\n\
    def put(p): s.send(bytes(p))\n\
    def pi(prefix,valid=1000,preferred=500,L=1,A=1,plen=64):\n\
    \x20 return ICMPv6NDOptPrefixInfo(prefix=prefix,prefixlen=plen,L=L,A=A,validlifetime=valid,preferredlifetime=preferred)\n\
    def ra(*options,src='fe80::55',dst='ff02::1',mac='02:00:00:00:00:55',hlim=255,life=900,prf=0,to='33:33:00:00:00:01',**k):\n\
    \x20 p=Ether(src=mac,dst=to)/IPv6(src=src,dst=dst,hlim=hlim)/ICMPv6ND_RA(routerlifetime=life,prf=prf,**k)/ICMPv6NDOptSrcLLAddr(lladdr=mac)\n\
    \x20 for o in options: p=p/o\n\
    \x20 put(p)\n\
    threading.Thread(target=listen,daemon=True).start(); print('\"ready\"',flush=True)\n\
    for line in sys.stdin:\n\
    \x20 try: print(json.dumps(eval(line)),flush=True)\n\
    \x20 except Exception as e: print(json.dumps('ERROR '+repr(e)),flush=True)\n";

/// One or all routers of a link.
pub struct Router {
    child: Child,
    tell: ChildStdin,
    message: BufReader<ChildStdout>,
}

impl Router {
    pub fn new(bed: &Bed, at: &str) -> Router {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &bed.name(at)])
            .arg(oracle::python().unwrap())
            .args(["-c", ROUTER]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (tell, message) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let message = BufReader::new(message);
        let mut router = Router {
            child,
            tell,
            message,
        };
        assert_eq!(router.read(), "ready");
        router
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.message.read_line(&mut line).unwrap();
        let it = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(!line.starts_with("\"ERROR"), "{line}");
        it
    }

    /// The value of a line of Python.
    pub fn does(&mut self, line: &str) -> Value {
        writeln!(self.tell, "{line}").unwrap();
        self.read()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
