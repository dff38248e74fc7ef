//! `volley run --graph`: a graph in Click's language in the daemon, its handlers by command and HTTP, its changes, and its errors.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::http::Http;
use support::traffic::drain;
use support::{Daemon, Folder, text};
use volley_pcap::{FileFormat, Packet, Writer, WriterOptions, read_packets};

/// `volley run --graph FILE` until it ends.
fn run(folder: &Folder, graph: &str) -> Output {
    std::fs::write(folder.file("t.click"), graph).unwrap();
    Command::new("timeout")
        .args(["30", env!("CARGO_BIN_EXE_volley"), "run", "--graph"])
        .arg(folder.file("t.click"))
        .arg("--socket")
        .arg(folder.file("s"))
        .args(["--log-to", "stderr"])
        .output()
        .unwrap()
}

fn capture(path: &Path, frames: &[Vec<u8>]) {
    let options = WriterOptions::new(FileFormat::PcapUs);
    let mut writer = Writer::create(path, options).unwrap();
    for frame in frames {
        let packet = Packet::ethernet(0, frame.clone());
        writer.write(packet.as_ref()).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_graph_of_capture_files_runs_and_ends() {
    let folder = Folder::new();
    let frames: Vec<Vec<u8>> = (0..20_000u32)
        .map(|n| [&[n as u8 & 1; 12][..], &n.to_be_bytes()].concat())
        .collect();
    capture(&folder.file("in.pcap"), &frames);
    let graph = "FromDump(in.pcap, STOP true) -> c :: Classifier(0/01, -) -> EtherMirror -> Print(odd, 2) -> ToDump(out.pcap); c[1] -> Discard;";
    let done = run(&folder, graph);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("odd:   16 | 0101"));
    let out = read_packets(folder.file("out.pcap")).unwrap();
    let out: Vec<Vec<u8>> = out.packets.into_iter().map(|it| it.data).collect();
    let odd: Vec<Vec<u8>> = frames.into_iter().filter(|it| it[0] == 1).collect();
    assert_eq!(out, odd);
}

/// Landlock limits the daemon to its folders, of which /tmp is one, but not this one.
#[test]
fn a_graph_reads_and_writes_in_its_own_folder() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = Folder(target.join(format!("volley-graph-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let frame = vec![7; 60];
    capture(&folder.file("in.pcap"), std::slice::from_ref(&frame));
    let done = run(&folder, "FromDump(in.pcap, STOP true) -> ToDump(out.pcap);");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let out = read_packets(folder.file("out.pcap")).unwrap();
    assert_eq!(out.packets[0].data, frame);
}

#[test]
fn a_wrong_graph_is_one_sentence() {
    let folder = Folder::new();
    let wrong = [
        (
            "a :: InfiniteSource;\na -> Discrd;",
            "t.click:2:6: there is no element and no class Discrd: did you mean Discard?",
        ),
        (
            "Idle -> Paint(x) -> Discard;",
            "t.click:1:9: the argument COLOR of Paint must be a number from 0 to 255, not 'x'",
        ),
        (
            "FromDevice(eth7) -> Discard;",
            "t.click:1:1: there is no interface eth7",
        ),
        ("Idle ->\nToDump(none/x.pcap);", "t.click:2:1: cannot write"),
    ];
    for (graph, expected) in wrong {
        let done = run(&folder, graph);
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{error}");
        let sentences: Vec<&str> = error
            .lines()
            .filter(|it| it.starts_with("volley: "))
            .collect();
        let [sentence] = sentences[..] else {
            panic!("not one sentence: {error}");
        };
        let begin = format!("volley: {}/{expected}", folder.0.display());
        assert!(sentence.starts_with(&begin), "{sentence}");
    }
    assert!(!folder.file("s").exists());
}

#[test]
fn frames_of_interfaces_pass_a_graph_and_handlers_change_it() {
    let config = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";
    let mut daemon = Daemon::start(config, &[]);
    let graph = daemon.folder.file("t.click");
    let first = "FromDevice(pg0) -> c :: Counter -> p :: Suppressor -> Queue -> ToDevice(pg1);";
    std::fs::write(&graph, first).unwrap();
    daemon.ok("set interface state pg0 up");
    daemon.ok("set interface state pg1 up");
    let set = format!("set click graph {}", graph.display());
    daemon.ok(&set);
    daemon.ok("packet-generator new name s interface pg0 limit 100 template { eth dst 02:00:00:00:00:09 / ip4 / udp / payload 20 }");
    daemon.ok("packet-generator enable");
    daemon.wait_for_answer("show click c.count", "100");
    daemon.wait_for("the transmission", |d| {
        let row = d.json("show interface pg1");
        row.to_string().contains("\"packets\":100")
    });
    let shown = daemon.ok("show click");
    assert!(
        shown.contains("Suppressor") && shown.contains("count 100"),
        "{shown}"
    );
    daemon.ok("click write c.reset_counts 1");
    assert_eq!(daemon.ok("show click c.count").trim(), "0");
    assert!(
        daemon
            .refused("show click c.cuont")
            .contains("did you mean count?")
    );
    assert!(daemon.ok("show graph").contains("click/c"));
    // The same by HTTP.
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    assert_eq!(
        http.get("/v1/show/click?handler=p.active0")["value"],
        "true"
    );
    let body = serde_json::json!({"handler": "p.active0", "value": "false"});
    let (status, reply) = http.post("/v1/do/click-write", &body);
    assert_eq!(status, 200, "{reply}");
    assert_eq!(daemon.ok("show click p.active0").trim(), "false");
    let body = serde_json::json!({"handler": "p.active0", "value": "perhaps"});
    let (status, reply) = http.post("/v1/do/click-write", &body);
    assert!((400..500).contains(&status), "{status} {reply}");
    assert!(
        reply.to_string().contains("must be true or false"),
        "{reply}"
    );
    // Another graph in its place, one that is wrong, and none.
    let second = "FromDevice(pg0) -> d :: Counter -> Discard; Idle -> ToDevice(pg1);";
    std::fs::write(&graph, second).unwrap();
    daemon.ok("click reload");
    let nodes = daemon.ok("show graph");
    assert!(
        nodes.contains("click/d") && !nodes.contains("click/c"),
        "{nodes}"
    );
    std::fs::write(&graph, "FromDevice(pg0) -> d :: Countr -> Discard;").unwrap();
    assert!(
        daemon
            .refused("click reload")
            .contains("t.click:1:25: there is no element class Countr: did you mean Counter?")
    );
    assert!(daemon.ok("show graph").contains("click/d"));
    daemon.ok("delete click graph");
    assert!(!daemon.ok("show graph").contains("click/d"));
    assert!(daemon.refused("click reload").contains("no graph runs"));
    daemon.stop("TERM");
}

#[test]
fn reloads_under_traffic_lose_no_packet() {
    let config = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";
    let mut daemon = Daemon::start(config, &[]);
    let graph = daemon.folder.file("t.click");
    let write = |middle: &str| {
        let text = format!("FromDevice(pg0) -> all :: Counter -> {middle} ToDevice(pg1);");
        std::fs::write(&graph, text).unwrap();
    };
    write("");
    daemon.ok("set interface state pg0 up");
    daemon.ok("set interface state pg1 up");
    daemon.ok(&format!("set click graph {}", graph.display()));
    daemon.ok("packet-generator new name s interface pg0 template { eth dst 02:00:00:00:00:09 / ip4 / udp / payload 20 }");
    daemon.ok("packet-generator enable");
    let middles = [
        "Queue(5000) ->",
        "EtherMirror -> q :: Queue(5000) -> c :: Counter ->",
        "c :: Counter -> q :: Queue(6000) -> Unqueue(ACTIVE false) ->",
        "Strip(14) -> Unstrip(14) ->",
        "",
    ];
    for n in 0..25 {
        // A queue that nothing reads would be full before the next command.
        let middle = middles[n % 5].replace("(ACTIVE false)", "");
        write(&middle);
        daemon.ok("click reload");
    }
    let (received, sent) = drain(&mut daemon);
    assert!(received > 1000, "{received}");
    assert_eq!(sent, received);
    assert_eq!(
        daemon.ok("show click all.count").trim(),
        received.to_string()
    );
    daemon.stop("TERM");
}

/// The ARP request for the gateway has the addresses of the interface and of the next hop of its default route.
#[test]
fn the_name_of_an_interface_means_its_addresses() {
    let config = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nmac = \"02:00:00:00:00:11\"\n";
    let mut daemon = Daemon::start(config, &[]);
    daemon.ok("set interface ip address pg0 192.0.2.2/24");
    daemon.ok("set interface state pg0 up");
    daemon.ok("ip route add 0.0.0.0/0 via 192.0.2.254");
    let graph = daemon.folder.file("t.click");
    // Semicolons may be left out.
    let text = "define($DEV pg0, $GW $DEV:gw)\n\
        FromDevice($DEV) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, -)\n\
        -> ARPResponder($DEV) -> q :: Queue -> ToDevice($DEV)\n\
        c[2] -> Strip(14) -> CheckIPHeader -> ip :: IPClassifier(icmp echo-reply and dst host $DEV)\n\
        -> ping :: ICMPPingSource($DEV, 198.51.100.1, LIMIT 1) -> SetIPAddress($GW) -> arpq :: ARPQuerier($DEV) -> q\n\
        c[1] -> [1] arpq\n\
        arpq[1] -> t :: Tee -> q\n\
        t[1] -> ToDump(out.pcap)\n";
    std::fs::write(&graph, text).unwrap();
    daemon.ok(&format!("set click graph {}", graph.display()));
    let mut wanted = vec![0xff; 6];
    wanted.extend([2, 0, 0, 0, 0, 0x11, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    wanted.extend([2, 0, 0, 0, 0, 0x11, 192, 0, 2, 2, 0, 0, 0, 0, 0, 0]);
    wanted.extend([192, 0, 2, 254]);
    let file = daemon.folder.file("out.pcap");
    daemon.wait_for("the ARP request", |_| {
        let bytes = std::fs::read(&file).unwrap_or_default();
        bytes.windows(wanted.len()).any(|it| it == wanted)
    });
    daemon.stop("TERM");
}
