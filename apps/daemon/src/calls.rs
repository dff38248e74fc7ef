//! The calls of a stalled worker: a separate thread turns a copy of the worker's stack into names, because reading debug
//! information takes long.

use addr2line::Loader;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use volley_graph::{StackSample, StackSampler};

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most calls that are reported.
const DEEP: usize = 32;

/// Requests a stack sample of a worker's thread. The receiver later gets its calls, innermost first, or why they are not known.
pub fn ask(sampler: StackSampler) -> Receiver<Vec<String>> {
    let (tell, reported) = sync_channel(1);
    let work = move || {
        let calls = match sampler.sample(PATIENCE) {
            Ok(shot) => names(&shot),
            Err(why) => vec![format!("its calls are not known: {why}")],
        };
        // The receiver may have been dropped.
        let _ = tell.send(calls);
    };
    let thread = std::thread::Builder::new().name("volley-calls".into());
    // Without a thread the sender is dropped, which the receiver notices.
    let _ = thread.spawn(work);
    reported
}

/// An executable file that is mapped into this process.
struct Code {
    range: Range<u64>,
    /// Difference between addresses in the process and addresses in the file.
    bias: u64,
    path: String,
}

/// Names of the calls of a stack sample.
pub fn names(shot: &StackSample) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut codes = codes(&maps);
    let mut unwinder = UnwinderX86_64::new();
    for code in &mut codes {
        if let Some(module) = module(code) {
            unwinder.add_module(module);
        }
    }
    let mut word = |at: u64| {
        let place = at.checked_sub(shot.sp).ok_or(())? / 8;
        shot.stack.get(place as usize).copied().ok_or(())
    };
    let (mut cache, registers) = (
        CacheX86_64::<_>::new(),
        UnwindRegsX86_64::new(shot.pc, shot.sp, shot.bp),
    );
    let mut frames = unwinder.iter_frames(shot.pc, registers, &mut cache, &mut word);
    let mut addresses = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        addresses.push(frame);
        if addresses.len() == DEEP {
            break;
        }
    }
    let mut loaders = BTreeMap::new();
    let mut calls = Vec::new();
    for address in addresses {
        calls.extend(named(address, &codes, &mut loaders));
    }
    calls.truncate(DEEP);
    calls
}

/// The executable files of `/proc/self/maps`.
fn codes(maps: &str) -> Vec<Code> {
    let mut codes: BTreeMap<&str, (Range<u64>, u64)> = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let (Some(range), Some(_), Some(offset)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let path = words.nth(2).unwrap_or_default().trim();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let Some((from, until)) = range.split_once('-') else {
            continue;
        };
        let (Some(from), Some(until), Some(offset)) = (hex(from), hex(until), hex(offset)) else {
            continue;
        };
        if !path.starts_with('/') {
            continue;
        }
        let whole = codes.entry(path).or_insert((from..until, from - offset));
        whole.0.end = until;
    }
    let code = |(path, (range, bias)): (&str, (Range<u64>, u64))| Code {
        range,
        bias,
        path: path.to_owned(),
    };
    codes.into_iter().map(code).collect()
}

impl Code {
    /// Names and lines: from the package of debug symbols if it is installed, else from the file itself.
    fn loader(&self) -> Option<Loader> {
        let installed = self.symbols().and_then(|path| Loader::new(path).ok());
        installed.or_else(|| Loader::new(self.file()).ok())
    }

    /// The file of debug symbols, which the build's identifier names.
    fn symbols(&self) -> Option<String> {
        let cache = ReadCache::new(File::open(self.file()).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let [first, rest @ ..] = file.build_id().ok()?? else {
            return None;
        };
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug"))
    }

    /// The path to open: the program may have been replaced on disk since its start.
    fn file(&self) -> &str {
        let own = std::env::current_exe().unwrap_or_default();
        // A deleted file has ` (deleted)` behind its name in both places.
        if own.to_str() == Some(self.path.as_str()) {
            "/proc/self/exe"
        } else {
            &self.path
        }
    }
}

/// What the unwinder needs to know of a file; corrects its bias.
fn module(code: &mut Code) -> Option<Module<Vec<u8>>> {
    let cache = ReadCache::new(File::open(code.file()).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let first = file.segments().next()?;
    code.bias = code.range.start.wrapping_sub(first.address() & !0xfff);
    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        let range = section.address()..section.address() + section.size();
        Some((range, section.data().ok()?.to_vec()))
    };
    let (frame, header) = (section(".eh_frame")?, section(".eh_frame_hdr"));
    let text = file.section_by_name(".text");
    let text = text.map(|text| text.address()..text.address() + text.size());
    let (header_at, header) = header.unzip();
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: text,
        eh_frame_svma: Some(frame.0),
        eh_frame: Some(frame.1),
        eh_frame_hdr_svma: header_at,
        eh_frame_hdr: header,
        ..ExplicitModuleSectionInfo::default()
    };
    let (range, bias) = (code.range.clone(), code.bias);
    Some(Module::new(code.path.clone(), range, bias, info))
}

