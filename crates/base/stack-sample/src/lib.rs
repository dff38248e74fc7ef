//! Samples of a thread's registers and the top of its stack, for a thread that does not proceed.
//!
//! The caller sends the thread a signal (SIGURG, which is ignored by default and has no other use here). The handler
//! only copies, with one system call that cannot fault, into a static buffer; it takes no lock, allocates nothing and
//! does not wait. Another module decodes the copy. System calls that the signal interrupts are restarted
//! (`SA_RESTART`), except those that the kernel never restarts (`poll`), which return early. The handler is installed
//! with the first sample.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The maximum number of stack words in a sample, from the top of the stack: 64 KiB.
const STACK_WORDS: usize = 8192;
/// The maximum size of a stack: an address that is further away belongs to another mapping.
const MAX_STACK_BYTES: usize = 64 << 20;

/// The registers and the stack of a thread at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSample {
    /// The address of the next instruction.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The register of the frame pointer. It may contain any value.
    pub bp: u64,
    /// The words of the stack, from `sp` upwards; empty when the thread was on another stack than its own.
    pub stack: Vec<u64>,
}

/// Why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// No thread can be sampled: it has not begun, or it has ended.
    #[error("the worker has no thread")]
    NoThread,
    /// The thread handles no signal: it is stopped, or in an uninterruptible wait in the kernel.
    #[error("the thread does not answer a signal")]
    Silent,
    /// Another sample is in progress, or a thread has not completed an earlier one.
    #[error("another thread is being sampled")]
    Busy,
    /// Reading the registers is not implemented for this architecture.
    #[error("the stack can be read on x86-64 Linux only")]
    Machine,
}

/// A thread that can be sampled, or none.
#[derive(Default)]
pub struct ThreadStack {
    /// The id of the thread; 0 for none.
    thread: AtomicI32,
    /// An address on its stack, in its first function.
    first: AtomicUsize,
}

impl ThreadStack {
    /// The calling thread can be sampled from now on. `first` is on its stack, in the function that calls
    /// [`Self::clear`].
    pub fn set_current(&self, first: &u64) {
        self.first
            .store(std::ptr::from_ref(first).addr() + 8, Relaxed);
        self.thread.store(this_thread(), Release);
    }

    /// The id of the thread; none if no thread can be sampled.
    pub fn id(&self) -> Option<i32> {
        Some(self.thread.load(Acquire)).filter(|id| *id != 0)
    }

    /// The thread can no longer be sampled.
    pub fn clear(&self) {
        self.thread.store(0, Release);
    }
}

/// Takes samples of a thread.
pub struct StackSampler(Arc<ThreadStack>);

/// No sample is in progress.
const FREE: u32 = 0;
/// A caller is writing the request.
const CLAIMED: u32 = 1;
/// The thread is to take a sample.
const REQUESTED: u32 = 2;
/// The thread is taking the sample.
const SAMPLING: u32 = 3;
/// The sample is complete.
const READY: u32 = 4;

/// The request and the sample: one at a time, on separate cache lines.
#[repr(align(64))]
struct SampleBuffer {
    state: AtomicU32,
    thread: AtomicI32,
    first: AtomicUsize,
    registers: [AtomicU64; 3],
    words: AtomicUsize,
    stack: [AtomicU64; STACK_WORDS],
}

static SAMPLE_BUFFER: SampleBuffer = SampleBuffer {
    state: AtomicU32::new(FREE),
    thread: AtomicI32::new(0),
    first: AtomicUsize::new(0),
    registers: [const { AtomicU64::new(0) }; 3],
    words: AtomicUsize::new(0),
    stack: [const { AtomicU64::new(0) }; STACK_WORDS],
};

impl StackSampler {
    /// A sampler of this thread.
    pub fn new(thread: Arc<ThreadStack>) -> Self {
        StackSampler(thread)
    }

