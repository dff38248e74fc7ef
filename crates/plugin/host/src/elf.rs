//! The checks of what the dynamic linker reads: a file that contradicts itself is refused before it is mapped, because the linker trusts
//! files. The fingerprint is no protection: any file can have its bytes.

use object::elf::{
    DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_GNU_HASH, DT_HASH, DT_INIT_ARRAY, DT_INIT_ARRAYSZ,
    DT_JMPREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR, DT_STRSZ, DT_STRTAB, DT_SYMTAB,
    DT_TEXTREL, DT_VERNEED, DT_VERSYM, EM_AARCH64, EM_X86_64, ET_DYN, PF_W, PF_X, PT_DYNAMIC,
    PT_LOAD, Rela64,
};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, LittleEndian, pod};

/// The longest image in memory in bytes.
const LONGEST: u64 = 1 << 32;
/// Size of a relocation in the file.
const RELOCATION: u64 = 24;

/// A part of the file that is mapped.
#[derive(Clone, Copy)]
struct Load {
    /// First address and the end, relative to the image.
    from: u64,
    to: u64,
    /// Place in the file, and its end.
    offset: u64,
    end: u64,
    flags: u32,
}

/// Entries of the dynamic section that are addresses, each with the entry that is the number of bytes there.
const TABLES: [(i64, Option<i64>); 10] = [
    (DT_STRTAB, Some(DT_STRSZ)),
    (DT_RELA, Some(DT_RELASZ)),
    (DT_JMPREL, Some(DT_PLTRELSZ)),
    (DT_INIT_ARRAY, Some(DT_INIT_ARRAYSZ)),
    (DT_FINI_ARRAY, Some(DT_FINI_ARRAYSZ)),
    (DT_SYMTAB, None),
    (DT_GNU_HASH, None),
    (DT_HASH, None),
    (DT_VERSYM, None),
    (DT_VERNEED, None),
];

/// Checks the header, the parts that are mapped, and the tables that the linker reads; returns the fault.
pub(crate) fn check(file: &ElfFile64<'_>, bytes: &[u8]) -> Result<(), &'static str> {
    let (endian, header) = (file.endian(), file.elf_header());
    let machine = match std::env::consts::ARCH {
        "aarch64" => EM_AARCH64,
        _ => EM_X86_64,
    };
    if endian != Endianness::Little || header.e_machine(endian) != machine {
        return Err("it is for another machine");
    }
    if header.e_type(endian) != ET_DYN {
        return Err("it is no shared object");
    }
    let loads = loads(file, bytes.len() as u64)?;
    let entries = dynamic(file, bytes, &loads)?;
    check_tables(&entries, &loads)?;
    for (at, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        if let (Some(at), Some(size)) = (value(&entries, at), value(&entries, size)) {
            check_relocations(bytes, &loads, at, size)?;
        }
    }
    Ok(())
}

/// The parts that are mapped: in the file, in order, without overlap.
fn loads(file: &ElfFile64<'_>, length: u64) -> Result<Vec<Load>, &'static str> {
    let endian = file.endian();
    let mut all: Vec<Load> = Vec::new();
    let headers = file.elf_program_headers().iter();
    for it in headers.filter(|it| it.p_type(endian) == PT_LOAD) {
        let (size, memory) = (it.p_filesz(endian), it.p_memsz(endian));
        let (from, offset) = (it.p_vaddr(endian), it.p_offset(endian));
        let align = it.p_align(endian).max(1);
        let load = Load {
            from,
            to: from.checked_add(memory).ok_or("a part of it has no end")?,
            offset,
            end: offset.checked_add(size).ok_or("a part of it has no end")?,
            flags: it.p_flags(endian),
        };
        if load.end > length || size > memory {
            return Err("a part of it is behind its end");
        }
        if !align.is_power_of_two() || align > LONGEST || from % align != offset % align {
            return Err("a part of it is not aligned");
        }
        if load.to > LONGEST || all.last().is_some_and(|last| last.to > from) {
            return Err("parts of it overlap, or are out of order");
        }
        if load.flags & PF_W != 0 && load.flags & PF_X != 0 {
            return Err("a part of it can be written and executed");
        }
        all.push(load);
    }
    match all.is_empty() {
        true => Err("no part of it is mapped"),
        false => Ok(all),
    }
}

/// The bytes of the file that are mapped at an address.
fn mapped<'b>(bytes: &'b [u8], loads: &[Load], at: u64, size: u64) -> Option<&'b [u8]> {
    let end = at.checked_add(size)?;
    let load = loads.iter().find(|it| it.from <= at && end <= it.to)?;
    let from = load.offset.checked_add(at - load.from)?;
    let to = from.checked_add(size).filter(|to| *to <= load.end)?;
    bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

/// Tag and value of each entry of the dynamic section, which is mapped.
fn dynamic(
    file: &ElfFile64<'_>,
    bytes: &[u8],
    loads: &[Load],
) -> Result<Vec<(i64, u64)>, &'static str> {
    let endian = file.endian();
    let mut headers = file.elf_program_headers().iter();
    // The linker uses the last one.
    let header = headers.rfind(|it| it.p_type(endian) == PT_DYNAMIC);
    let header = header.ok_or("it has no dynamic section")?;
    let (at, size) = (header.p_vaddr(endian), header.p_filesz(endian));
    let there = mapped(bytes, loads, at, size).ok_or("its dynamic section is not mapped")?;
    // The linker reads it in memory, and the check below in the file.
    let offset = usize::try_from(header.p_offset(endian)).ok();
    let in_file = offset.and_then(|offset| bytes.get(offset..));
    if in_file.is_none_or(|it| it.as_ptr() != there.as_ptr()) {
        return Err("its dynamic section has two places");
    }
    let entries = header.dynamic(endian, bytes);
    let entries = entries.ok().flatten().unwrap_or_default();
    let mut all: Vec<(i64, u64)> = entries
        .iter()
        .map(|it| (it.tag(endian), it.val(endian)))
        .collect();
    // The linker reads up to the entry with tag 0.
    let end = all.iter().position(|(tag, _)| *tag == 0);
    all.truncate(end.ok_or("its dynamic section has no end")?);
    Ok(all)
}

