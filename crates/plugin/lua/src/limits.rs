//! Limits of a script: instructions and memory.

use mlua::{Debug, HookTriggers, Lua, VmState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Looks at the limit until it is reached. Each costs as much as a call of a method.
const LOOKS: u64 = 100;
/// Instructions between two looks.
const STEPS: std::ops::RangeInclusive<u64> = 10..=1000;
/// Instructions that a script may execute when it is loaded.
pub(crate) const WHILE_LOADING: u64 = 100_000_000;

/// The instructions that the script may still execute.
pub(crate) struct Budget {
    /// Instructions between two looks.
    step: u32,
    left: AtomicU64,
    is_spent: AtomicBool,
    /// Whether lines are noted, and the last one: an allocation that fails does not tell its line.
    notes_lines: AtomicBool,
    line: AtomicU32,
}

impl Budget {
    /// For scripts that may execute this number of instructions.
    pub(crate) fn new(instructions: u64) -> Self {
        let step = (instructions / LOOKS).clamp(*STEPS.start(), *STEPS.end());
        Budget {
            step: step as u32,
            left: AtomicU64::new(0),
            is_spent: AtomicBool::new(false),
            notes_lines: AtomicBool::new(false),
            line: AtomicU32::new(0),
        }
    }

    /// Allow this number of instructions from now on.
    pub(crate) fn allow(&self, instructions: u64) {
        self.left.store(instructions, Relaxed);
        self.is_spent.store(false, Relaxed);
    }

    /// Whether the script has executed all instructions that it may execute.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Relaxed)
    }

    fn spend(&self) -> bool {
        let left = self.left.load(Relaxed).saturating_sub(u64::from(self.step));
        self.left.store(left, Relaxed);
        if left == 0 {
            self.is_spent.store(true, Relaxed);
        }
        left > 0
    }

    /// Whether lines are noted.
    pub(crate) fn notes_lines(&self) -> bool {
        self.notes_lines.load(Relaxed)
    }

    /// The line that the script executed last, if it was noted: by each line, or when the budget was spent.
    pub(crate) fn line(&self) -> Option<u32> {
        let line = self.line.load(Relaxed);
        ((self.notes_lines() || self.is_spent()) && line > 0).then_some(line)
    }

    fn note_line(&self, debug: &Debug) {
        let line = debug.current_line().unwrap_or_default();
        self.line.store(line as u32, Relaxed);
    }
}

/// Limit the memory of a state. Memory that the state uses now is not counted.
pub(crate) fn limit_memory(lua: &Lua, bytes: usize) -> mlua::Result<()> {
    lua.set_memory_limit(lua.used_memory().saturating_add(bytes))?;
    Ok(())
}

/// Count the instructions of a state; an error ends the script when the budget is spent. With `lines` also note each line, which
/// makes the script slower.
pub(crate) fn limit_instructions(lua: &Lua, budget: &Arc<Budget>, lines: bool) -> mlua::Result<()> {
    let mut triggers = HookTriggers::new().every_nth_instruction(budget.step);
    if lines {
        triggers |= HookTriggers::EVERY_LINE;
    }
    budget.notes_lines.store(lines, Relaxed);
    let budget = budget.clone();
    lua.set_hook(triggers, move |_, debug| {
        if debug.event() == mlua::DebugEvent::Line {
            budget.note_line(debug);
            return Ok(VmState::Continue);
        }
        match budget.spend() {
            true => Ok(VmState::Continue),
            false => {
                budget.note_line(debug);
                Err(mlua::Error::runtime("too many instructions"))
            }
        }
    })
}