    /// Take a sample of the thread. Waits up to `patience` for it, so it must not be called on the control thread.
    pub fn sample(&self, patience: Duration) -> Result<StackSample, SampleError> {
        let thread_stack = &self.0;
        let thread = thread_stack.thread.load(Acquire);
        if thread == 0 {
            return Err(SampleError::NoThread);
        }
        if !install_handler() {
            return Err(SampleError::Machine);
        }
        let room = &SAMPLE_BUFFER;
        if room
            .state
            .compare_exchange(FREE, CLAIMED, AcqRel, Relaxed)
            .is_err()
        {
            return Err(SampleError::Busy);
        }
        room.thread.store(thread, Relaxed);
        room.first.store(thread_stack.first.load(Relaxed), Relaxed);
        room.state.store(REQUESTED, Release);
        let sent = send(thread);
        let start = Instant::now();
        while sent && room.state.load(Acquire) != READY && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        room.try_take()
    }
}

impl SampleBuffer {
    /// The sample, if it is complete. The buffer is free afterwards.
    fn try_take(&self) -> Result<StackSample, SampleError> {
        // A thread that is taking the sample needs a few microseconds more.
        for _ in 0..100 {
            let withdrawn = self
                .state
                .compare_exchange(REQUESTED, FREE, AcqRel, Acquire);
            match withdrawn {
                Ok(_) => return Err(SampleError::Silent),
                Err(READY) => break,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        if self.state.load(Acquire) != READY {
            return Err(SampleError::Busy);
        }
        let words = self.words.load(Relaxed).min(STACK_WORDS);
        let [pc, sp, bp] = self.registers.each_ref().map(|r| r.load(Relaxed));
        let stack = self.stack[..words].iter().map(|w| w.load(Relaxed));
        let shot = StackSample {
            pc,
            sp,
            bp,
            stack: stack.collect(),
        };
        self.state.store(FREE, Release);
        Ok(shot)
    }

    /// Write the sample. Called in the thread's signal handler.
    fn record(&self, [pc, sp, bp]: [u64; 3]) {
        if self.thread.load(Relaxed) != this_thread()
            || self
                .state
                .compare_exchange(REQUESTED, SAMPLING, AcqRel, Relaxed)
                .is_err()
        {
            // The request has timed out, or is for another thread.
            return;
        }
        for (cell, value) in self.registers.iter().zip([pc, sp, bp]) {
            cell.store(value, Relaxed);
        }
        let above = self.first.load(Relaxed).wrapping_sub(sp as usize);
        let words = if above <= MAX_STACK_BYTES {
            above / 8
        } else {
            0
        };
        let copied = copy(sp, &self.stack[..words.min(STACK_WORDS)]);
        self.words.store(copied, Relaxed);
        self.state.store(READY, Release);
    }
}

fn this_thread() -> i32 {
    // SAFETY: the call only returns the id of the thread.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Send the signal. Returns false when there is no such thread.
fn send(thread: i32) -> bool {
    // SAFETY: a signal for a thread of this process, whose handler is installed.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) == 0 }
}

/// Copy words from an address by a system call, which checks what is readable. Returns the number of words.
fn copy(from: u64, to: &[AtomicU64]) -> usize {
    let bytes = std::mem::size_of_val(to);
    let local = libc::iovec {
        iov_base: to.as_ptr().cast_mut().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: from as usize as *mut libc::c_void,
        iov_len: bytes,
    };
    // SAFETY: the kernel writes at most `bytes` bytes into atomic cells; an unreadable address is an error, not a
    // fault. `errno` belongs to the interrupted code and is restored.
    let copied = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let copied = libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0);
        *errno = before;
        copied
    };
    usize::try_from(copied).unwrap_or(0) / 8
}

/// Install the handler with the first request. Returns false where the registers cannot be read.
fn install_handler() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        if !IS_SUPPORTED {
            return false;
        }
        // SAFETY: an all-zero `sigaction` is valid; the handler has the type that SA_SIGINFO requires and is
        // async-signal-safe.
        unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(libc::SIGURG, &new, std::ptr::null_mut()) == 0
        }
    })
}

