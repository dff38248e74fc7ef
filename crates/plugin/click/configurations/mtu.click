// A path with an MTU of 600: long packets are divided, those that must not be get an error that names the MTU.
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> f :: IPFragmenter(600)
    -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:0b) -> ToDump(out1.pcap);
f [1] -> ICMPError(10.0.0.254, unreachable, needfrag, MTU 600) -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a)
    -> ToDump(out0.pcap);
