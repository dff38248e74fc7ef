//! The items of "An operator's first week": commands and their output.

use super::{Item, Work, control, item, long, test_file};
use xtask::fresh;

pub const ITEMS: &[Item] = &[
    item(
        "fresh-clone",
        "the README's commands and every test that looks for shared data, with the data absent",
        Work::Call(|sitting| fresh::without_data(sitting.home)),
    ),
    long(
        "fresh-clone-ci",
        "the README's test command in a clone alone in a folder",
        Work::Call(|sitting| fresh::clone(sitting.home)),
    ),
    item(
        "demo-capture",
        "the demo verifies captures with long frames, raw, loopback and cooked ones",
        Work::Command(test_file!["demo_capture"]),
    ),
    item(
        "trace",
        "good packets are never called malformed, whatever was kept of them",
        Work::Command(test_file!["trace_text"]),
    ),
    item(
        "in-place",
        "200 settings that a user of group volley commits and rolls back: no ping is lost, unless the difference marks an interruption",
        Work::Command(test_file!["in_place"]),
    ),
    item(
        "examples",
        "every example of the pages, the READMEs and the package is one",
        Work::Command(test_file!["examples"]),
    ),
    item(
        "capture-full-disk",
        "true counts, the reason, a whole last record and an error",
        Work::Command(test_file!["full_disk"]),
    ),
    item(
        "fib-absent",
        "an absent prefix: the route that packets to it follow, or an error",
        Work::Command(test_file!["ctl_script", "absent"]),
    ),
    item(
        "ctl-script",
        "commands on standard input: the line that fails, and the exit status",
        Work::Command(test_file!["ctl_script", "lines"]),
    ),
    item(
        "vrf-memory",
        "16: 1,000 VRFs cost less than 100 MB",
        Work::Command(test_file!["routing", "a_thousand_vrfs"]),
    ),
    item(
        "confirm-unit",
        "90s, 2m and plain seconds in config commit --confirm",
        Work::Command(test_file!["ctl_script", "confirm"]),
    ),
    item(
        "log",
        "who did what, links, neighbours, clients; show log, events, files, history; floods, full disks, hostile text",
        Work::Command(test_file!["log"]),
    ),
    item(
        "mac",
        "two routers of the same configuration have MAC and link-local addresses of their own; a duplicate MAC address is noticed",
        Work::Command(test_file!["kernel_devices", "two_routers"]),
    ),
    item(
        "missing-interface",
        "a kernel interface that is missing at start, deleted and made again, or moved is waited for; the last commit stays",
        Work::Command(test_file![
            "kernel_devices",
            "a_missing",
            "a_commit",
            "comes_and_goes"
        ]),
    ),
    item(
        "path-mtu",
        "the MTU is set in the kernel, follows it, and larger packets are answered by ICMP",
        Work::Command(test_file!["kernel_devices", "path_mtu"]),
    ),
    item(
        "config-check",
        "what a start would refuse is found before it, with --here what needs the machine",
        Work::Command(test_file!["operator", "check_"]),
    ),
    item(
        "client-files",
        "configuration files are read by the client, names of files are made absolute by it",
        Work::Command(test_file!["operator", "files_are"]),
    ),
    item(
        "link-local",
        "link-local addresses that the kernel makes are used and are no configuration",
        Work::Command(test_file!["operator", "link_local"]),
    ),
    item(
        "drop-reasons",
        "a link that is down, a quiet LAN, packets that the kernel had no room for",
        Work::Command(test_file!["operator", "a_link", "a_quiet", "packets_that"]),
    ),
    item(
        "odd-addresses",
        "addresses of no host are refused; overlapping networks and gateways elsewhere are warned of",
        Work::Command(test_file!["operator", "what_cannot"]),
    ),
    item(
        "show-tables",
        "interfaces with rates and descriptions, routes and errors, a line each, in 80 columns",
        Work::Command(test_file!["operator", "interfaces_are", "routes_are"]),
    ),
    item(
        "ping-live",
        "ping and traceroute print answers as they come, and end by Ctrl-C",
        Work::Command(test_file!["operator", "pings_print"]),
    ),
    item(
        "arping",
        "kernel hosts answer by ARP and ND as requests go out; silence is exit status 1; two hosts with one address",
        Work::Command(test_file![
            "look_on",
            "hosts_answer",
            "silence_is",
            "two_hosts"
        ]),
    ),
    item(
        "monitor",
        "packets on the terminal; pcapng that tcpdump reads and counts; a client that does not read delays no other client",
        Work::Command(test_file![
            "look_on",
            "packets_are",
            "a_capture",
            "a_client"
        ]),
    ),
    item(
        "onlink",
        "a gateway that is on its link by decree: command line, file, JSON, the kernel's routes both ways, FRR",
        Work::Command(test_file![
            "operator",
            "--test",
            "lcp",
            "--test",
            "frr",
            "what_cannot",
            "routes_of",
            "onlink"
        ]),
    ),
    item(
        "speed",
        "the speed of the kernel's device, as sysfs has it, and after a change",
        Work::Command(test_file!["operator", "speeds_are"]),
    ),
    item(
        "help",
        "every keyword of every command has a meaning",
        Work::Command(&[
            "test",
            "-p",
            "volley-cli",
            "-p",
            "volley-daemon",
            "--lib",
            "every_keyword",
        ]),
    ),
    item(
        "command-line",
        "aliases and hints for words from elsewhere, did-you-mean, pipes, the socket anywhere, a daemon that restarts",
        Work::Command(test_file!["operator", "words_of", "the_socket", "a_client"]),
    ),
    item(
        "rights",
        "the sockets' group, roles of users, groups and tokens, the metrics listener, a user of group volley drives the router",
        Work::Command(test_file!["rights", "--test", "golden"]),
    ),
    item(
        "binary-size",
        "22: the installed binary has 25 MB at most; its debug symbols are in a package of their own",
        Work::Call(control::package),
    ),
    item(
        "edited-file",
        "a file that differs from the commit is reported at start",
        Work::Command(test_file!["operator", "a_file"]),
    ),
    item(
        "week-boot",
        "a user of group volley types: a boot without an interface that appears later: it is waited for, then traffic flows and FRR's sessions come up",
        Work::Command(test_file!["week", "a_boot"]),
    ),
    item(
        "week-interfaces",
        "a user of group volley types: interfaces of every kind go down and up, are deleted and created 5 times: no ping lost, nothing left, FRR stays up",
        Work::Command(test_file!["week", "interfaces_of"]),
    ),
    long(
        "week-whole",
        "the same 100 times, and an interface that appears after 30 seconds",
        Work::With(&[("VOLLEY_WEEK", "100")], test_file!["week"]),
    ),
];
