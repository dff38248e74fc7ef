//! Runs the oracle (`tests/oracle`) on the output of a daemon.

use super::{Daemon, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use volley_pcap::{FileFormat, Packet, Writer, WriterOptions, read_packets};

/// A Python: that of `cargo xtask install`, which has scapy, else the system's.
pub fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venv/bin/python");
    let works = |path: &PathBuf| {
        Command::new(path)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    [own, PathBuf::from("python3")].into_iter().find(works)
}

/// The oracle's program.
pub fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/oracle.py")
}

/// Writes a capture file.
pub fn write(path: &Path, packets: &[Packet]) {
    let mut writer = Writer::create(path, WriterOptions::new(FileFormat::PcapUs)).unwrap();
    packets
        .iter()
        .for_each(|p| writer.write(p.as_ref()).unwrap());
    writer.finish().unwrap();
}

/// Compares the input with the output (interfaces with their captures) and with the daemon's `drops.pcapng`; a disagreement
/// fails the test. Returns the oracle's last line.
pub fn judge(
    python: &Path,
    router: &Path,
    inputs: &[(String, PathBuf)],
    outputs: &[(String, PathBuf)],
    daemon: &Daemon,
) -> String {
    let mut command = Command::new(python);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(program())
        .args(["compare", "--router"])
        .arg(router);
    for (option, files) in [("--input", inputs), ("--output", outputs)] {
        for (interface, file) in files.iter().filter(|(_, file)| file.exists()) {
            command
                .arg(option)
                .arg(format!("{interface}={}", file.display()));
        }
    }
    let output = command
        .arg("--drops")
        .arg(drops_without_texts(daemon))
        .output()
        .unwrap();
    let message = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{message}");
    message.trim().to_owned()
}

/// The dropped packets in the oracle's format: node and reason without the text in brackets after it. Nodes behind the input
/// nodes get a packet without the trailing bytes of its frame, so for them only the start of the frame is compared.
fn drops_without_texts(daemon: &Daemon) -> PathBuf {
    let file = daemon.folder.file("drops.jsonl");
    let line = |packet: Packet| {
        let comment = packet.comment.unwrap_or_default();
        let (node, reason) = comment.split_once(": ").unwrap_or((&comment, ""));
        let reason = reason.split(' ').next().unwrap_or_default();
        let hex: String = packet
            .data
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let whole = matches!(
            node,
            "pg-input" | "ethernet-input" | "ip4-input" | "ip6-input"
        );
        let length = packet.data.len() + usize::from(!whole);
        serde_json::json!({"node": node, "reason": reason, "hex": hex, "length": length})
            .to_string()
            + "\n"
    };
    let drops = read_packets(daemon.folder.file("drops.pcapng"))
        .unwrap()
        .packets;
    std::fs::write(&file, drops.into_iter().map(line).collect::<String>()).unwrap();
    file
}
