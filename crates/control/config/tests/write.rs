//! What is written out is read back as the same requests, for the kinds of interface that a test machine may not have.

use volley_config::{parse, write};

#[track_caller]
fn comes_back(text: &str) {
    // Before the file is read, for the tests of this program run at the same time and classes are of the whole process.
    volley_fib::classes().unwrap();
    let first = parse(text).unwrap().requests;
    let written = write(&first);
    let again = parse(&written).unwrap_or_else(|e| panic!("{e}\n{written}"));
    assert_eq!(again.requests, first, "{written}");
}

#[test]
fn ports_of_dpdk() {
    comes_back(
        r#"
        [[interface]]
        name = "card"
        kind = "dpdk"
        dev = "0000:02:00.0"
        queues = 2
        offload = false
        state = "up"
        [[interface]]
        name = "null"
        kind = "dpdk"
        vdev = "net_null0,size=64"
        rx_desc = 512
        tx_desc = 256
        "#,
    );
}

#[test]
fn an_interface_that_uses_the_addresses_of_another() {
    comes_back(
        "[[interface]]\nname = \"a\"\nkind = \"pg\"\nunnumbered = \"b\"\n[[interface]]\nname = \"b\"\nkind = \"pg\"\naddresses = [\"192.0.2.1/32\"]\n",
    );
}

#[test]
fn kinds_of_the_kernel() {
    comes_back(
        r#"
        [[interface]]
        name = "t"
        kind = "tap"
        mode = "tun"
        host = "tun7"
        host_mtu = 1400
        host_addresses = ["192.0.2.2/24"]
        [[interface]]
        name = "h"
        kind = "host-interface"
        host = "eth0"
        queues = 2
        offload = false
        [[interface]]
        name = "x"
        kind = "af_xdp"
        host = "eth1"
        mode = "generic"
        copy = "copy"
        ring = 512
        "#,
    );
}

#[test]
fn sockets_and_their_peers() {
    comes_back(
        r#"
        [[interface]]
        name = "m"
        kind = "memif"
        memif = { id = 3, socket = 1, role = "slave", ring_size = 512, secret = "psst" }
        [[interface]]
        name = "v"
        kind = "vhost-user"
        socket = "/run/v.sock"
        "#,
    );
}