/// The value of an entry. Of several with the same tag, the linker uses the last one.
fn value(entries: &[(i64, u64)], tag: i64) -> Option<u64> {
    let found = entries.iter().rfind(|(it, _)| *it == tag);
    found.map(|(_, value)| *value)
}

/// The tables that the linker reads are mapped.
fn check_tables(entries: &[(i64, u64)], loads: &[Load]) -> Result<(), &'static str> {
    if value(entries, DT_TEXTREL).is_some() {
        return Err("its code has relocations");
    }
    if [DT_REL, DT_RELR]
        .iter()
        .any(|tag| value(entries, *tag).is_some())
    {
        return Err("it has packed relocations: link it without -z pack-relative-relocs");
    }
    let hashes = [DT_GNU_HASH, DT_HASH].map(|tag| value(entries, tag));
    let needed = [DT_STRTAB, DT_SYMTAB].map(|tag| value(entries, tag));
    if hashes == [None, None] || needed.contains(&None) {
        return Err("it has no table of symbols");
    }
    for (tag, size) in TABLES {
        let Some(at) = value(entries, tag) else {
            continue;
        };
        let size = size.map_or(Some(1), |size| value(entries, size));
        let end = size.and_then(|size| at.checked_add(size));
        let is_mapped = |end| loads.iter().any(|it| it.from <= at && end <= it.to);
        if !end.is_some_and(is_mapped) {
            return Err("a table of the linker is not mapped");
        }
    }
    Ok(())
}

/// Relocations write only into parts that can be written.
fn check_relocations(bytes: &[u8], loads: &[Load], at: u64, size: u64) -> Result<(), &'static str> {
    let table = mapped(bytes, loads, at, size).ok_or("its relocations are not in the file")?;
    let count = usize::try_from(size / RELOCATION).unwrap_or(usize::MAX);
    let all = pod::slice_from_bytes::<Rela64<LittleEndian>>(table, count);
    let (all, _) = all.map_err(|()| "its relocations are not aligned")?;
    let is_writable = |place: u64| {
        let end = place.saturating_add(8);
        let mut loads = loads.iter().filter(|it| it.flags & PF_W != 0);
        loads.any(|it| it.from <= place && end <= it.to)
    };
    match all
        .iter()
        .all(|it| is_writable(it.r_offset.get(LittleEndian)))
    {
        true => Ok(()),
        false => Err("a relocation writes into a part that cannot be written"),
    }
}
