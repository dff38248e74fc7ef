//! One script on one worker: a Lua state with its functions and limits.

use crate::api::{self, Environment};
use crate::batch::Batch;
use crate::limits::{self, Budget, WHILE_LOADING};
use crate::masks::rows;
use crate::sandbox;
use crate::verdict::{Count, Verdict};
use mlua::{AnyUserData, ChunkMode, Error, Function, Lua, UserDataRefMut};
use std::sync::Arc;
use volley_sdk::kernel::Level;
use volley_sdk::lend::LentPackets;

/// The text of a script, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Path of the file.
    pub(crate) path: String,
    /// The text.
    pub(crate) text: String,
    /// Memory in bytes.
    pub(crate) memory: usize,
    /// Instructions of a vector.
    pub(crate) instructions: u64,
    /// Packets of a vector that the function `packet` gets.
    pub(crate) queue: usize,
    /// The position of packets is at their IP header.
    pub(crate) is_layer3: bool,
}

impl Source {
    /// The name of the file without its folders, which Lua puts in front of lines.
    fn chunk(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A script that is loaded.
pub(crate) struct ScriptState {
    source: Arc<Source>,
    lua: Lua,
    vector: Function,
    packet: Option<Function>,
    batch: AnyUserData,
    budget: Arc<Budget>,
    /// Rows for the function `packet`.
    slow: Vec<usize>,
}

/// An error of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptError {
    /// What the packets are dropped for.
    pub(crate) count: Count,
    /// File, line and reason.
    pub(crate) text: String,
}

impl ScriptState {
    /// Load a script, for vectors of up to `size` packets. Also returns the routes that the script has set.
    pub(crate) fn load(
        source: &Arc<Source>,
        size: usize,
        environment: &Environment,
    ) -> Result<(ScriptState, api::Loaded), String> {
        let budget = Arc::new(Budget::new(source.instructions));
        budget.allow(WHILE_LOADING);
        let loaded = load(source, size, environment, &budget);
        let (lua, vector, packet, batch) =
            loaded.map_err(|error| error_text(source, &budget, &error).text)?;
        let state = ScriptState {
            source: source.clone(),
            lua,
            vector,
            packet,
            batch,
            budget,
            slow: Vec::with_capacity(source.queue),
        };
        Ok((state, environment.finish()))
    }

    fn batch(&self) -> Result<UserDataRefMut<Batch>, Error> {
        self.batch.borrow_mut()
    }

    /// Run the script on the packets of `present`, at an instruction-set level. Returns the packets; `judged` gets the verdicts, and
    /// `report` the errors.
    ///
    /// # Panics
    /// If the packets are not where they were put: the guard of the node drops the vector then.
    pub(crate) fn run(
        &mut self,
        (level, packets): (Level, LentPackets),
        present: &[u64],
        judged: impl FnOnce(&Batch),
        mut report: impl FnMut(ScriptError),
    ) -> LentPackets {
        match self.batch() {
            Ok(mut batch) => batch.begin(level, packets, present),
            Err(_) => return packets,
        }
        let back = TakeBack(&self.batch);
        self.budget.allow(self.source.instructions);
        let mut slow = std::mem::take(&mut self.slow);
        slow.clear();
        let done = self.vector.call::<()>(&self.batch);
        if let Err(error) = &done {
            let error = self.fault(error);
            self.drop_all(rows(present), error.count);
            report(error);
        }
        // Few vectors have packets for the function `packet`: one look at the batch is enough for others.
        let mut batch = self.batch().ok();
        if done.is_ok() && batch.as_ref().is_some_and(|batch| batch.has_slow) {
            drop(batch);
            self.run_slow(present, &mut slow, &mut report);
            batch = self.batch().ok();
        }
        let taken = batch.and_then(|mut batch| {
            batch.take_back();
            judged(&batch);
            batch.end()
        });
        std::mem::forget(back);
        self.slow = slow;
        match taken {
            Some(packets) => packets,
            None => panic!("the packets of a vector are lost"),
        }
    }

    /// Give the packets that the script has put into the queue to the function `packet`, one by one.
    fn run_slow(
        &self,
        present: &[u64],
        slow: &mut Vec<usize>,
        report: &mut impl FnMut(ScriptError),
    ) {
        if let Ok(mut batch) = self.batch() {
            let size = batch.size();
            for row in rows(present) {
                if batch.verdicts(size)[row] != Verdict::Slow {
                    continue;
                }
                match (slow.len() < self.source.queue, &self.packet) {
                    (true, Some(_)) => {
                        slow.push(row);
                        batch.judge(row, Verdict::Next);
                    }
                    _ => batch.judge(row, Verdict::Drop(Count::SlowPathFull)),
                }
            }
        }
        for (at, &row) in slow.iter().enumerate() {
            let Some(packet) = &self.packet else { break };
            if let Ok(mut batch) = self.batch() {
                batch.sets.focus(row);
            }
            if let Err(error) = packet.call::<()>(&self.batch) {
                let error = self.fault(&error);
                let is_spent = error.count == Count::ScriptInstructions;
                self.drop_all([row].into_iter(), error.count);
                report(error);
                if is_spent {
                    // The limit is that of the whole vector.
                    let left = slow[at + 1..].iter().copied();
                    self.drop_all(left, Count::ScriptInstructions);
                    break;
                }
            }
        }
    }

