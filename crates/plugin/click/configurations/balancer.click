// Clients' packets to 192.0.2.80 go to three servers, chosen by the source address; each server has an output.
define($MAC 02:00:00:00:01:01)
elementclass Server { $address, $mac |
    input -> StoreData(16, $address) -> SetIPChecksum -> SetUDPChecksum -> EtherEncap(0x0800, $MAC, $mac) -> output;
}

FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> f :: IPFilter(0 dst host 192.0.2.80 and udp, 1 all)
    -> pick :: HashSwitch(12, 4);
f [1] -> other :: Discard;
pick [0] -> Server(\<0a 00 01 01>, 02:00:00:00:02:01) -> ToDump(out0.pcap);
pick [1] -> Server(\<0a 00 01 02>, 02:00:00:00:02:02) -> ToDump(out1.pcap);
pick [2] -> Server(\<0a 00 01 03>, 02:00:00:00:02:03) -> ToDump(out2.pcap);
