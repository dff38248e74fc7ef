// A trunk (in0, out0) and two access ports: VLAN 7 is out1 and in1, VLAN 9 is out2 and in2.
elementclass Access { $vlan | input -> VLANEncap(VLAN_ID $vlan) -> output }

trunk :: ToDump(out0.pcap);
FromDump(in0.pcap, TIMING true) -> c :: Classifier(12/8100 14/0007%0fff, 12/8100 14/0009%0fff, -);
c [0] -> VLANDecap -> ToDump(out1.pcap);
c [1] -> VLANDecap -> ToDump(out2.pcap);
c [2] -> lost :: Discard;
FromDump(in1.pcap, TIMING true) -> Access(7) -> trunk;
FromDump(in2.pcap, TIMING true) -> Access(9) -> trunk;
