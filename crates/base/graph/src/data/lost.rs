//! What a panic in a node leaves behind on its thread: the frames that were dropped while the stack was unwound, and where the
//! panic began. The guard of the node ([`crate::ForeignNode`]) takes both.
//!
//! Nothing here has a destructor that the thread runs at its end: such a destructor would keep a plugin's code mapped.

use crate::data::frame::Frame;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::PanicHookInfo;

thread_local! {
    static FRAMES: Cell<Option<ManuallyDrop<Vec<Box<Frame>>>>> = const { Cell::new(None) };
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    static PLACE: Cell<Option<ManuallyDrop<String>>> = const { Cell::new(None) };
}

/// Whether a frame with packets that is dropped now is kept.
#[cold]
pub(crate) fn is_keeping() -> bool {
    std::thread::panicking() || KEEPS.get()
}

/// Take the frames that `drop` drops, and those of the panics before.
#[cold]
pub(crate) fn dropped_by(drop: impl FnOnce()) -> Vec<Box<Frame>> {
    KEEPS.set(true);
    drop();
    KEEPS.set(false);
    take()
}

/// Keep a frame with packets that is dropped by a panic.
#[cold]
pub(crate) fn keep(frame: Box<Frame>) {
    let mut all = FRAMES
        .take()
        .map_or_else(Vec::new, ManuallyDrop::into_inner);
    all.push(frame);
    FRAMES.set(Some(ManuallyDrop::new(all)));
}

/// Take the frames that panics on this thread have dropped.
#[cold]
pub(crate) fn take() -> Vec<Box<Frame>> {
    FRAMES
        .take()
        .map_or_else(Vec::new, ManuallyDrop::into_inner)
}

/// Remember where a panic began, for the guard that catches it: what the panic hook of a plugin calls.
pub fn remember_panic(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map(|at| format!("{}:{}", at.file(), at.line()));
    forget_place();
    PLACE.set(place.map(ManuallyDrop::new));
}

fn forget_place() -> Option<String> {
    PLACE.take().map(ManuallyDrop::into_inner)
}

/// The text of a panic that was caught on this thread, with the place where it began, if the hook remembered it.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "a panic without a text",
    };
    match forget_place() {
        Some(place) => format!("{text} ({place})"),
        None => text.to_owned(),
    }
}
