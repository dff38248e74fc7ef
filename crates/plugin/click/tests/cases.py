"""Elements with packets in and the packets that scapy expects out: one folder for each case.

Usage: cases.py FOLDER. A case has `t.click`, files `in*.pcap` that it reads, and `expected*.pcap` for its files `out*.pcap`.
"""

from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, IPOption_RR, Padding, Raw, RawPcapWriter, fragment, raw

from frames import A, B, CASES, HOST, bare, case, chain, done, error, eth, fragment, other, ping, replied, tcp, udp, write_all, wrong

frames = [eth(udp()), eth(tcp()), eth(ping()), HOST / ARP(pdst="10.0.0.9")]
ip = frames[:3]

case("null", chain("Null -> Counter -> AverageCounter"), frames, frames)
case("strip", chain("Strip(14) -> Strip(LENGTH 2)"), frames, [Raw(raw(p)[16:]) for p in frames])
case("unstrip", chain("Strip(14) -> Unstrip(14)"), frames, frames)
case("ether-encap", chain(f"Strip(14) -> EtherEncap(0x0800, {B}, {A})"), ip, [Ether(src=B, dst=A) / p[IP] for p in ip])
case("ether-mirror", chain("EtherMirror"), ip, [Ether(src=B, dst=A) / p[IP] for p in ip])
case("ether-rewrite", chain("EtherRewrite(02-0-0-0-0-1, 02:00:00:00:00:02)"), ip,
     [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / p[IP] for p in ip])
case("vlan-encap", chain("VLANEncap(VLAN_ID 7, VLAN_PCP 3)"), ip, [HOST / Dot1Q(vlan=7, prio=3) / p[IP] for p in ip])
case("vlan-decap", chain("VLANDecap"), [HOST / Dot1Q(vlan=7) / p[IP] for p in ip] + frames, ip + frames)
case("store-data", chain("StoreData(0, \\<02 00 00 00 00 63>) -> StoreData(15, \\<ff>, MASK \\<0f>)"), ip,
     [Raw(b"\x02\0\0\0\0\x63" + raw(p)[6:15] + bytes([raw(p)[15] | 0x0f]) + raw(p)[16:]) for p in ip])
case("truncate", chain("Truncate(30)"), frames, [Raw(raw(p)[:30]) for p in frames])
case("check-length", "FromDump(in.pcap) -> c :: CheckLength(50) -> ToDump(out.pcap); c[1] -> Discard;", frames,
     [p for p in frames if len(p) <= 50])

# Headers of IP: a checksum, a version, a length, an address and the padding of a frame.
bad = [
    eth(wrong(udp(), IP, chksum=1)), eth(wrong(udp(), IP, version=6)), eth(wrong(udp(), IP, ihl=4)),
    eth(wrong(udp(), IP, len=2000)), eth(udp(src="10.0.0.255")), eth(udp(src="255.255.255.255")), Raw(raw(ip[0])[:30]),
]
padded = eth(udp(1)) / Padding(b"\0" * 20)
case("check-ip-header", chain("Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> Unstrip(14)"), ip + bad + [padded],
     ip + [eth(udp(1))])
case("check-ip-header-place", chain("CheckIPHeader(14) -> CheckIPHeader(BADSRC 192.0.2.1, OFFSET 14) -> Null"), ip + bad[:4], ip)
case("check-ip-header-2", chain("CheckIPHeader2(OFFSET 14)"), ip + bad[:4], ip + bad[:1])
case("check-ip-header-good", chain("CheckIPHeader(10.0.0.1/24, 14, GOODDST 10.0.1.2)"), ip + bad, ip + bad[4:6])
case("check-ip-header-wrong", "FromDump(in.pcap) -> Strip(14) -> c :: CheckIPHeader(10.0.0.1/24); c -> Discard; "
     "c[1] -> Unstrip(14) -> ToDump(out.pcap);", ip + bad, bad)
