// A router for two interfaces without interfaces: a source takes the place of the first one, and the second one discards.
// Next hops are not resolved by ARP. `cargo xtask show nodes --only click-speed` measures it.
elementclass In { $number |
    input -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    c -> Discard;
    c [1] -> Discard;
    c [2] -> Paint($number) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.254/24 10.0.1.254/24) -> output;
    c [3] -> Discard;
}
elementclass Out { $number, $address, $mac |
    input -> DropBroadcasts -> p :: PaintTee($number) -> g :: IPGWOptions($address) -> FixIPSrc($address) -> d :: DecIPTTL
        -> f :: IPFragmenter(1500) -> EtherEncap(0x0800, $mac, 02:00:00:00:00:99) -> output;
    p [1] -> ICMPError($address, redirect, host) -> [1] output;
    g [1] -> ICMPError($address, parameterproblem) -> [1] output;
    d [1] -> ICMPError($address, timeexceeded, transit) -> [1] output;
    f [1] -> ICMPError($address, unreachable, needfrag, MTU 1500) -> [1] output;
}
rt :: StaticIPLookup(10.0.0.254/32 0, 10.0.1.254/32 0, 10.0.0.0/24 1, 10.0.1.0/24 2, 0.0.0.0/0 10.0.1.9 2);
source :: InfiniteSource(\<020000000100 020000000009 0800
    4500002e00000000 401165ae 0a000009 0a000109 04d20050001a0000
    000102030405060708090a0b0c0d0e0f1011>, BURST 256);
i0, i1 :: In(1);
o0 :: Out(1, 10.0.0.254, 02:00:00:00:01:00);
o1 :: Out(2, 10.0.1.254, 02:00:00:00:01:01);
source -> i0 -> rt;
Idle -> i1 -> rt;
rt -> Discard;
rt [1] -> o0 -> Queue(1024) -> Unqueue -> out0 :: Discard;
rt [2] -> o1 -> Queue(1024) -> Unqueue -> out1 :: Discard;
o0 [1] -> rt; o1 [1] -> rt;