/// The functions at an address, the innermost first: `NAME FILE:LINE`.
fn named(
    address: FrameAddress,
    codes: &[Code],
    loaders: &mut BTreeMap<u64, Option<Loader>>,
) -> Vec<String> {
    let at = address.address_for_lookup();
    let Some(code) = codes.iter().find(|c| c.range.contains(&at)) else {
        return vec![format!("{at:#x}")];
    };
    let probe = at.wrapping_sub(code.bias);
    let plain = || vec![format!("{} + {probe:#x}", code.path)];
    let open = || code.loader();
    let Some(loader) = loaders.entry(code.range.start).or_insert_with(open) else {
        return plain();
    };
    let mut names = Vec::new();
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(frame)) = frames.next() {
            let Some(Ok(name)) = frame.function.as_ref().map(|f| f.demangle()) else {
                continue;
            };
            let place = frame.location.and_then(|l| Some((l.file?, l.line?)));
            let place = place.map(|(file, line)| format!(" {}:{line}", short(file)));
            names.push(format!("{}{}", bare(&name), place.unwrap_or_default()));
        }
    }
    if names.is_empty()
        && let Some(name) = loader.find_symbol(probe)
    {
        names.push(bare(&addr2line::demangle_auto(name.into(), None)).to_owned());
    }
    if names.is_empty() { plain() } else { names }
}

/// A name without the type parameters behind it, which are longer than a line.
fn bare(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// A path relative to the workspace's folder; of other paths the last three components.
fn short(path: &str) -> &str {
    let inside = ["/crates/", "/apps/"];
    let own = inside.iter().find_map(|folder| path.rfind(folder));
    let cut = own.or_else(|| path.rmatch_indices('/').nth(2).map(|(at, _)| at));
    cut.map_or(path, |at| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Instant;
    use volley_graph::buf::Pool;
    use volley_graph::{
        Cx, Domain, Engine, Isa, NoCounters, Output, Settings, Source, WorkerThreads, nexts,
    };

    nexts! { enum Next { Drop => "error-drop" } }

    /// A node that hangs on purpose: it spins, or it waits in the kernel for a byte.
    struct Stuck {
        stop: Arc<AtomicBool>,
        from: Option<std::os::unix::net::UnixStream>,
    }

    #[inline(never)]
    fn spin_on_purpose(stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            std::hint::spin_loop();
        }
    }

    #[inline(never)]
    fn wait_on_purpose(from: &mut std::os::unix::net::UnixStream) {
        let got = std::io::Read::read(from, &mut [0; 4]);
        assert_eq!(got.unwrap(), 1, "the signal ended the call");
    }

    impl Source for Stuck {
        const NAME: &'static str = "stuck";
        type Next = Next;
        type Count = NoCounters;

        fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, _: &mut Output<'_, I, Next>) -> usize {
            match self.from.take() {
                Some(mut from) => wait_on_purpose(&mut from),
                None => spin_on_purpose(&self.stop),
            }
            0
        }
    }

    /// The calls of a worker whose node is stuck.
    fn calls_of(
        from: Option<std::os::unix::net::UnixStream>,
        function: &str,
        free: impl FnOnce(&AtomicBool),
    ) {
        let stop = Arc::new(AtomicBool::new(false));
        let settings = Settings::default();
        let mut engine = Engine::new(settings, Pool::new(1024).unwrap(), Domain::new()).unwrap();
        let reported = stop.clone();
        let mut from = Some(from);
        engine
            .add_source("stuck", move |_| Stuck {
                stop: reported.clone(),
                from: from.take().flatten(),
            })
            .unwrap();
        let running = WorkerThreads::start(engine.build().unwrap(), &[]).unwrap();
        let start = Instant::now();
        let found = loop {
            let calls = ask(engine.stack_sampler(0).unwrap()).recv().unwrap();
            if calls.iter().any(|c| c.starts_with(function)) {
                break calls;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{calls:?}");
        };
        free(&stop);
        drop(running);
        let text = found.join("\n");
        let order = [function, "poll", "round", "run"];
        let mut rest = found.iter();
        for name in order {
            let there = |c: &String| c.starts_with(name);
            assert!(rest.any(there), "{name} is not there in its turn: {text}");
        }
        assert!(text.contains("apps/daemon/src/calls.rs:"), "{text}");
        assert!(
            text.contains("crates/base/graph/src/worker/threads.rs:"),
            "{text}"
        );
    }

    #[test]
    fn a_node_that_spins_is_named() {
        calls_of(None, "spin_on_purpose", |stop| stop.store(true, Relaxed));
    }

    #[test]
    fn a_node_that_waits_in_the_kernel_is_named_and_waits_on() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        calls_of(Some(far), "wait_on_purpose", |stop| {
            stop.store(true, Relaxed);
            std::io::Write::write_all(&mut near, b"x").unwrap();
        });
    }

    #[test]
    fn what_is_no_code_has_no_name_and_does_no_harm() {
        let shot = StackSample {
            pc: 8,
            sp: 0x1000,
            bp: 0,
            stack: vec![1, 2, 3],
        };
        assert_eq!(names(&shot)[0], "0x8");
        assert!(names(&StackSample::default()).len() <= 1);
    }
}
