// Datagrams of UDP with rising identifiers, some of them in a VLAN, without any input.
InfiniteSource(DATA "volley", LIMIT 12, BURST 5)
    -> UDPIPEncap(10.0.0.1, 1000, 10.0.1.2, 53)
    -> EtherEncap(0x0800, 02:00:00:00:00:0a, 02:00:00:00:00:0b)
    -> turns :: RoundRobinSwitch;
turns [0] -> ToDump(out0.pcap);
turns [1] -> VLANEncap(VLAN_ID 5, VLAN_PCP 6) -> ToDump(out1.pcap);
turns [2] -> EtherMirror -> ToDump(out2.pcap);
