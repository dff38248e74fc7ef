// Port 8080 of 192.0.2.1 is port 80 of the server 10.0.1.5 (in1, out1). Replies get the outer address and port back.
to_client :: EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:00:0a) -> ToDump(out0.pcap);
to_server :: EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:0b) -> ToDump(out1.pcap);
w :: IPRewriter(pattern - - 10.0.1.5 80 0 1, pass 1);

FromDump(in0.pcap, TIMING true) -> Strip(14) -> CheckIPHeader -> f :: IPFilter(0 dst host 192.0.2.1 and dst tcp port 8080)
    -> [0] w;
FromDump(in1.pcap, TIMING true) -> Strip(14) -> CheckIPHeader -> [1] w;
w [0] -> to_server;
w [1] -> to_client;
