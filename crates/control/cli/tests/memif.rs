//! The commands of memif, and the sentences of their errors.

use volley_cli::{Action, parse_line};
use volley_model::{InterfaceKind, MemifRole, MemifSpec, Request};

fn request(line: &str) -> Request {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Request(request) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn spellings() {
    let same = [
        "create interface memif id 0 socket-id 0 master",
        "create interface memif id 3 socket-id 1 slave ring-size 512 buffer-size 4096 rx-queues 2 tx-queues 4 secret psst no-zero-copy",
        "create interface memif id 3 socket-id 1 slave name up1 mac 02:fe:00:00:00:01 mtu 1500",
    ];
    for line in same {
        assert_eq!(request(line).to_string(), line);
    }
    let short = request("create interface memif slave hw-addr 02:fe:00:00:00:01");
    assert_eq!(
        short.to_string(),
        "create interface memif id 0 socket-id 0 slave mac 02:fe:00:00:00:01"
    );
    let delete = request("delete interface memif memif0/0");
    assert_eq!(delete.to_string(), "delete interface memif0/0");
    let Request::InterfaceCreate(spec) = request("create interface memif id 7 socket-id 2 slave")
    else {
        panic!()
    };
    assert_eq!(spec.name, "memif2/7");
    let memif = MemifSpec {
        id: 7,
        socket_id: 2,
        role: MemifRole::Slave,
        ..MemifSpec::default()
    };
    assert_eq!(spec.kind, InterfaceKind::Memif(memif));
}

#[test]
fn errors_are_one_sentence() {
    let error = |line: &str| parse_line(line).expect_err(line).to_string();
    assert_eq!(
        error("create interface memif id 0 slave ring-size 1000"),
        "column 45: ring-size 1000 is not valid: it must be a power of two, 1 to 16384"
    );
    assert_eq!(
        error("create interface memif id 0 slave buffer-size 8"),
        "column 47: buffer-size 8 is not valid: it must be 64 to 65535"
    );
    assert_eq!(
        error("create interface memif id 0 secret 1234567890123456789012345"),
        "column 1: length of the secret is 25, the limit is 24"
    );
    assert!(error("create interface memif master slave rx-queues 65").contains("1 to 64"));
}
