//! Lua scripts in a running daemon: the router of `examples/lua` beside the native one, reload under traffic, errors in the log.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::Daemon;
use support::traffic::{drain, packets};
use volley_pcap::{FileFormat, Packet, Writer, WriterOptions, read_packets};

const INTERFACES: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nmac = \"02:00:00:00:00:01\"\n\
    [[interface]]\nname = \"pg1\"\nkind = \"pg\"\nmac = \"02:00:00:00:00:02\"\n";
const SENDER: &str = "packet-generator new name s interface pg0 \
    template { eth src 02:00:00:00:00:09 dst 02:00:00:00:00:01 / ip4 src 10.0.0.9 dst 10.0.1.2 / udp / payload 20 }";

/// The shared library of `volley-lua`.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libvolley_lua.so")
}

/// The script of the example.
fn router() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lua/router.lua")
}

/// A daemon with a script on both interfaces.
fn with_script(text: &str) -> (Daemon, PathBuf) {
    let daemon = Daemon::start(INTERFACES, &[]);
    daemon.ok("set interface state pg0 up");
    daemon.ok("set interface state pg1 up");
    let path = daemon.folder.file("script.lua");
    fs::write(&path, text).unwrap();
    daemon.ok(&format!("plugin load {} name lua", plugin().display()));
    daemon.ok(&format!("set lua-script test file {}", path.display()));
    for name in ["pg0", "pg1"] {
        daemon.ok(&format!(
            "set interface feature {name} lua-input arc device-input"
        ));
    }
    (daemon, path)
}

#[test]
fn scripts_change_under_traffic_and_no_packet_is_lost() {
    let (mut daemon, path) = with_script("function vector(v) v:send('pg1') end");
    daemon.ok(SENDER);
    daemon.ok("packet-generator enable");
    for n in 0..50 {
        let text = format!("-- {n}\nfunction vector(v) v:send(v:all(), 'pg1') end");
        fs::write(&path, text).unwrap();
        daemon.ok("reload lua-script test");
    }
    daemon.ok("plugin replace lua @"
        .replace('@', plugin().to_str().unwrap())
        .as_str());
    // A script with an error is refused, and the old one goes on.
    fs::write(&path, "function vector(v)\n v:send(").unwrap();
    let refused = daemon.refused("reload lua-script test");
    assert!(refused.contains("script.lua:2: "), "{refused}");
    let (received, sent) = drain(&mut daemon);
    assert!(received > 1000, "{received}");
    assert_eq!(received, sent);
    let written = daemon.ok("config show");
    assert!(written.contains("[lua_script.test]"), "{written}");
    daemon.stop("TERM");
}