extern "C" fn on_signal(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context to a handler with SA_SIGINFO.
    if let Some(registers) = unsafe { registers(context) } {
        SAMPLE_BUFFER.record(registers);
    }
}

// tidy: allow(target_arch) which register is which differs, and nothing here is a kernel
const IS_SUPPORTED: bool = cfg!(target_arch = "x86_64");

/// Instruction, stack and frame pointer of the interrupted code.
///
/// # Safety
/// `context` is the one that the kernel passed to a signal handler.
// tidy: allow(target_arch) which register is which differs, and nothing here is a kernel
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *mut libc::c_void) -> Option<[u64; 3]> {
    // SAFETY: the caller's contract.
    let all = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let named = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP];
    Some(named.map(|register| all[register as usize] as u64))
}

// tidy: allow(target_arch) which register is which differs, and nothing here is a kernel
#[cfg(not(target_arch = "x86_64"))]
unsafe fn registers(_: *mut libc::c_void) -> Option<[u64; 3]> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// The tests share one buffer.
    static ONE: Mutex<()> = Mutex::new(());

    /// A thread that runs `work`, and its sampler.
    fn thread(work: impl FnOnce() + Send + 'static) -> (StackSampler, std::thread::JoinHandle<()>) {
        let sampler = StackSampler(Arc::<ThreadStack>::default());
        let thread_stack = sampler.0.clone();
        let thread = std::thread::spawn(move || {
            let first = 0u64;
            thread_stack.set_current(&first);
            work();
            thread_stack.clear();
        });
        while sampler.0.thread.load(Acquire) == 0 {
            std::thread::yield_now();
        }
        (sampler, thread)
    }

    #[inline(never)]
    fn spin(stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_thread_that_spins_tells_where_and_goes_on() {
        let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
        let stop = Arc::new(AtomicBool::new(false));
        let reported = stop.clone();
        let (sampler, thread) = thread(move || spin(&reported));
        for _ in 0..20 {
            let shot = sampler.sample(TIMEOUT).unwrap();
            assert!(shot.pc != 0 && !shot.stack.is_empty(), "{shot:?}");
            let first = sampler.0.first.load(Relaxed) as u64;
            assert_eq!(shot.sp + 8 * shot.stack.len() as u64, first & !7);
        }
        stop.store(true, Relaxed);
        thread.join().unwrap();
        assert_eq!(sampler.sample(TIMEOUT), Err(SampleError::NoThread));
    }

    #[test]
    fn a_thread_that_waits_in_the_kernel_tells_where_and_waits_on() {
        let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (sampler, thread) = thread(move || {
            // A single call: an interruption by the signal would be an error.
            assert_eq!(far.read(&mut [0; 8]).unwrap(), 3);
        });
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..5 {
            let shot = sampler.sample(TIMEOUT).unwrap();
            assert!(!shot.stack.is_empty());
        }
        near.write_all(b"abc").unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_question_that_is_withdrawn_is_not_answered() {
        let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
        // The id of a thread of another process.
        let sampler = StackSampler(Arc::<ThreadStack>::default());
        sampler.0.thread.store(1, Release);
        assert_eq!(sampler.sample(TIMEOUT), Err(SampleError::Silent));
        assert_eq!(SAMPLE_BUFFER.state.load(Acquire), FREE);
        SAMPLE_BUFFER.record([1, 2, 3]);
        assert_eq!(SAMPLE_BUFFER.state.load(Acquire), FREE);
    }

    #[test]
    fn what_cannot_be_read_is_not_copied() {
        let cells = [const { AtomicU64::new(7) }; 4];
        assert_eq!(copy(8, &cells), 0);
        assert_eq!(cells[0].load(Relaxed), 7);
        let words = [1u64, 2, 3, 4];
        assert_eq!(copy(words.as_ptr().addr() as u64, &cells), 4);
        assert_eq!(cells[3].load(Relaxed), 4);
    }
}
