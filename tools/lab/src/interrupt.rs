//! Ctrl-C and SIGTERM.

use crate::error::{INTERRUPTED, LabError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Call a handler at each Ctrl-C and at each SIGTERM, which `timeout` and service managers send.
pub(crate) fn on_interrupt(handler: impl Fn() + Send + Sync + 'static) -> Result<(), LabError> {
    let handler = Arc::new(handler);
    let same = handler.clone();
    let set = ctrlc::set_handler(move || same());
    set.map_err(|e| LabError::Argument(format!("Ctrl-C cannot be handled: {e}")))?;
    on_termination(move || handler())
}

/// Call a handler at each SIGTERM. The crate `ctrlc` would handle SIGHUP with it, and a run under `nohup` would end with its terminal.
fn on_termination(handler: impl Fn() + Send + 'static) -> Result<(), LabError> {
    let bad = |e: std::io::Error| LabError::Argument(format!("SIGTERM cannot be handled: {e}"));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(bad)?;
    let mut signals = {
        let _inside = runtime.enter();
        signal(SignalKind::terminate()).map_err(bad)?
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            while signals.recv().await.is_some() {
                handler();
            }
        });
    });
    Ok(())
}

/// A flag that the first Ctrl-C or SIGTERM sets; the second one ends the process.
///
/// # Errors
/// If a signal cannot be handled.
pub(crate) fn stop_at_interrupt() -> Result<Arc<AtomicBool>, LabError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    on_interrupt(move || {
        if flag.swap(true, Ordering::Relaxed) {
            end_at_once();
        }
    })?;
    Ok(stop)
}

/// End this process without its destructors. The processes that it has started, and the shell that restores the clock, see the end of
/// their input.
pub(crate) fn end_at_once() -> ! {
    volley_file::remove_scratch();
    std::process::exit(INTERRUPTED.into());
}