MARK = "MarkIPHeader(14)"
case("dec-ttl", f"FromDump(in.pcap) -> {MARK} -> d :: DecIPTTL -> ToDump(out.pcap); d[1] -> Discard;",
     [eth(udp(ttl=t)) for t in (0, 1, 2, 64, 255)], [eth(udp(ttl=t - 1)) for t in (2, 64, 255)])
case("set-checksum", chain(f"{MARK} -> SetIPChecksum"), [eth(wrong(p[IP], IP, chksum=77)) for p in ip], ip)
case("set-udp-checksum", chain(f"{MARK} -> SetUDPChecksum"), [eth(wrong(udp(n), UDP, chksum=0)) for n in (0, 1, 20, 333)],
     [eth(udp(n)) for n in (0, 1, 20, 333)])
case("set-tcp-checksum", chain(f"{MARK} -> SetTCPChecksum"), [eth(wrong(tcp(), TCP, chksum=0)), eth(udp())], [eth(tcp())])
case("check-transport", "FromDump(in.pcap) -> MarkIPHeader(14) -> i :: IPClassifier(udp, tcp, icmp); i -> CheckUDPHeader -> q :: Null; "
     "i[1] -> CheckTCPHeader -> q; i[2] -> CheckICMPHeader -> q; q -> ToDump(out.pcap);",
     ip[:1] + [eth(wrong(udp(), UDP, chksum=5)), eth(wrong(udp(), UDP, len=4)), eth(wrong(tcp(), TCP, chksum=5)),
               eth(wrong(tcp(), TCP, dataofs=2)), eth(wrong(ping(), ICMP, chksum=5))], ip[:1])
case("dscp", chain(f"{MARK} -> SetIPDSCP(46)"), ip, [eth(other(p[IP], IP, tos=46 << 2)) for p in ip])
case("fix-ip-src", chain(f"{MARK} -> FixIPSrc(192.0.2.1)"), ip, ip)
case("strip-ip-header", chain(f"{MARK} -> StripIPHeader"), ip, [bare(p[IP].payload) for p in ip])
case("ip-encap", chain("Strip(14) -> IPEncap(4, 192.0.2.1, 192.0.2.2, TTL 9)"), ip,
     [bare(IP(src="192.0.2.1", dst="192.0.2.2", ttl=9, id=n, proto=4) / p[IP]) for n, p in enumerate(ip)])
case("udp-encap", chain("UDPIPEncap(192.0.2.1, 5, 192.0.2.2, 6)"), ip,
     [bare(IP(src="192.0.2.1", dst="192.0.2.2", ttl=250, id=n) / UDP(sport=5, dport=6) / Raw(raw(p))) for n, p in enumerate(ip)])
big = [udp(n, flags=0) for n in (100, 600, 601, 1400)]
case("fragmenter", chain(f"Strip(14) -> MarkIPHeader -> IPFragmenter(576)"), [eth(p) for p in big + [udp(900, flags="DF")]],
     [bare(f) for p in big for f in (fragment(done(p), fragsize=552) if len(p) > 576 else [p])])
case("fragmenter-df", "FromDump(in.pcap) -> Strip(14) -> MarkIPHeader -> f :: IPFragmenter(576) -> Discard; f[1] -> Unstrip(14) -> "
     "ToDump(out.pcap);", [eth(udp(900, flags="DF")), eth(udp(100, flags="DF"))], [eth(udp(900, flags="DF"))])


def recorded(packet, address):
    """The packet with the address in the next place of record route."""
    data = bytearray(raw(packet))
    pointer = data[22]
    data[20 + pointer - 1:20 + pointer + 3] = bytes(int(part) for part in address.split("."))
    data[22] = pointer + 4
    copy = IP(bytes(data))
    del copy[IP].chksum
    return done(copy)


route = udp(options=[IPOption_RR(length=11, pointer=4, routers=["0.0.0.0", "0.0.0.0"])])
short = wrong(route, IP)
short_bytes = bytearray(raw(short))
short_bytes[21] = 60
case("gw-options", f"FromDump(in.pcap) -> {MARK} -> g :: IPGWOptions(192.0.2.9) -> ToDump(out.pcap); g[1] -> Discard;",
     ip + [eth(route), Ether(raw(HOST / Raw(bytes(short_bytes))))] , ip + [eth(recorded(route, "192.0.2.9"))])