    /// The number of packets that the function `packet` has got in the last vector.
    pub(crate) fn slow_packets(&self) -> usize {
        self.slow.len()
    }

    fn drop_all(&self, all: impl Iterator<Item = usize>, count: Count) {
        if let Ok(mut batch) = self.batch() {
            all.for_each(|row| batch.judge(row, Verdict::Drop(count)));
        }
    }

    /// Describe an error. After an allocation that failed, lines are noted until the next one.
    #[cold]
    fn fault(&self, error: &Error) -> ScriptError {
        let found = error_text(&self.source, &self.budget, error);
        if found.count == Count::ScriptMemory {
            // Garbage of the call that failed must not make the next one fail.
            let _ = self.lua.gc_collect();
            let lines = !self.budget.notes_lines();
            let _ = limits::limit_instructions(&self.lua, &self.budget, lines);
        }
        found
    }
}

/// Packets that go back to the node: when a panic unwinds, they are dropped here, so that the guard of the node finds them.
struct TakeBack<'a>(&'a AnyUserData);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        if let Ok(mut batch) = self.0.borrow_mut::<Batch>() {
            drop(batch.end());
        }
    }
}

type Parts = (Lua, Function, Option<Function>, AnyUserData);

fn load(
    source: &Source,
    size: usize,
    environment: &Environment,
    budget: &Arc<Budget>,
) -> mlua::Result<Parts> {
    let lua = sandbox::state()?;
    let batch = lua.create_userdata(Batch::new(size, source.is_layer3, &environment.interfaces))?;
    api::install(&lua, environment)?;
    limits::limit_memory(&lua, source.memory)?;
    limits::limit_instructions(&lua, budget, false)?;
    let chunk = lua.load(source.text.as_str());
    let chunk = chunk.set_name(format!("@{}", source.chunk()));
    chunk.set_mode(ChunkMode::Text).exec()?;
    let globals = lua.globals();
    let vector = globals.get::<Option<Function>>("vector");
    let vector = vector.ok().flatten().ok_or_else(|| {
        Error::runtime("the script has no function `vector`: define `function vector(v) ... end`")
    })?;
    let packet = globals.get::<Option<Function>>("packet")?;
    Ok((lua, vector, packet, batch))
}

/// The file, the line and the reason of an error, in one sentence.
fn error_text(source: &Source, budget: &Budget, error: &Error) -> ScriptError {
    let count = match error {
        _ if budget.is_spent() => Count::ScriptInstructions,
        _ if is_memory(error) => Count::ScriptMemory,
        _ => Count::ScriptError,
    };
    let whole = error.to_string();
    let mark = format!("{}:", source.chunk());
    let line = line_after(&whole, &mark).or(match count {
        Count::ScriptError => None,
        _ => budget.line(),
    });
    let reason = match count {
        Count::ScriptMemory => format!("more memory than {} bytes", source.memory),
        Count::ScriptInstructions => format!("more than {} instructions", source.instructions),
        _ => reason(&whole, &mark),
    };
    let place = match line {
        Some(line) => format!("{}:{line}", source.path),
        None => source.path.clone(),
    };
    ScriptError {
        count,
        text: format!("{place}: {reason}"),
    }
}

fn is_memory(error: &Error) -> bool {
    match error {
        Error::MemoryError(_) => true,
        Error::CallbackError { cause, .. } => is_memory(cause),
        _ => false,
    }
}

/// The line that is named behind the first `mark`.
fn line_after(text: &str, mark: &str) -> Option<u32> {
    text.match_indices(mark).find_map(|(at, _)| {
        let rest = &text[at + mark.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        rest[..digits.unwrap_or(rest.len())].parse().ok()
    })
}

/// The first line of an error without the words that say where it is from.
fn reason(text: &str, mark: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let first = first.trim_start_matches("runtime error: ");
    let first = first.trim_start_matches("syntax error: ");
    match first.split_once(mark) {
        Some((_, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.trim_start_matches(": ").to_owned()
        }
        None => first.to_owned(),
    }
    .replace("`Batch.", "`v:")
    .replace("`RouteTable.", "`table:")
}
