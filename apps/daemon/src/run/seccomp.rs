//! Filters of system calls: which ones the threads of the daemon may make (`[process] seccomp`).
//!
//! - Start: the configuration is read before the first filter is set, because it has the setting.
//! - Control: the filter of the control thread is set before any other thread is started, so all threads inherit it. It refuses
//!   calls that start programs, access other processes, mount, or change the kernel; sockets, namespaces, threads, memory and
//!   BPF programs are allowed only in the forms that the daemon uses.
//! - Workers: a second filter is set before the first round. It allows what drivers call for packets, and memory and signals.
//!
//! A list of calls without conditions costs one look-up in the kernel's bitmap (Linux 5.11), however long it is.

use crate::settings::Seccomp;
use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Is,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::warn;

/// Calls of every thread: packets and notifications, memory, waiting, time, signals, exit.
const EVERY: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // The drop counter of a packet socket.
    libc::SYS_getsockopt,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_io_submit,
    libc::SYS_io_getevents,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getcpu,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sigaltstack,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_getaffinity,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Further calls of the other threads: files, sockets, threads, capabilities.
const CONTROL: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close_range,
    libc::SYS_pread64,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_fadvise64,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_umask,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_cancel,
    libc::SYS_memfd_create,
    libc::SYS_userfaultfd,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_move_pages,
    // A separate filter answers it with ENOSYS, so that the C library calls clone, whose flags a filter can check.
    libc::SYS_clone3,
    libc::SYS_set_tid_address,
    libc::SYS_get_robust_list,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_signalfd4,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getppid,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
];

/// Older calls that only this processor has.
// tidy: allow(target_arch) the numbers of system calls differ
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_access,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_select,
    libc::SYS_poll,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_time,
    libc::SYS_getrlimit,
    libc::SYS_arch_prctl,
];
// tidy: allow(target_arch) the numbers of system calls differ
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// The allowed families of sockets.
const FAMILIES: [libc::c_int; 6] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_XDP,
];
/// Allowed commands of `bpf`: create and fill a map, load and attach a program.
const BPF: [u64; 4] = [0, 2, 5, 28];
/// Allowed operations of `prctl`: names of threads and of memory (`PR_SET_VMA`), and fewer privileges.
const PRCTL: [libc::c_int; 6] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_CAPBSET_READ,
    libc::PR_CAP_AMBIENT,
    0x5356_4d41,
];
/// Requests of `ioctl` that inject characters into a terminal's input.
const PUT_INTO_TERMINALS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// One form in which a call is allowed: all conditions are true. Each is the number of an argument, and its required value.
fn form(conditions: &[(u8, Is, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(argument, is, value): &(u8, Is, u64)| {
        SeccompCondition::new(*argument, Size::Dword, is.clone(), *value)
    };
    let conditions: Result<_, _> = conditions.iter().map(condition).collect();
    SeccompRule::new(conditions?)
}

/// A call whose argument must have one of these values.
fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, BackendError> {
    let values = values.iter();
    values
        .map(|value| form(&[(argument, Is::Eq, *value)]))
        .collect()
}

/// Adds the calls that every thread makes in certain forms.
fn add_forms_of_every(rules: &mut Rules) -> Result<(), BackendError> {
    let (write, execute) = (libc::PROT_WRITE as u64, libc::PROT_EXEC as u64);
    let only = |masks: &[u64]| -> Result<Vec<SeccompRule>, BackendError> {
        let forms = masks.iter();
        forms
            .map(|value| form(&[(2, Is::MaskedEq(write | execute), *value)]))
            .collect()
    };
    // Memory is writable or executable. Existing memory never becomes executable.
    rules.insert(libc::SYS_mmap, only(&[0, write, execute])?);
    rules.insert(libc::SYS_mprotect, only(&[0, write])?);
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, one_of(0, &[own])?);
    // A stalled worker copies its stack with it.
    rules.insert(libc::SYS_process_vm_readv, one_of(0, &[own])?);
    let terminals = PUT_INTO_TERMINALS.map(|request| (1, Is::Ne, request));
    rules.insert(libc::SYS_ioctl, vec![form(&terminals)?]);
    Ok(())
}

/// Adds the calls that the other threads make in certain forms.
fn add_forms_of_control(rules: &mut Rules) -> Result<(), BackendError> {
    let numbers = |values: &[libc::c_int]| values.iter().map(|v| *v as u64).collect::<Vec<_>>();
    rules.insert(libc::SYS_socket, one_of(0, &numbers(&FAMILIES))?);
    rules.insert(libc::SYS_bpf, one_of(0, &BPF)?);
    rules.insert(libc::SYS_prctl, one_of(0, &numbers(&PRCTL))?);
    rules.insert(libc::SYS_setns, one_of(1, &[libc::CLONE_NEWNET as u64])?);
    // Threads but no processes.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(
        libc::SYS_clone,
        vec![form(&[(0, Is::MaskedEq(thread), thread)])?],
    );
    // Further filters may be set.
    let set = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    rules.insert(libc::SYS_seccomp, one_of(0, &[set])?);
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_rt_tgsigqueueinfo, one_of(0, &[own])?);
    // Events of threads on any processor: of one thread at a time, never of all or of a control group. The only flag is
    // PERF_FLAG_FD_CLOEXEC. A filter does not know the daemon's threads: with CAP_PERFMON the kernel also counts events of other
    // processes' threads.
    let (all, close_on_exec) = (u64::from(u32::MAX), 1u64 << 3);
    let events = [
        (1, Is::Ne, all),
        (2, Is::Eq, all),
        (4, Is::MaskedEq(all & !close_on_exec), 0),
    ];
    rules.insert(libc::SYS_perf_event_open, vec![form(&events)?]);
    Ok(())
}

