// A station that answers ARP and echo requests, and refuses everything else for its address by an ICMP error.
define($IP 10.0.1.254, $MAC 02:00:00:00:01:01, $PEER 02:00:00:00:00:0a)

FromDump(in.pcap, TIMING true) -> HostEtherFilter($MAC) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
out :: ToDump(out0.pcap);
c [0] -> ARPResponder($IP $MAC) -> out;
c [1] -> Strip(14) -> CheckIPHeader -> mine :: IPFilter(allow dst host $IP, deny all);
c [2] -> Discard;
mine -> p :: ICMPPingResponder -> to :: EtherEncap(0x0800, $MAC, $PEER) -> out;
p [1] -> t :: IPClassifier(udp, tcp, icmp, -);
t [0] -> ICMPError($IP, unreachable, port) -> to;
t [1] -> resets :: Discard;
t [2] -> Discard;
t [3] -> ICMPError($IP, unreachable, protocol) -> to;
