// Three classes by DSCP, each with a queue and a rate. Each class keeps its order.
FromDump(in.pcap) -> MarkIPHeader(14) -> c :: IPClassifier(ip dscp 46, ip dscp 10, -);
c [0] -> voice :: Queue(100) -> RatedUnqueue(20000) -> ToDump(out0.pcap);
c [1] -> data :: Queue(100) -> Shaper(10000) -> ToDump(out1.pcap);
c [2] -> SetIPDSCP(8) -> rest :: Queue(100) -> BandwidthShaper(8Mbps) -> Unqueue -> ToDump(out2.pcap);
