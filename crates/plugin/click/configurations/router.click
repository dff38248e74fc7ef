// A router for two interfaces: (in0, out0) and (in1, out1), the second one with an MTU of 600.
elementclass In { $number, $address, $mac |
    input -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    c -> ARPResponder($address $mac) -> [0] output;
    c [1] -> [1] output;
    c [2] -> HostEtherFilter($mac) -> Paint($number) -> Strip(14)
        -> CheckIPHeader(INTERFACES 10.0.0.254/24 10.0.1.254/24) -> [2] output;
    c [3] -> Discard;
}
elementclass Out { $number, $address, $mac, $mtu |
    input -> DropBroadcasts -> p :: PaintTee($number) -> g :: IPGWOptions($address) -> FixIPSrc($address) -> d :: DecIPTTL
        -> f :: IPFragmenter($mtu) -> [0] a :: ARPQuerier($address, $mac) -> [0] output;
    input [1] -> [1] a;
    p [1] -> ICMPError($address, redirect, host) -> [1] output;
    g [1] -> ICMPError($address, parameterproblem) -> [1] output;
    d [1] -> ICMPError($address, timeexceeded, transit) -> [1] output;
    f [1] -> ICMPError($address, unreachable, needfrag, MTU $mtu) -> [1] output;
}
rt :: StaticIPLookup(10.0.0.254/32 0, 10.0.1.254/32 0, 10.0.0.0/24 1, 10.0.1.0/24 2, 0.0.0.0/0 10.0.1.9 2);

FromDump(in0.pcap, TIMING true) -> i0 :: In(1, 10.0.0.254, 02:00:00:00:01:00);
FromDump(in1.pcap, TIMING true) -> i1 :: In(2, 10.0.1.254, 02:00:00:00:01:01);
q0, q1 :: Queue(200);
o0 :: Out(1, 10.0.0.254, 02:00:00:00:01:00, 1500);
o1 :: Out(2, 10.0.1.254, 02:00:00:00:01:01, 600);
i0 [2], i1 [2] -> rt;
i0 [0] -> q0 -> ToDump(out0.pcap); i1 [0] -> q1 -> ToDump(out1.pcap);
i0 [1] -> [1] o0 [0] -> q0; i1 [1] -> [1] o1 [0] -> q1;
rt [1] -> o0 [1] -> rt; rt [2] -> o1 [1] -> rt;
rt [0] -> IPFilter(allow icmp type echo) -> ICMPPingResponder -> rt;
