//! Ports of DPDK in the file.

fn parse(text: &str) -> Result<Vec<String>, String> {
    let config = volley_config::parse(text).map_err(|e| e.to_string())?;
    Ok(config.requests.iter().map(|r| r.to_string()).collect())
}

#[test]
fn a_file_with_ports_gives_the_commands_in_order() {
    let lines = parse(
        r#"
        [[interface]]
        name = "wan0"
        kind = "dpdk"
        dev = "02:00.0"
        queues = 4
        rx_desc = 2048
        [[interface]]
        name = "n1"
        kind = "dpdk"
        vdev = "net_null1,size=64"
        offload = false
        "#,
    );
    assert_eq!(
        lines.unwrap()[..2],
        [
            "create dpdk interface wan0 dev 02:00.0 num-rx-queues 4 num-rx-desc 2048",
            "create dpdk interface n1 vdev net_null1,size=64 no-offload",
        ]
    );
}

#[test]
fn errors_name_their_place_and_what_is_right() {
    let of = |keys: &str| {
        let text = format!("[[interface]]\nname = \"a\"\nkind = \"dpdk\"\n{keys}\n");
        parse(&text).unwrap_err()
    };
    assert!(of("").contains("needs dev (a PCI address) or vdev"));
    assert!(of("dev = \"eth0\"").contains("write its address as 0000:02:00.0"));
    assert!(of("vdev = \"null0\"").contains("begins with net_"));
    assert!(of("vdev = \"net_null0\"\nrx_desc = 7").contains("num-rx-desc"));
    let other = parse("[[interface]]\nname = \"a\"\nkind = \"pg\"\nvdev = \"net_null0\"\n");
    assert!(other.unwrap_err().contains("is for kind dpdk only"));
}
