//! Lua programs that wire graphs as in Snabb (`volley-snabb`), in a running daemon.

mod support;

use std::path::PathBuf;
use support::traffic::drain;
use support::{Daemon, Folder};
use volley_snabb::{Options, Router, run};

const INTERFACES: &str =
    "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";

/// Runs a program that starts its daemon; its error.
fn alone(text: &str, arguments: &[String]) -> Result<(), String> {
    let options = Options {
        socket: None,
        volley: PathBuf::from(env!("CARGO_BIN_EXE_volley")),
        config: None,
    };
    let (router, done) = run("test.lua", text, arguments, Router::new(options).unwrap());
    router.close().unwrap();
    done
}

#[test]
fn apps_pass_packets_and_links_count_them() {
    let text = "local basic = require('apps.basic.basic_apps')
        local c = config.new()
        config.app(c, 'source', basic.Source, { size = 120 })
        config.app(c, 'split', basic.Split)
        config.app(c, 'join', basic.Join)
        config.app(c, 'tee', basic.Tee)
        config.app(c, 'a', basic.Sink)
        config.app(c, 'b', 'Counter')
        for _, link in ipairs({ 'source.tx -> split.rx', 'split.one -> join.one', 'split.two -> join.two', 'join.out -> tee.input',
            'tee.a -> a.rx', 'tee.b -> b.input', 'b.output -> a.other' }) do
          config.link(c, link)
        end
        engine.configure(c)
        engine.main({ done = function() return engine.link_stats('tee.a -> a.rx').txpackets > 10000 end, no_report = true })
        engine.app_table.source:write('active', false)
        local function sent(link) return engine.link_stats(link).txpackets end
        local all, limit = 0, engine.now() + 20
        engine.main({ no_report = true, done = function()
          local before = all
          all = sent('source.tx -> split.rx')
          return engine.now() > limit or all == before and sent('tee.a -> a.rx') == all and sent('b.output -> a.other') == all
        end })
        assert(all > 10000 and sent('join.out -> tee.input') == all and sent('tee.a -> a.rx') == all)
        assert(math.abs(sent('split.one -> join.one') - sent('split.two -> join.two')) <= 1)
        assert(tonumber(engine.app_table.b:read('count')) == all)
        assert(engine.link_stats('tee.b -> b.input').txbytes == all * 120)";
    assert_eq!(alone(text, &[]), Ok(()));
}

/// The rate is one that the file is written at: beyond it the writer drops packets.
#[test]
fn a_repeater_repeats_the_packets_of_a_file() {
    let folder = Folder::new();
    let (input, output) = (folder.file("in.pcap"), folder.file("out.pcap"));
    let frames: Vec<Vec<u8>> = (0..5u8).map(|n| vec![n; 60]).collect();
    let packet = |data: &Vec<u8>| volley_pcap::Packet::ethernet(0, data.clone());
    support::oracle::write(&input, &frames.iter().map(packet).collect::<Vec<_>>());
    let text = "local basic, pcap = require('apps.basic.basic_apps'), require('apps.pcap.pcap')
        local c = config.new()
        config.app(c, 'reader', pcap.PcapReader, arg[1])
        config.app(c, 'again', basic.Repeater, { rate = 1000 })
        config.app(c, 'writer', pcap.PcapWriter, arg[2])
        config.link(c, 'reader.output -> again.input')
        config.link(c, 'again.output -> writer.input')
        engine.configure(c)
        engine.main({ done = function() return engine.link_stats('again.output -> writer.input').txpackets >= 50 end, no_report = true })
        engine.stop()";
    let paths = [&input, &output].map(|it| it.display().to_string());
    assert_eq!(alone(text, &paths), Ok(()));
    let out = support::frames(&output);
    assert!(out.len() >= 50, "{}", out.len());
    for (n, frame) in out.iter().enumerate() {
        assert_eq!(*frame, frames[n % frames.len()], "packet {n}");
    }
}

/// The program changes its graph a hundred times while the generator sends as fast as it can.
#[test]
fn a_changed_configuration_is_a_difference_and_no_packet_is_lost() {
    let mut daemon = Daemon::start(INTERFACES, &[]);
    for name in ["pg0", "pg1"] {
        daemon.ok(&format!("set interface state {name} up"));
    }
    daemon
        .ok("packet-generator new name s interface pg0 template { eth / ip4 / udp / payload 20 }");
    let text = "local Interface = require('apps.volley.interface').Interface
        local function graph(n)
          local c = config.new()
          config.app(c, 'from', Interface, 'pg0')
          config.app(c, 'to', Interface, 'pg1')
          config.app(c, 'total', 'Counter')
          config.link(c, 'from.tx -> total.input')
          if n % 3 == 0 then
            config.link(c, 'total.output -> to.rx')
          else
            config.app(c, 'middle', n % 3 == 1 and 'Null' or 'EtherMirror')
            config.link(c, 'total.output -> middle.input')
            config.link(c, 'middle.output -> to.rx')
          end
          engine.configure(c)
        end
        graph(0)
        os.execute(arg[1] .. ' packet-generator enable')
        local before = 0
        for n = 1, 100 do
          graph(n)
          local now = tonumber(engine.app_table.total:read('count'))
          assert(now >= before, 'the counter begins again')
          before = now
        end
        assert(before > 1000, before)
        local ok, why = pcall(function()
          local c = config.new()
          config.app(c, 'from', Interface, 'pg9')
          config.app(c, 'sink', 'Discard')
          config.link(c, 'from.tx -> sink.input')
          engine.configure(c)
        end)
        assert(not ok and tostring(why):find('there is no interface pg9'), why)
        assert(tonumber(engine.app_table.total:read('count')) >= before)
        os.execute(arg[1] .. ' packet-generator disable')
        engine.main({ duration = 0.3, no_report = true })";
    let socket = daemon.folder.file("s");
    let program = format!(
        "{} ctl --socket {}",
        env!("CARGO_BIN_EXE_volley"),
        socket.display()
    );
    let options = Options {
        socket: Some(socket),
        ..Options::default()
    };
    let router = Router::new(options).unwrap();
    let (router, done) = run("test.lua", text, &[program], router);
    assert_eq!(done, Ok(()));
    let (received, sent) = drain(&mut daemon);
    let drops = daemon.ok("show drops");
    assert!(received > 1000, "{received}");
    assert_eq!(received, sent, "{drops}");
    router.close().unwrap();
    assert!(daemon.json("show click")["graph"].is_null());
    daemon.stop("TERM");
}
