/* A firewall between in0 and out1: what the rules refuse gets an ICMP error, which leaves by out0.
   Packets from the protected side pass. */
FromDump(in0.pcap, TIMING true) -> Strip(14) -> CheckIPHeader -> rules :: IPFilter(
    deny src net 203.0.113.0/24,            // without an answer
    0 dst tcp port 80 or dst tcp port 443,
    0 udp && dst port 53 && dst host 10.0.1.53,
    0 icmp type echo && ip ttl > 1,
    1 all);
rules [0] -> passed :: Counter -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:0b) -> ToDump(out1.pcap);
rules [1] -> refused :: Counter -> ICMPError(10.0.0.254, unreachable, filterprohibited)
    -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a) -> out :: ToDump(out0.pcap);

FromDump(in1.pcap, TIMING true) -> Strip(14) -> CheckIPHeader
    -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a) -> out;
