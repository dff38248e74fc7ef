//! Programs against a router that only notes what it gets. `apps/volley/tests/snabb.rs` runs programs in a daemon.

use super::*;
use volley_click_lang::{Source, flatten, parse};

/// A router that accepts everything.
#[derive(Default)]
struct Notes {
    graphs: Vec<String>,
    written: Vec<(String, String)>,
}

impl Host for Notes {
    fn configure(&mut self, text: &str) -> Result<(), String> {
        // Every graph is one of Click's language over the elements that the router has.
        let source = Source::new("graph.click", text);
        let network = parse(&source).and_then(|it| flatten(&source, &it, &volley_click::names()));
        network.map_err(|why| format!("{why}\n{text}"))?;
        self.graphs.push(text.to_owned());
        Ok(())
    }

    fn read(&mut self, handler: &str) -> Result<String, String> {
        match handler.ends_with("count") {
            true => Ok("7".to_owned()),
            false => Err(format!("no handler {handler}")),
        }
    }

    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.written.push((handler.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn graphs(text: &str) -> Notes {
    let (notes, done) = run("test.lua", text, &[], Notes::default());
    done.unwrap_or_else(|why| panic!("{why}"));
    notes
}

fn refusal(text: &str) -> String {
    run("test.lua", text, &[], Notes::default()).1.unwrap_err()
}

#[test]
fn apps_and_links_become_elements_and_connections() {
    let notes = graphs(
        "local basic = require('apps.basic.basic_apps')
         local c = config.new()
         config.app(c, 'source', basic.Source, { size = 120 })
         config.app(c, 'tee', basic.Tee)
         config.app(c, 'a', basic.Sink)
         config.app(c, 'ip', 'CheckIPHeader', { 14, OFFSET = 14 })
         config.link(c, 'source.tx -> tee.rx')
         config.link(c, 'tee.two -> ip.input')
         config.link(c, 'tee.one -> a.rx')
         config.link(c, 'ip.output -> a.other')
         engine.configure(c)
         assert(engine.link_stats('tee.one -> a.rx').txpackets == 7)
         engine.app_table.ip:write('x', 3)",
    );
    let expected = [
        "source :: InfiniteSource(LENGTH 120);",
        "tee :: Null();",
        "tee_out :: Tee(2);",
        "a :: Discard();",
        "ip :: CheckIPHeader(14, OFFSET 14);",
        "tee [0] -> [0] tee_out;",
        "source [0] -> link_source_tx_tee_rx :: Counter -> [0] tee;",
        "tee_out [1] -> link_tee_two_ip_input :: Counter -> [0] ip;",
        "tee_out [0] -> link_tee_one_a_rx :: Counter -> [0] a;",
        "ip [0] -> link_ip_output_a_other :: Counter -> [0] a;",
    ];
    assert_eq!(notes.graphs, [expected.join("\n") + "\n"]);
    assert_eq!(notes.written, [("ip.x".to_owned(), "3".to_owned())]);
}

#[test]
fn every_app_is_made_of_elements_of_the_router() {
    let notes = graphs(
        "local basic, pcap = require('apps.basic.basic_apps'), require('apps.pcap.pcap')
         local Interface = require('apps.volley.interface').Interface
         local click = require('apps.click')
         local c = config.new()
         config.app(c, 'source', basic.Source)
         config.app(c, 'file', pcap.PcapReader, '/tmp//in.pcap')
         config.app(c, 'join', basic.Join)
         config.app(c, 'short', basic.Truncate, 60)
         config.app(c, 'again', basic.Repeater)
         config.app(c, 'split', basic.Split)
         config.app(c, 'sorts', click.Classifier, { '12/0800', '-' })
         config.app(c, 'port', Interface, 'pg0')
         config.app(c, 'out', pcap.PcapWriter, 'out.pcap')
         config.app(c, 'sink', basic.Sink)
         for _, link in ipairs({ 'source.a -> join.a', 'source.b -> join.b', 'file.output -> join.c', 'join.out -> short.in',
             'short.out -> again.input', 'again.output -> split.input', 'split.a -> port.rx', 'split.b -> out.input',
             'port.tx -> sorts.input', 'sorts.output0 -> sink.a', 'sorts.1 -> sink.b' }) do
           config.link(c, link)
         end
         engine.configure(c)
         engine.stop()",
    );
    assert_eq!(notes.graphs.len(), 2);
    for part in [
        // Two slashes outside of quotes begin a comment.
        "file :: FromDump(\"/tmp//in.pcap\");",
        "again :: Queue(1000);",
        "again_next :: RatedUnqueue(1000000);",
        "again_out [1] -> [0] again;",
        "split_out :: RoundRobinSwitch();",
        "port_tx :: ToDevice(pg0);",
        "sorts :: Classifier(12/0800, -);",
        "sorts [1] -> link_sorts_1_sink_b :: Counter -> [0] sink;",
    ] {
        assert!(
            notes.graphs[0].contains(part),
            "{part}: {}",
            notes.graphs[0]
        );
    }
    assert_eq!(notes.graphs[1].trim(), "");
}

#[test]
fn errors_name_the_line_and_what_to_change() {
    let begin = "local basic = require('apps.basic.basic_apps')
        local c = config.new()
        config.app(c, 'a', basic.Source)
        config.app(c, 'b', basic.Sink)\n";
    let cases = [
        (
            "config.link(c, 'a.x > b.y')",
            "write \"a.output -> b.input\"",
        ),
        (
            "config.link(c, 'a.x -> d.y') engine.configure(c)",
            "there is no app d",
        ),
        (
            "config.link(c, 'a.x -> b.y') config.link(c, 'a.x -> b.z') engine.configure(c)",
            "put a Tee there",
        ),
        ("config.app(c, 'x y', basic.Sink)", "a name consists of"),
        ("config.app(c, 'x', basic.None)", "needs a class"),
        (
            "engine.configure(c)",
            "a (Source) has 0 outputs that are linked, but needs 1 to 1024",
        ),
        (
            "config.link(c, 'a.x -> b.y') config.app(c, 'f', 'Foo') engine.configure(c)",
            "Foo",
        ),
        (
            "engine.main({ duration = 1, done = function() end })",
            "not both",
        ),
        ("os.exit(0)", "return from the program"),
    ];
    for (text, reason) in cases {
        let why = refusal(&format!("{begin}{text}"));
        assert!(why.contains(reason) && !why.contains('\n'), "{text}: {why}");
    }
    assert!(refusal("x = = 1").starts_with("test.lua:1:"));
}

#[test]
fn the_engine_runs_for_a_time_or_until_something_is_done() {
    let text = "local rounds = 0
        engine.main({ done = function() rounds = rounds + 1 return rounds == 3 end, no_report = true })
        assert(rounds == 3 and arg[1] == 'one')
        local start = engine.now()
        engine.main({ duration = 0.05, no_report = true })
        assert(engine.now() - start >= 0.05)";
    let (_, done) = run("test.lua", text, &["one".to_owned()], Notes::default());
    assert_eq!(done, Ok(()));
}
