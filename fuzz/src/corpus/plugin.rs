//! Seeds of `plugin_file`: small ELF files with and without the symbol of a fingerprint.

/// Address of the section with the fingerprint.
const ADDRESS: u64 = 0x1000;
/// Length of a fingerprint in bytes.
const LENGTH: usize = 1288;
/// Length of a header of a section in bytes.
const HEADER: u16 = 64;

/// A section: name in the table of names, type, address, content, link, and size of an entry.
type Section = (u32, u32, u64, Vec<u8>, u32, u64);

/// Names and contents.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut print = b"volley plugin  1".to_vec();
    print.extend(b"1\0\0\0\0\0\0\0rustc 1.95.0");
    print.resize(LENGTH, 0);
    let whole = library(b"\0VOLLEY_PLUGIN\0", &print);
    vec![
        ("other-symbol", library(b"\0OTHER_LIBRARY\0", &print)),
        ("short-print", library(b"\0VOLLEY_PLUGIN\0", &print[..40])),
        ("truncated", whole[..whole.len() - 100].to_vec()),
        ("library", whole),
        ("head-only", b"\x7fELF\x02\x01\x01".to_vec()),
    ]
}

/// A shared library with one symbol, whose value is the content of a section.
fn library(names: &[u8], content: &[u8]) -> Vec<u8> {
    let mut symbols = vec![0; 24];
    symbols.extend(1_u32.to_le_bytes());
    // A global object in section 3.
    symbols.extend([0x11, 0, 3, 0]);
    symbols.extend(ADDRESS.to_le_bytes());
    symbols.extend((content.len() as u64).to_le_bytes());
    let titles = b"\0.dynsym\0.dynstr\0.rodata\0.shstrtab\0".to_vec();
    let sections: [Section; 4] = [
        (1, 11, 0, symbols, 2, 24),
        (9, 3, 0, names.to_vec(), 0, 0),
        (17, 1, ADDRESS, content.to_vec(), 0, 0),
        (25, 3, 0, titles, 0, 0),
    ];
    let (mut body, mut headers) = (Vec::new(), vec![0; usize::from(HEADER)]);
    for (name, kind, address, content, link, entry) in sections {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        headers.extend(2_u64.to_le_bytes());
        headers.extend(address.to_le_bytes());
        headers.extend((64 + body.len() as u64).to_le_bytes());
        headers.extend((content.len() as u64).to_le_bytes());
        headers.extend(link.to_le_bytes());
        headers.extend(1_u32.to_le_bytes());
        headers.extend(1_u64.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        body.extend(content);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    // A shared library for x86-64.
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    file.extend([0; 16]);
    file.extend((64 + body.len() as u64).to_le_bytes());
    file.extend([0; 4]);
    for field in [64, 0, 0, HEADER, 5, 4] {
        file.extend(field.to_le_bytes());
    }
    file.extend(body);
    file.extend(headers);
    file
}
