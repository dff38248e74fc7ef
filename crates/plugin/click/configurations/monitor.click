// All frames go on to out0. Copies: the first 54 bytes of each frame to out1; packets by protocol to out2 (TCP) and out3 (others).
FromDump(in.pcap) -> copies :: Tee;
copies [0] -> ToDump(out0.pcap);
copies [1] -> Truncate(54) -> ToDump(out1.pcap);
copies [2] -> ip :: Classifier(12/0800, -) -> MarkIPHeader(14) -> kind :: IPClassifier(tcp, -);
ip [1] -> Discard;
kind [0] -> Paint(1) -> colour :: PaintSwitch;
kind [1] -> Paint(2) -> colour;
colour [0] -> Discard;
colour [1] -> CheckPaint(1) -> tcp :: Counter -> ToDump(out2.pcap);
colour [2] -> others :: Counter -> ToDump(out3.pcap);
