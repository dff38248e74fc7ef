//! Results of `contended` as text and as a page.

use super::Seen;
use super::code::is_own;
use super::lines::LINE;
use super::meant::MEANT;
use super::stepper::Stepper;
use crate::paths::splice;
use std::fmt::Write;
use xtask::home::Home;

const PAGE: &str = "docs/contended-lines.md";
const BEGIN: &str = "<!-- xtask contended: begin -->";
const END: &str = "<!-- xtask contended: end -->";
/// Maximum number of code places reported for a line.
const NAMED: usize = 8;
/// Maximum number of functions reported for a stack.
const DEEP: usize = 12;

/// A contended line: its location, the accesses of each worker, and their call stacks.
pub fn line(number: u64, stepper: &mut Stepper<'_>) -> String {
    let address = number * LINE;
    let place = object(address, stepper);
    let Some(line) = stepper.lines.lines.get(&number) else {
        return String::new();
    };
    let mut text = format!(
        "line {address:#x} ({place}): {} times from cache to cache, {} writes against writes, {} reads against writes\n",
        line.transfers, line.fights, line.looks
    );
    for (worker, _) in stepper.steps() {
        let all = line.of(worker);
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "  worker {worker}: {} reads, {} writes",
            all.reads, all.writes
        );
    }
    let mut uses = line.uses.clone();
    uses.sort_by_key(|(_, u)| std::cmp::Reverse(u.reads + u.writes));
    for ((worker, place), u) in uses.iter().take(NAMED) {
        let place = &stepper.places[*place as usize];
        let _ = writeln!(
            text,
            "    worker {worker} reads {} writes {}: {} {}",
            u.reads, u.writes, place.function, place.at
        );
    }
    let stacks: Vec<_> = line.stacks.iter().take(2).cloned().collect();
    for ((worker, _), stack) in stacks {
        let _ = writeln!(text, "    calls of worker {worker}:");
        for name in named(&stack, stepper) {
            let _ = writeln!(text, "      {name}");
        }
    }
    text
}

/// The functions of a stack, from the innermost to the outermost.
fn named(stack: &[u64], stepper: &mut Stepper<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for ip in stack {
        let frames = stepper.code.frames(*ip);
        let own = frames.iter().filter(|f| is_own(f));
        names.extend(own.map(|f| format!("{} {}", f.function, f.place)));
    }
    names.truncate(DEEP);
    names
}

/// The type of memory at an address.
fn object(address: u64, stepper: &Stepper<'_>) -> String {
    match stepper.code.range(address) {
        Some((from, until, name)) if name.is_empty() => {
            format!(
                "byte {:#x} of a mapping of {} KiB",
                address - from,
                (until - from) / 1024
            )
        }
        Some((from, _, name)) => format!("{name} + {:#x}", address - from),
        None => "unmapped by now".into(),
    }
}

/// The results of a scenario.
pub fn text(seen: &Seen) -> String {
    let mut text = format!(
        "{}: {}\n  {} workers, {} instructions, {} packets, {} lines touched, {} accesses not told\n",
        seen.name, seen.what, seen.workers, seen.steps, seen.packets, seen.touched, seen.unknown
    );
    for (entry, (lines, transfers)) in MEANT.iter().zip(&seen.meant) {
        if *lines > 0 {
            let _ = writeln!(
                text,
                "  meant: {}: {lines} lines, {transfers} times from cache to cache ({:.2} a packet)",
                entry.name,
                per(*transfers, seen)
            );
        }
    }
    let (lines, transfers) = seen.handed;
    let _ = writeln!(
        text,
        "  handed over in order: {lines} lines, {transfers} times ({:.2} a packet)",
        per(transfers, seen)
    );
    for contended in &seen.contended {
        let _ = write!(text, "  CONTENDED {contended}");
    }
    text
}

fn per(transfers: u64, seen: &Seen) -> f64 {
    transfers as f64 / seen.packets.max(1) as f64
}

/// Writes the tables into the page.
pub fn write(home: &Home, all: &[Seen]) -> Result<(), String> {
    let path = home.root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let page =
        splice(&page, (BEGIN, END), &tables(all)).ok_or(format!("{PAGE}: the marks are gone"))?;
    std::fs::write(&path, page).map_err(|e| format!("{PAGE}: {e}"))
}

fn tables(all: &[Seen]) -> String {
    let mut text = String::from("| meant | why |\n|---|---|\n");
    for entry in &MEANT {
        let _ = writeln!(text, "| {} | {} |", entry.name, entry.why);
    }
    text.push_str("\nTimes that a line went from one worker's cache to another's, for each packet:\n\n| scenario | workers | packets |");
    for entry in &MEANT {
        let _ = write!(text, " {} |", entry.name);
    }
    text.push_str(" handed over in order | contended lines |\n|---|---|---|");
    text.push_str(&"---|".repeat(MEANT.len() + 2));
    for seen in all {
        let _ = write!(
            text,
            "\n| {}: {} | {} | {} |",
            seen.name, seen.what, seen.workers, seen.packets
        );
        for (_, transfers) in &seen.meant {
            let _ = write!(text, " {:.3} |", per(*transfers, seen));
        }
        let _ = write!(
            text,
            " {:.2} | {} |",
            per(seen.handed.1, seen),
            seen.contended.len()
        );
    }
    text.push('\n');
    text
}
