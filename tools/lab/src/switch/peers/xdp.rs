//! XDP: a program at each veth pair that redirects all frames to the other one, in the driver.
//!
//! The program has four instructions and no map, so the object file that `ip link` loads is written here.

use super::adapter::{Adapter, Reach, script, write_bytes};
use crate::switch::process::Process;
use crate::switch::topology::{Kind, Topology};
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "xdp",
    title: "XDP redirection (veth)",
    program: Some("ip"),
    kinds: &[Kind::Veth],
    choices: &[],
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

/// Section of the program, by which the loader knows its kind.
const SECTION: &str = "xdp";
/// Number of the helper that redirects a frame.
const REDIRECT: u32 = 23;
/// Result by which a frame goes on to the kernel.
const PASS: u32 = 2;

/// An instruction: operation, registers, constant.
fn instruction(operation: u8, register: u8, constant: u32) -> [u8; 8] {
    let [a, b, c, d] = constant.to_le_bytes();
    [operation, register, 0, 0, a, b, c, d]
}

/// Set a register to a constant.
fn set(register: u8, constant: u32) -> [u8; 8] {
    instruction(0xb7, register, constant)
}

fn call(helper: u32) -> [u8; 8] {
    instruction(0x85, 0, helper)
}

fn exit() -> [u8; 8] {
    instruction(0x95, 0, 0)
}

/// Redirect to the interface of this number.
fn redirect(interface: u32) -> Vec<u8> {
    [set(1, interface), set(2, 0), call(REDIRECT), exit()].concat()
}

/// Let frames pass: the other end of a pair takes redirected frames only if it has a program, too.
fn pass() -> Vec<u8> {
    [set(0, PASS), exit()].concat()
}

/// Names of sections and symbols: offsets of the names are those in this text.
const NAMES: &str = "\0xdp\0license\0.symtab\0.strtab\0program\0";

fn name(name: &str) -> u32 {
    NAMES.find(name).unwrap_or(0) as u32
}

/// A section of the object file.
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    content: Vec<u8>,
    link: u32,
    info: u32,
    entry: u64,
}

/// The header of a section whose content begins at an offset.
fn header(section: &Section, offset: u64) -> Vec<u8> {
    let words = |all: &[u32]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let longs = |all: &[u64]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    [
        words(&[section.name, section.kind]),
        longs(&[section.flags, 0, offset, section.content.len() as u64]),
        words(&[section.link, section.info]),
        longs(&[8, section.entry]),
    ]
    .concat()
}

/// A symbol of global scope for the function in section 1, behind the empty symbol.
fn symbols(length: usize) -> Vec<u8> {
    let mut all = vec![0; 24];
    all.extend(name("program").to_le_bytes());
    // Global function; default visibility; section 1; at its beginning.
    all.extend([0x12, 0, 1, 0]);
    all.extend(0u64.to_le_bytes());
    all.extend((length as u64).to_le_bytes());
    all
}

/// An object file (ELF, little endian, machine BPF) with one program.
fn object(code: Vec<u8>) -> Vec<u8> {
    let section = |name: u32, kind: u32, content: Vec<u8>| Section {
        name,
        kind,
        flags: 0,
        content,
        link: 0,
        info: 0,
        entry: 0,
    };
    let symbols = symbols(code.len());
    let sections = [
        section(0, 0, Vec::new()),
        Section {
            // Allocated, executable.
            flags: 6,
            ..section(name(SECTION), 1, code)
        },
        section(name("license"), 1, b"GPL\0".to_vec()),
        Section {
            // Names are in section 4; the first global symbol is symbol 1.
            link: 4,
            info: 1,
            entry: 24,
            ..section(name(".symtab"), 2, symbols)
        },
        section(name(".strtab"), 3, NAMES.as_bytes().to_vec()),
    ];
    const HEADER: usize = 64;
    let (mut contents, mut headers) = (Vec::new(), Vec::new());
    for section in &sections {
        headers.extend(header(section, (HEADER + contents.len()) as u64));
        contents.extend(&section.content);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // A relocatable file of machine 247.
    file.extend([1, 0, 247, 0, 1, 0, 0, 0]);
    file.extend(
        [0u64, 0, (HEADER + contents.len()) as u64]
            .map(u64::to_le_bytes)
            .concat(),
    );
    file.extend(0u32.to_le_bytes());
    // Sizes of the headers; 5 sections, names in the fourth.
    file.extend(
        [HEADER as u16, 0, 0, 64, 5, 4]
            .map(u16::to_le_bytes)
            .concat(),
    );
    [file, contents, headers].concat()
}

/// The script that loads the programs.
fn text(topology: &Topology) -> String {
    let load = |device: String, file: String| {
        format!("ip link set dev {device} xdp object \"$dir/{file}\" section {SECTION}\n")
    };
    let mut text = String::new();
    for link in &topology.links {
        text += &load(link.far_device(), "pass.o".to_owned());
        text += &load(link.device(), format!("{}.o", link.number));
    }
    text
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    write_bytes(topology, "pass.o", &object(pass()))?;
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a, b), (b, a)] {
            let code = redirect(topology.links[*tx].index());
            write_bytes(topology, &format!("{rx}.o"), &object(code))?;
        }
    }
    let dir = topology.folder()?.display();
    let text = format!("dir='{dir}'\n{}", text(topology));
    script("XDP", topology, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn the_object_file_is_aligned_and_complete() {
        let file = object(redirect(11));
        assert_eq!(file.len() % 8, 0);
        let sections = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        assert_eq!(file.len(), sections + 5 * 64);
        assert_eq!(file[64..72], [0xb7, 1, 0, 0, 11, 0, 0, 0]);
        assert_eq!(name("xdp"), 1);
        let end = NAMES[name("program") as usize..].find('\0');
        assert_eq!(end, Some("program".len()));
    }

    #[test]
    fn every_device_has_a_program() {
        let spec = Spec::of("p2p --physical veth").unwrap();
        let text = text(&Topology::new(&spec, Path::new("/x"), 1).unwrap());
        for line in [
            "ip link set dev lab0 xdp object \"$dir/pass.o\" section xdp",
            "ip link set dev sw1 xdp object \"$dir/1.o\" section xdp",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