fn filter(rules: Rules, otherwise: SeccompAction) -> Result<BpfProgram, BackendError> {
    let processor: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, processor)?.try_into()
}

fn lists(lists: &[&[c_long]]) -> Rules {
    let calls = lists.iter().flat_map(|list| list.iter());
    calls.map(|call| (*call, Vec::new())).collect()
}

/// The action for a call that is not allowed.
fn otherwise(mode: Seccomp) -> SeccompAction {
    match mode {
        Seccomp::Log => SeccompAction::Log,
        _ => SeccompAction::Errno(libc::EPERM as u32),
    }
}

fn control(mode: Seccomp) -> Result<BpfProgram, BackendError> {
    let mut rules = lists(&[EVERY, CONTROL, OLDER]);
    add_forms_of_every(&mut rules)?;
    add_forms_of_control(&mut rules)?;
    filter(rules, otherwise(mode))
}

fn workers(mode: Seccomp) -> Result<BpfProgram, BackendError> {
    let mut rules = lists(&[EVERY]);
    add_forms_of_every(&mut rules)?;
    filter(rules, otherwise(mode))
}

/// The filter that answers `clone3` with ENOSYS.
fn without_clone3() -> Result<BpfProgram, BackendError> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let processor: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, absent, processor)?.try_into()
}

/// The filter of workers, which each worker sets for itself.
#[derive(Clone, Default)]
pub struct OfWorkers(Option<Arc<BpfProgram>>);

impl OfWorkers {
    /// Filters the calling thread from now on. The first filter was set successfully, so this one can be set, too.
    pub fn put_on(&self) {
        if let Some(program) = &self.0
            && let Err(error) = apply_filter(program)
        {
            warn!(target: "daemon", "a worker's system calls are not filtered: {error}");
        }
    }
}

/// Filters the calling thread, and those that it starts, from now on. If the kernel has no filters this is an error only if the
/// configuration requires them, else a sentence for the log.
pub fn start(mode: Seccomp) -> Result<(OfWorkers, Option<String>), seccompiler::Error> {
    if mode == Seccomp::Off {
        return Ok(Default::default());
    }
    match put_on(mode) {
        Ok(program) => Ok((OfWorkers(Some(program.into())), None)),
        Err(error) if mode == Seccomp::Auto => {
            let warning = format!("system calls are not filtered: {error}");
            Ok((OfWorkers::default(), Some(warning)))
        }
        Err(error) => Err(error),
    }
}

fn put_on(mode: Seccomp) -> Result<BpfProgram, seccompiler::Error> {
    let of_workers = workers(mode)?;
    apply_filter(&control(mode)?)?;
    apply_filter(&without_clone3()?)?;
    Ok(of_workers)
}
