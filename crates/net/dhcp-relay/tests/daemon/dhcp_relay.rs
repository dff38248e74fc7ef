//! The relay of a daemon in network namespaces: host a is the client, host b the server. scapy reads and writes every field;
//! dnsmasq, udhcpc and dhclient are real peers. If a program is missing, a test prints its name and passes.

#[path = "../../../../../apps/volley/tests/support/mod.rs"]
mod support;

use serde_json::Value;
use std::process::{Child, Command, Stdio};
use support::bed::{Bed, counter, has_scapy};
use support::http::Http;
use support::{Daemon, text};

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a program is installed; prints a message if it is not.
fn has(program: &str) -> bool {
    let there = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status();
    let there = there.is_ok_and(|status| status.success());
    if !there {
        println!("SKIP: no {program} (apt-get install dnsmasq-base udhcpc isc-dhcp-client)");
    }
    there
}

fn scapy_bed() -> Option<Bed> {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return None;
    }
    Bed::new()
}

/// dnsmasq in b, with addresses for the network of a.
fn dnsmasq(bed: &Bed, daemon: &Daemon) -> Running {
    let file = |name: &str| daemon.folder.file(name).display().to_string();
    // `ip` executes the program in its own process, so that killing the child ends it.
    let child = Command::new("ip")
        .args(["netns", "exec", &bed.name("b")])
        .args([
            "dnsmasq",
            "--no-daemon",
            "--port=0",
            "--conf-file=/dev/null",
            "--user=root",
        ])
        .args([
            "--no-ping",
            "--log-dhcp",
            "--dhcp-authoritative",
            "--interface=e",
        ])
        .arg(format!("--pid-file={}", file("dnsmasq.pid")))
        .arg(format!("--dhcp-leasefile={}", file("leases")))
        .arg("--dhcp-range=10.77.1.10,10.77.1.20,255.255.0.0,1h")
        .arg("--dhcp-range=2001:db8:77::100,2001:db8:77::1ff,64,1h")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(daemon.folder.file("dnsmasq.log")).unwrap())
        .spawn();
    Running(child.unwrap())
}

fn log_of_server(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.folder.file("dnsmasq.log")).unwrap_or_default()
}

