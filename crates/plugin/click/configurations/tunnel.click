// An end of an IP-in-IP tunnel from 192.0.2.1 to 192.0.2.2: packets of in0 enter it, those that in1 receives leave it.
FromDump(in0.pcap, TIMING true) -> Strip(14) -> CheckIPHeader -> d :: DecIPTTL -> IPEncap(4, 192.0.2.1, 192.0.2.2, TTL 64)
    -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:0b) -> ToDump(out1.pcap);
out0 :: EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a) -> ToDump(out0.pcap);
d [1] -> ICMPError(10.0.0.254, timeexceeded) -> out0;

FromDump(in1.pcap, TIMING true) -> Strip(14) -> CheckIPHeader
    -> IPFilter(allow src host 192.0.2.2 && dst host 192.0.2.1 && ip proto 4)
    -> StripIPHeader -> CheckIPHeader -> out0;
