// A gateway that hides the network 10.0.0.0/24 (in0, out0) behind the address 192.0.2.1 (in1, out1).
elementclass Port { $address, $mac |
    input -> c :: Classifier(12/0806 20/0001, 12/0800, -);
    c -> ARPResponder($address $mac) -> [0] output;
    c [1] -> HostEtherFilter($mac) -> Strip(14) -> CheckIPHeader -> [1] output;
    c [2] -> Discard;
}

FromDump(in0.pcap, TIMING true) -> inside :: Port(10.0.0.254, 02:00:00:00:01:00);
FromDump(in1.pcap, TIMING true) -> outside :: Port(192.0.2.1, 02:00:00:00:01:01);
inside [0] -> out0 :: ToDump(out0.pcap);
outside [0] -> out1 :: ToDump(out1.pcap);

// Input 0 makes flows; packets of input 1 that belong to none are dropped.
nat :: IPRewriter(pattern 192.0.2.1 5000-5999 - - 0 1, drop);
inside [1] -> DecIPTTL -> [0] nat;
outside [1] -> DecIPTTL -> [1] nat;
nat [0] -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:0b) -> out1;
nat [1] -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a) -> out0;