#[test]
fn an_error_is_a_drop_with_a_reason_and_a_line_in_the_log() {
    let text = "function vector(v)\n  if v:match('ip4.ttl', 64) then\n    local x = nil .. 'a'\n  end\nend";
    let (mut daemon, path) = with_script(text);
    daemon.ok(&SENDER.replace("interface pg0", "interface pg0 limit 1000"));
    daemon.ok("packet-generator enable");
    daemon.wait_for_answer("show errors", "the script raised an error");
    daemon.wait_for_answer("show drops", "script-error");
    let place = format!("{}:3: attempt to concatenate", path.display());
    daemon.wait_for_answer("show log", &place);
    // The router goes on with the next version.
    fs::write(&path, "function vector(v) v:send('pg1') end").unwrap();
    daemon.ok("reload lua-script test");
    daemon.ok("packet-generator enable");
    daemon.wait_for("packets", |d| packets(d, "pg1", "tx") > 0);
    daemon.ok("packet-generator disable");
    daemon.ok("delete lua-script test");
    for name in ["pg0", "pg1"] {
        daemon.ok(&format!(
            "set interface feature {name} lua-input arc device-input disable"
        ));
    }
    daemon.ok("plugin unload lua");
    daemon.wait_for("the plugin is gone", |d| {
        let shown = d.json("show plugins");
        shown["plugins"].as_array().unwrap().is_empty()
    });
    daemon.stop("TERM");
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Frames for the router: most are valid, others have a fault in a field of the IPv4 header, another destination or another length.
fn frames(count: u32) -> Vec<Vec<u8>> {
    use volley_wire::ip4::Ip4Header;
    use volley_wire::{IntoBytes, IpProto};
    let mut numbers = Numbers(0x5eed);
    let one = |n: u32| {
        let dst = match numbers.below(8) {
            0 => [10, 0, 1, 2],
            1 => [10, 9, numbers.below(256) as u8, 1],
            2 => [10, 77, 0, 1],
            3 => [127, 0, 0, 1],
            4 => [224, 0, 0, 9],
            5 => [169, 254, 1, 1],
            _ => [10, 9, 0, numbers.below(256) as u8],
        };
        let ttl = [1, 2, 64, 64, 64, 255][numbers.below(6) as usize];
        let payload = 12 + numbers.below(400) as usize;
        let mut ip = Ip4Header::new([10, 0, 0, 9].into(), dst.into(), IpProto::UDP, ttl, payload);
        ip.id = (n as u16).into();
        ip.fill_checksum(&[]);
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
        bytes.extend_from_slice(ip.as_bytes());
        bytes.extend([0x12, 0x34, 0, 80, 0, payload as u8, 0, 0]);
        bytes.extend(n.to_be_bytes());
        bytes.resize(34 + payload, n as u8);
        match numbers.below(8) {
            0 => {
                let at = 14 + numbers.below(20) as usize;
                bytes[at] ^= 1 << numbers.below(8);
            }
            1 => bytes.truncate(14 + numbers.below(24) as usize),
            2 => bytes.extend([0; 20]),
            3 => bytes[5] = 9,
            _ => {}
        }
        bytes
    };
    (0..count).map(one).collect()
}

/// Frames that a daemon sends on an interface, without padding.
fn sent(daemon: &Daemon, name: &str) -> Vec<Vec<u8>> {
    let file = read_packets(daemon.folder.file(&format!("{name}.pcap"))).unwrap();
    file.packets.into_iter().map(|it| it.data).collect()
}

/// The output of a daemon for these frames into pg0.
fn outputs(daemon: &mut Daemon, frames: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
    let file = daemon.folder.file("in.pcap");
    let mut writer = Writer::create(&file, WriterOptions::new(FileFormat::PcapUs)).unwrap();
    for frame in frames {
        let packet = Packet::ethernet(0, frame.clone());
        writer.write(packet.as_ref()).unwrap();
    }
    writer.finish().unwrap();
    for name in ["pg0", "pg1"] {
        let file = daemon.folder.file(&format!("{name}.pcap"));
        daemon.ok(&format!(
            "packet-generator capture {name} pcap {}",
            file.display()
        ));
    }
    let (count, file) = (frames.len(), file.display());
    daemon.ok(&format!(
        "packet-generator new name d interface pg0 limit {count} pcap {file}"
    ));
    daemon.ok("packet-generator enable d");
    daemon.wait_for("all frames", |d| packets(d, "pg0", "rx") >= count as u64);
    drain(daemon);
    daemon.stop("TERM");
    [sent(daemon, "pg0"), sent(daemon, "pg1")]
}

#[test]
fn the_router_in_lua_forwards_what_the_native_router_forwards() {
    let frames = frames(4000);
    let config = format!(
        "{INTERFACES}[[neighbor]]\ninterface = \"pg1\"\naddress = \"10.0.1.2\"\nmac = \"02:00:00:00:00:77\"\n\
         [[neighbor]]\ninterface = \"pg0\"\naddress = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n"
    );
    let mut native = Daemon::start(&config, &[]);
    for line in [
        "set interface state pg0 up",
        "set interface state pg1 up",
        "set interface ip address pg0 10.0.0.1/24",
        "set interface ip address pg1 10.0.1.1/24",
        "set ip icmp rate 0 receiver-rate 0",
        "ip route add 10.9.0.0/16 via 10.0.1.2 pg1",
    ] {
        native.ok(line);
    }
    let text = fs::read_to_string(router()).unwrap();
    let known = "routes:neighbor('10.0.1.2', { interface = 'pg1', mac = '02:00:00:00:00:77' })\n\
        routes:neighbor('10.0.0.9', { interface = 'pg0', mac = '02:00:00:00:00:09' })\n";
    let (mut lua, path) =
        with_script(&text.replace("-- The fast path.", &format!("{known}-- The fast path.")));
    lua.ok(&format!(
        "set lua-script test file {} queue 1024",
        path.display()
    ));
    let [native0, native1] = outputs(&mut native, &frames);
    let [lua0, lua1] = outputs(&mut lua, &frames);
    assert!(native1.len() > 1000, "{}", native1.len());
    assert_eq!(lua1.len(), native1.len());
    for (lua, native) in lua1.iter().zip(&native1) {
        assert_eq!(lua, native);
    }
    // ICMP errors differ in what routers may choose, such as the identification: type, code, addresses and the quoted header do not.
    let errors = |frames: &[Vec<u8>]| {
        let is_icmp = |it: &&Vec<u8>| it.get(23) == Some(&1);
        let key = |it: &Vec<u8>| (it[34], it[35], it[26..34].to_vec(), it[42..62].to_vec());
        let mut all: Vec<_> = frames.iter().filter(is_icmp).map(key).collect();
        all.sort();
        all
    };
    let (lua, native) = (errors(&lua0), errors(&native0));
    assert!(native.len() > 100, "{}", native.len());
    assert_eq!(lua, native);
}