# Classification.
case("classifier", "FromDump(in.pcap) -> c :: Classifier(12/0806 20/0001, 12/0800 23/11, -); c -> Discard; "
     "c[1] -> ToDump(out.pcap); c[2] -> Discard;", frames, [ip[0]])


def filtered(name, rule, keep):
    mixed = ip + [eth(udp(src="10.9.0.1")), eth(tcp(dst="192.0.2.7", ttl=3)), eth(done(fragment(done(udp(900)), fragsize=400)[1]))]
    case(name, chain(f"MarkIPHeader(14) -> IPFilter({rule})"), mixed, [p for p in mixed if keep(p)])


filtered("filter-udp", "allow udp", lambda p: p[IP].proto == 17)
filtered("filter-port", "allow dst port 80, deny all", lambda p: TCP in p)
filtered("filter-host", "deny src host 10.9.0.1, allow all", lambda p: p[IP].src != "10.9.0.1")
filtered("filter-net", "allow dst net 192.0.2.0/24 || icmp", lambda p: p[IP].dst.startswith("192") or ICMP in p)
filtered("filter-not", "allow not (tcp or udp)", lambda p: p[IP].proto == 1)
filtered("filter-ttl", "allow ip ttl < 10", lambda p: p[IP].ttl < 10)
filtered("filter-frag", "allow ip frag", lambda p: p[IP].frag > 0 or p[IP].flags & 1)
filtered("filter-syn", "allow tcp opt syn && src or dst port 1000-1001", lambda p: TCP in p)
filtered("filter-icmp", "allow icmp type echo", lambda p: ICMP in p)
filtered("filter-icmp-name", "allow icmp echo, deny icmp echo-reply", lambda p: ICMP in p)
filtered("filter-again", "allow dst tcp port 22 or www, allow src port 5 or 1000", lambda p: TCP in p or UDP in p and p[UDP].sport == 1000)
filtered("filter-other", "allow port != 80", lambda p: UDP in p)
filtered("filter-bytes", "allow ip[8] < 10 or ip[6:2] & 0x1fff", lambda p: p[IP].ttl < 10 or p[IP].frag > 0)
filtered("filter-if", "allow tcp ? ttl > 5 : 10.9.0.1", lambda p: p[IP].ttl > 5 if p[IP].proto == 6 else p[IP].src == "10.9.0.1")
filtered("filter-window", "allow tcp win & 0x2000 == 0x2000", lambda p: TCP in p and p[TCP].window & 0x2000)
marked = [eth(udp(tos=4 + bits)) for bits in range(4)]
case("filter-ecn", chain("MarkIPHeader(14) -> IPFilter(allow ect && not ce)"), marked, marked[1:3])

# Switches, colours, copies.
many = [eth(udp(n)) for n in range(8)]
case("round-robin", "FromDump(in.pcap) -> r :: RoundRobinSwitch; r -> Discard; r[1] -> ToDump(out.pcap); r[2] -> Discard;", many,
     many[1::3])
case("static-switch", "FromDump(in.pcap) -> s :: StaticSwitch(1); s -> Discard; s[1] -> ToDump(out.pcap);", many, many)
case("paint", "FromDump(in.pcap) -> c :: Classifier(12/0800 23/06, -); c -> Paint(1) -> n :: PaintSwitch; c[1] -> Paint(0) -> n; "
     "n -> Discard; n[1] -> CheckPaint(1) -> ToDump(out.pcap);", frames, [ip[1]])
case("paint-tee", "FromDump(in.pcap) -> Paint(3) -> p :: PaintTee(3) -> Discard; p[1] -> ToDump(out.pcap);", frames, frames)
case("tee", "FromDump(in.pcap) -> t :: Tee(3); t -> Discard; t[1] -> Strip(14) -> Discard; t[2] -> ToDump(out.pcap);", many, many)
case("queue", chain("Queue(100) -> Counter -> Unqueue -> Strip(14) -> q :: Queue(100) -> Unstrip(14)"), many, many)
case("align", chain("Strip(14) -> Align(4, 0) -> Unstrip(14)"), frames, frames)
case("scheduler", "s :: RoundRobinSched -> Unqueue -> ToDump(out.pcap); Idle -> Queue -> s; FromDump(in.pcap) -> Queue -> [1] s;", many, many)
case("suppressor", chain("Suppressor"), many, many)