#[test]
fn a_client_gets_an_ip4_lease_of_a_real_server() {
    if !has("dnsmasq") || !has("udhcpc") {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dhcp-relay left server 10.78.0.9 server 10.78.0.2");
    let _server = dnsmasq(&bed, &daemon);
    daemon.wait_for("dnsmasq", |d| log_of_server(d).contains("DHCP, IP range"));
    bed.ip("a", "addr flush dev e");
    let script = daemon.folder.file("script");
    std::fs::write(&script, "#!/bin/sh\necho \"$1 $ip $serverid\"\n").unwrap();
    let mode = Command::new("chmod").arg("755").arg(&script).status();
    assert!(mode.unwrap().success());
    let script = script.display().to_string();
    for more in [&[][..], &["-B"]] {
        let words = [
            "udhcpc", "-f", "-n", "-q", "-t", "5", "-i", "e", "-s", &script,
        ];
        let output = bed.exec("a", 30, &[&words[..], more].concat());
        let message = text(&output.stdout) + &text(&output.stderr);
        let bound = message
            .lines()
            .find(|line| line.starts_with("bound 10.77.1."));
        let bound = bound.unwrap_or_else(|| panic!("{message}\n{}", log_of_server(&daemon)));
        assert!(bound.ends_with(" 10.78.0.2"), "{bound}");
    }
    // Discover and Request to both servers, of which one answers.
    let requests = counter(&daemon, "dhcp4-relay", "requests");
    let replies = counter(&daemon, "dhcp4-relay", "replies");
    assert!(requests >= 8 && replies >= 4, "{requests} {replies}");
    let leases = std::fs::read_to_string(daemon.folder.file("leases")).unwrap();
    assert!(leases.contains(" 10.77.1."), "{leases}");
}

#[test]
fn a_client_gets_an_ip6_lease_of_a_real_server() {
    if !has("dnsmasq") || !has("dhclient") {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dhcp6-relay left server 2001:db8:78::2");
    let _server = dnsmasq(&bed, &daemon);
    daemon.wait_for("dnsmasq", |d| log_of_server(d).contains("DHCPv6, IP range"));
    daemon.wait_for("the link-local address", |_| {
        let message = bed.ip("a", "-6 addr show dev e scope link");
        message.contains("fe80") && !message.contains("tentative")
    });
    let file = |name: &str| daemon.folder.file(name).display().to_string();
    let (lease, pid) = (file("lease6"), file("dhclient.pid"));
    std::fs::write(&lease, "").unwrap();
    let words = [
        "dhclient",
        "-6",
        "-1",
        "-d",
        "-sf",
        "/bin/true",
        "-lf",
        &lease,
        "-pf",
        &pid,
        "e",
    ];
    let mut client = Command::new("ip");
    client.args(["netns", "exec", &bed.name("a")]);
    let log = std::fs::File::create(file("dhclient.log")).unwrap();
    let _client = Running(
        client
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap(),
    );
    daemon.wait_for("the lease", |_| {
        let message = std::fs::read_to_string(&lease).unwrap_or_default();
        message.contains("iaaddr 2001:db8:77::1")
    });
    assert!(counter(&daemon, "dhcp6-relay", "relay-forwards") >= 2);
    assert!(counter(&daemon, "dhcp6-relay", "replies") >= 2);
}

/// Common part of both programs.
const HEAD: &str = "from scapy.all import Ether,IP,UDP,IPv6,raw\n\
    from scapy.layers.dhcp import BOOTP,DHCP\n\
    from scapy.layers.dhcp6 import *\n\
    import ctypes,json,os,select\n\
    def one(k):\n\
    \x20 f,w=k.recvfrom(3000)\n\
    \x20 p=Ether(f) if w[2]!=4 and f[12:14] in (b'\\x08\\x00',b'\\x86\\xdd') else None\n\
    \x20 return p if p is not None and UDP in p else None\n\
    def talk(q,serve,heard):\n\
    \x20 end=time.time()+30; again=0; request=None\n\
    \x20 while time.time()<end:\n\
    \x20  if time.time()>again: s.send(q); again=time.time()+1\n\
    \x20  for k in select.select([s,t],[],[],0.05)[0]:\n\
    \x20   p=one(k)\n\
    \x20   if p is None: continue\n\
    \x20   if k is t:\n\
    \x20    x=serve(p)\n\
    \x20    if x: request=request or x[0]; t.send(x[1])\n\
    \x20   else:\n\
    \x20    x=heard(p)\n\
    \x20    if x and request: print(json.dumps([request,x])); return\n\
    def good(p):\n\
    \x20 q=Ether(bytes(p)); c=q[UDP].chksum; del q[UDP].chksum\n\
    \x20 ok=Ether(bytes(q))[UDP].chksum==c\n\
    \x20 if IP in q:\n\
    \x20  c=q[IP].chksum; del q[IP].chksum; ok=ok and Ether(bytes(q))[IP].chksum==c\n\
    \x20 return ok\n\
    def seen(p):\n\
    \x20 b=p[BOOTP]; o={k[0]:k[1] for k in p[DHCP].options if isinstance(k,tuple)}\n\
    \x20 a=raw(p[DHCP]); at=a.find(bytes([82]))\n\
    \x20 o82=a[at:at+2+a[at+1]].hex() if 'relay_agent_information' in o or 'relay_agent_Information' in o else ''\n\
    \x20 return dict(ip=[p[IP].src,p[IP].dst,p[IP].ttl],ports=[p[UDP].sport,p[UDP].dport],mac=[p.src,p.dst],good=good(p),op=b.op,hops=b.hops,\
    giaddr=b.giaddr,yiaddr=b.yiaddr,kind=o.get('message-type'),o82=o82,size=len(raw(b)))\n";

/// The server in b: the fields that it reads from a request, and its reply.
const SERVER4: &str = "def serve(p):\n\
    \x20 if p[UDP].dport!=67 or BOOTP not in p: return\n\
    \x20 b=p[BOOTP]; o=[k for k in p[DHCP].options if isinstance(k,tuple) and k[0].lower()=='relay_agent_information']\n\
    \x20 return seen(p),raw(Ether(dst=p.src,src=p.dst)/IP(src=p[IP].dst,dst=b.giaddr)/UDP(sport=67,dport=67)/BOOTP(op=2,xid=b.xid,\
    chaddr=b.chaddr,giaddr=b.giaddr,yiaddr='10.77.1.99',flags=b.flags)\
    /DHCP(options=[('message-type','offer'),('server_id',p[IP].dst)]+o+['end']))\n";

/// The client in a: its request, and the fields that it reads from the reply.
fn client4(flags: &str, options: &str) -> String {
    format!(
        "q=raw(Ether(dst='ff:ff:ff:ff:ff:ff',src=me)/IP(src='0.0.0.0',dst='255.255.255.255')/UDP(sport=68,dport=67)\
         /BOOTP(xid=0x12345678,chaddr=me,flags='{flags}')/DHCP(options=[('message-type','discover'),{options}'end']))\n\
         def heard(p):\n\
         \x20 if p[UDP].dport==68 and BOOTP in p: return seen(p)\n"
    )
}

/// Fields that the server in b and the client in a have read. One program is both, with a socket in each namespace.
fn conversation(bed: &Bed, server: &str, client: &str) -> (Value, Value) {
    let other = format!(
        "n=os.open('/run/netns/{}',os.O_RDONLY)\n\
         assert ctypes.CDLL(None).setns(n,0)==0\n\
         t=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); t.bind(('e',0))\n",
        bed.name("b")
    );
    let body = format!("{HEAD}{other}{server}{client}talk(q,serve,heard)\n");
    let message = text(&bed.python("a", &body).wait_with_output().unwrap().stdout);
    let mut both: Vec<Value> = serde_json::from_str(&message)
        .unwrap_or_else(|e| panic!("no conversation: {e}: '{message}'"));
    (both.remove(0), both.remove(0))
}

fn left_mac(daemon: &Daemon) -> String {
    let all = daemon.json("show interface")["interfaces"].clone();
    let left = all.as_array().unwrap().iter();
    let mut left = left.filter(|it| it["name"] != "right");
    left.next().unwrap()["mac"].as_str().unwrap().to_owned()
}

#[test]
fn scapy_reads_the_request_and_the_reply() {
    let Some(bed) = scapy_bed() else { return };
    let daemon = bed.router();
    daemon.ok("set interface dhcp-relay left server 10.78.0.2");
    let (request, reply) = conversation(&bed, SERVER4, &client4("", ""));
    assert_eq!(
        request["ip"],
        serde_json::json!(["10.77.0.1", "10.78.0.2", 64])
    );
    assert_eq!(request["ports"], serde_json::json!([67, 67]));
    assert_eq!(
        (&request["good"], &request["hops"]),
        (&true.into(), &1.into())
    );
    assert_eq!(request["giaddr"], "10.77.0.1");
    let mac = left_mac(&daemon).replace(':', "");
    assert_eq!(request["o82"], format!("520e01046c6566740206{mac}"));
    assert!(request["size"].as_u64().unwrap() >= 300);
    assert_eq!(
        reply["ip"],
        serde_json::json!(["10.77.0.1", "10.77.1.99", 64])
    );
    assert_eq!(reply["mac"][0], left_mac(&daemon));
    assert_eq!(reply["ports"], serde_json::json!([67, 68]));
    assert_eq!((&reply["good"], &reply["o82"]), (&true.into(), &"".into()));
    assert_eq!(
        (&reply["kind"], &reply["giaddr"]),
        (&2.into(), &"10.77.0.1".into())
    );
    // With the broadcast flag, another name, and a configured remote ID.
    daemon.ok("set interface dhcp-relay left server 10.78.0.2 remote-id r1 option-82 replace");
    daemon.ok("set interface name left lan0");
    let option = "('relay_agent_information',b'\\x01\\x01x'),";
    let (request, reply) = conversation(&bed, SERVER4, &client4("B", option));
    assert_eq!(request["o82"], "520a01046c616e3002027231");
    assert_eq!(reply["ip"][1], "255.255.255.255");
    assert_eq!(reply["mac"][1], "ff:ff:ff:ff:ff:ff");
    assert_eq!(reply["o82"], "");
}

#[test]
fn untrusted_options_and_interfaces_without_relay_are_counted() {
    let Some(bed) = scapy_bed() else { return };
    let mut daemon = bed.router();
    let broadcast = |daemon: &Daemon| counter(daemon, "ethernet-input", "group-mac");
    let option = "('relay_agent_information',b'\\x01\\x01x'),";
    let once = client4("", option) + "s.send(q)\n";
    let ask = || {
        assert!(
            bed.python("a", &format!("{HEAD}{once}"))
                .wait()
                .unwrap()
                .success()
        )
    };
    let before = broadcast(&daemon);
    ask();
    daemon.wait_for("a drop", |d| broadcast(d) > before);
    daemon.ok("set interface dhcp-relay left server 10.78.0.2");
    daemon.ok("clear trace");
    daemon.ok("trace add af-packet-input 20");
    ask();
    daemon.wait_for("a drop", |d| {
        counter(d, "dhcp4-relay", "untrusted-option-82") == 1
    });
    let trace = daemon.ok("show trace");
    assert!(
        trace.contains("DHCP Discover, transaction 0x12345678, client "),
        "{trace}"
    );
    assert_eq!(counter(&daemon, "dhcp4-relay", "requests"), 0);
    // Without a relay no message is received.
    daemon.ok("set interface dhcp-relay left off");
    let before = broadcast(&daemon);
    ask();
    daemon.wait_for("a drop", |d| broadcast(d) > before);
    assert_eq!(counter(&daemon, "dhcp4-relay", "untrusted-option-82"), 1);
}

#[test]
fn servers_of_another_table_are_reached_there() {
    let Some(bed) = scapy_bed() else { return };
    let daemon = bed.router();
    daemon.ok("ip table add 7");
    let missing = daemon.refused("set interface dhcp-relay left server 10.78.0.2 server-table 8");
    assert!(missing.contains("8"), "{missing}");
    daemon.ok("set interface ip address del right 10.78.0.1/16");
    daemon.ok("set interface ip table right 7");
    daemon.ok("set interface ip address right 10.78.0.1/16");
    daemon.ok("set interface dhcp-relay left server 10.78.0.2 server-table 7 source 10.78.0.1");
    let used = daemon.refused("ip table del 7");
    assert!(used.contains("right") || used.contains("relay"), "{used}");
    let (request, reply) = conversation(&bed, SERVER4, &client4("", ""));
    assert_eq!(request["ip"][0], "10.78.0.1");
    assert_eq!(request["giaddr"], "10.78.0.1");
    let option = request["o82"].as_str().unwrap();
    assert!(option.ends_with("05040a4d0001"), "link selection: {option}");
    assert_eq!(
        reply["ip"],
        serde_json::json!(["10.77.0.1", "10.77.1.99", 64])
    );
    assert_eq!(reply["o82"], "");
}

/// The IPv6 server in b.
const SERVER6: &str = "def serve(p):\n\
    \x20 if p[UDP].dport!=547 or DHCP6_RelayForward not in p: return\n\
    \x20 f=p[DHCP6_RelayForward]; i=p[DHCP6OptIfaceId]; m=p[DHCP6OptRelayMsg]\n\
    \x20 a=DHCP6_Advertise(trid=0xabcdef)/DHCP6OptServerId(duid=DUID_LL(lladdr='02:00:00:00:00:01'))\n\
    \x20 r=DHCP6_RelayReply(hopcount=0,linkaddr=f.linkaddr,peeraddr=f.peeraddr)/DHCP6OptIfaceId(ifaceid=i.ifaceid)/DHCP6OptRelayMsg(message=a)\n\
    \x20 r=raw(Ether(dst=p.src,src=p.dst)/IPv6(src=p[IPv6].dst,dst=p[IPv6].src)/UDP(sport=547,dport=547)/r)\n\
    \x20 return dict(ip=[p[IPv6].src,p[IPv6].dst,p[IPv6].hlim],ports=[p[UDP].sport,p[UDP].dport],good=good(p),hops=f.hopcount,link=f.linkaddr,\
    peer=f.peeraddr,name=i.ifaceid.decode(),message=raw(m.message).hex()),r\n";

/// The client in a; `more` may wrap its message in another one.
fn client6(more: &str) -> String {
    format!(
        "h=bytes(me); mac=h.hex(':'); ll='fe80::%02x%02x:%02xff:fe%02x:%02x%02x'%(h[0]^2,h[1],h[2],h[3],h[4],h[5])\n\
         ll=socket.inet_ntop(socket.AF_INET6,socket.inet_pton(socket.AF_INET6,ll))\n\
         q=DHCP6_Solicit(trid=0xabcdef)/DHCP6OptClientId(duid=DUID_LL(lladdr=mac))\n\
         {more}\
         q=raw(Ether(dst='33:33:00:01:00:02',src=mac)/IPv6(src=ll,dst='ff02::1:2',hlim=1)/UDP(sport=546,dport=547)/q)\n\
         def heard(p):\n\
         \x20 if IPv6 not in p or p[UDP].dport not in (546,547) or p[IPv6].dst!=ll: return\n\
         \x20 return dict(ip=[p[IPv6].src,p[IPv6].dst,p[IPv6].hlim],ll=ll,mac=[p.src,p.dst],me=mac,ports=[p[UDP].sport,p[UDP].dport],\
         good=good(p),message=raw(p[UDP].payload).hex())\n"
    )
}

#[test]
fn scapy_reads_the_relay_forward_message_and_what_comes_back() {
    let Some(bed) = scapy_bed() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dhcp6-relay left server 2001:db8:78::2");
    daemon.wait_for("the link-local address", |_| {
        let message = bed.ip("a", "-6 addr show dev e scope link");
        message.contains("fe80") && !message.contains("tentative")
    });
    let (forward, reply) = conversation(&bed, SERVER6, &client6(""));
    let ends = serde_json::json!(["2001:db8:77::1", "2001:db8:78::2", 64]);
    assert_eq!((&forward["ip"], &forward["good"]), (&ends, &true.into()));
    assert_eq!(forward["ports"], serde_json::json!([547, 547]));
    assert_eq!(
        (&forward["hops"], &forward["name"]),
        (&0.into(), &"left".into())
    );
    assert_eq!(forward["link"], "2001:db8:77::1");
    assert_eq!(forward["peer"], reply["ll"]);
    assert!(forward["message"].as_str().unwrap().starts_with("01abcdef"));
    assert!(
        reply["ip"][0].as_str().unwrap().starts_with("fe80::"),
        "{reply}"
    );
    assert_eq!(
        reply["mac"],
        serde_json::json!([left_mac(&daemon), reply["me"]])
    );
    assert_eq!(reply["ports"], serde_json::json!([547, 546]));
    assert_eq!(reply["good"], true);
    assert!(reply["message"].as_str().unwrap().starts_with("02abcdef"));
    // A second reply uses the known neighbour. The client now acts as a relay agent.
    let nest = "q=DHCP6_RelayForward(hopcount=0,linkaddr='2001:db8:99::1',peeraddr='fe80::1')/DHCP6OptRelayMsg(message=q)\n";
    let (forward, reply) = conversation(&bed, SERVER6, &client6(nest));
    assert_eq!(
        (&forward["hops"], &forward["peer"]),
        (&1.into(), &reply["ll"])
    );
    assert!(forward["message"].as_str().unwrap().starts_with("0c00"));
    assert!(counter(&daemon, "dhcp6-relay", "replies") >= 2);
}

#[test]
fn one_definition_is_in_file_command_line_and_api() {
    let file = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\ndhcp_relay = { ip4 = { server = [\"192.0.2.67\"] } }\n";
    let daemon = Daemon::start(file, &[]);
    daemon.ok("set interface dhcp6-relay pg0 server 2001:db8::2 server 2001:db8::3");
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let relay = http.get("/v1/dhcp_relay/pg0/ip4");
    assert_eq!(relay["server"], serde_json::json!(["192.0.2.67"]));
    assert_eq!(relay["option_82"], "drop");
    let body = br#"{"option_82": "keep", "remote_id": "r 1"}"#;
    let (status, message) = http.call("PATCH", "/v1/dhcp_relay/pg0/ip4", body);
    assert_eq!(status, 200, "{}", text(&message));
    for wrong in [
        "set interface dhcp-relay pg0 server 2001:db8::1",
        "set interface dhcp-relay pg0 server-table 0",
        "set interface dhcp6-relay pg0 server ff05::1:3",
        "set interface dhcp6-relay pg0 server 2001:db8::2 option-82 keep",
        "set interface dhcp-relay nowhere server 192.0.2.67",
    ] {
        daemon.refused(wrong);
    }
    daemon.ok("set interface name pg0 lan0");
    let commands = daemon.ok("config export commands");
    for want in [
        "set interface dhcp-relay lan0 server 192.0.2.67 remote-id \"r 1\" option-82 keep",
        "set interface dhcp6-relay lan0 server 2001:db8::2 server 2001:db8::3",
    ] {
        assert!(commands.contains(want), "{commands}");
    }
    daemon.ok("set interface dhcp-relay lan0 off");
    let shown = daemon.ok("config show");
    let six = "ip6 = { server = [\"2001:db8::2\", \"2001:db8::3\"] }";
    assert!(shown.contains(six) && !shown.contains("ip4"), "{shown}");
    daemon.ok("delete interface lan0");
    assert!(!daemon.ok("config show").contains("dhcp_relay"));
}