# ARP and ICMP.
asks = [Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=A, psrc="10.0.0.1", pdst=d) for d in ("10.0.0.9", "10.0.1.77", "10.9.9.9")]


def answer(ask, mac):
    return Ether(src=mac, dst=A) / ARP(op=2, hwsrc=mac, psrc=ask.pdst, hwdst=A, pdst="10.0.0.1")


case("arp-responder", chain("ARPResponder(10.0.1.0/24 02:00:00:00:00:02, 10.0.0.9 02:00:00:00:00:01)"), asks + ip,
     [answer(asks[0], "02:00:00:00:00:01"), answer(asks[1], "02:00:00:00:00:02")])

case("ping-responder", chain(f"{MARK} -> ICMPPingResponder"), ip, [eth(replied(ping()))])

case("icmp-error", chain("Strip(14) -> MarkIPHeader -> ICMPError(192.0.2.1, unreachable, needfrag, MTU 1400)"),
     [eth(udp()), eth(udp(1000)), eth(ping()), eth(IP(src="10.0.0.1") / ICMP(type=3) / raw(udp())), eth(udp(frag=10)),
      eth(udp(dst="224.0.0.1")), eth(udp(src="127.0.0.1"))],
     [bare(error("192.0.2.1", p, 3, 4, n, nexthopmtu=1400)) for n, p in enumerate([udp(), udp(1000), ping()])])

# Rewriters.
to = [eth(udp()), eth(tcp()), eth(udp(src="10.0.0.5"))]
case("rewriter", chain("MarkIPHeader(14) -> IPRewriter(pattern 192.0.2.1 5000-5009 - - 0 0)"), to,
     [eth(IP(src="192.0.2.1", dst=p[IP].dst, id=p[IP].id, ttl=64) / p[IP].payload.__class__(**(p[IP].payload.fields | {"sport": 5000 + n}))
      / p[Raw]) for n, p in enumerate(to)])
case("pair-rewriter", "FromDump(in.pcap) -> MarkIPHeader(14) -> w :: IPAddrPairRewriter(pattern - 192.0.2.8 0 1); w -> ToDump(out.pcap); "
     "w[1] -> Discard;", [eth(udp()), eth(tcp()), eth(ping())],
     [eth(udp(dst="192.0.2.8")), eth(tcp(dst="192.0.2.8")), eth(ping(dst="192.0.2.8"))])
there = eth(udp())
back = eth(IP(src="10.0.1.2", dst="192.0.2.1", id=1) / UDP(sport=53, dport=6000) / Raw(b"answer"))
case("rewriter-replies", "FromDump(in.pcap) -> MarkIPHeader(14) -> w :: IPRewriter(pattern 192.0.2.1 6000 - - 0 1); w -> Discard; "
     "w[1] -> ToDump(out.pcap);", [there, back], [eth(IP(src="10.0.1.2", dst="10.0.0.1", id=1) / UDP(sport=53, dport=1000) / Raw(b"answer"))])

# Compound elements and variables in a whole configuration.
case("compound", """
    define($first 12)
    elementclass Marked { $place, TTL $low |
        input -> Strip(14) -> CheckIPHeader -> f :: IPFilter(allow ttl >= $low) -> Unstrip(14) -> output;
    }
    elementclass Only { $type | input -> c :: Classifier(${first}/$type, -) -> output; c[1] -> [1] output }
    FromDump(in.pcap) -> o :: Only(0800) -> Marked(14, TTL 5) -> { -> VLANEncap(9) -> } -> ToDump(out.pcap);
    o[1] -> Discard;
""", frames + [eth(udp(ttl=4))], [HOST / Dot1Q(vlan=9) / p[IP] for p in ip])

write_all()
