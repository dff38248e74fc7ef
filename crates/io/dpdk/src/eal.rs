//! DPDK's environment layer (EAL), which starts once per process, with the first port.

use crate::model::{DpdkEal, HugePages};
use crate::sys;
use std::sync::Mutex; // tidy: allow(Mutex) control thread only

/// Reason why DPDK does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EalError {
    /// The EAL did not start.
    #[error(
        "DPDK does not start: {0}; change `set dpdk eal` (now `{1}`) and restart Volley, because DPDK starts once"
    )]
    Start(String, String),
    /// The EAL runs with other settings.
    #[error(
        "DPDK runs already, started with `{0}`: it starts once, so restart Volley to change that"
    )]
    Runs(String),
    /// Too few huge pages are free.
    #[error(
        "huge pages are requested and {0} MB of them are free, where DPDK wants {1} MB: `sysctl -w vm.nr_hugepages={2}`, or \
         take huge-pages out of `set dpdk eal`"
    )]
    HugePages(u64, u32, u64),
}

/// The arguments of the only start, and the reason if it failed.
// tidy: allow(Mutex) control thread only
static STARTED: Mutex<Option<(String, Option<String>)>> = Mutex::new(None);

/// Properties of the machine and the process.
struct Machine {
    /// The first core that this thread may use.
    core: u32,
    /// Free huge pages, in megabytes.
    free_mb: u64,
    /// Process id.
    process: u32,
}

impl Machine {
    fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let list = status
            .lines()
            .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        let first = list.and_then(|l| l.trim().split([',', '-']).next()?.parse().ok());
        let pools = std::fs::read_dir("/sys/kernel/mm/hugepages");
        let mb = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let kb: u64 = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            let free = std::fs::read_to_string(entry.path().join("free_hugepages")).ok()?;
            Some(kb * free.trim().parse::<u64>().ok()? / 1024)
        };
        Machine {
            core: first.unwrap_or(0),
            process: std::process::id(),
            free_mb: pools.into_iter().flatten().flatten().filter_map(mb).sum(),
        }
    }
}

/// Megabytes for DPDK's tables for an arena of this many slots.
fn megabytes(eal: &DpdkEal, slots: usize) -> u32 {
    eal.memory.unwrap_or(64 + (slots >> 14) as u32)
}

fn arguments(eal: &DpdkEal, slots: usize, machine: &Machine) -> Result<Vec<String>, EalError> {
    let memory = megabytes(eal, slots);
    let enough = machine.free_mb >= u64::from(memory);
    let huge = match eal.huge_pages {
        HugePages::Auto => enough,
        HugePages::No => false,
        HugePages::Yes if enough => true,
        HugePages::Yes => {
            let pages = u64::from(memory).div_ceil(2);
            return Err(EalError::HugePages(machine.free_mb, memory, pages));
        }
    };
    let lcores = eal
        .lcores
        .as_ref()
        .map_or_else(|| machine.core.to_string(), |cores| cores.0.clone());
    let memory = memory.to_string();
    // Nothing is shared with other processes, no socket or file remains, and no unconfigured card is used: the list of
    // allowed cards names one that no driver has.
    let mut words = vec!["volley", "--no-telemetry", "--iova-mode=va"];
    words.extend(["-l", &lcores, "-m", &memory, "-a", "0000:00:00.0"]);
    // `--in-memory` and `--no-huge` exclude each other; without `--in-memory` a unique file prefix is used.
    let prefix = format!("--file-prefix=volley{}", machine.process);
    match huge {
        true => words.push("--in-memory"),
        false => words.extend(["--no-huge", "--no-shconf", &prefix]),
    }
    words.extend(eal.options.iter().map(|it| it.0.as_str()));
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// Refuse to change the settings of a running EAL.
pub(crate) fn check_changeable() -> Result<(), EalError> {
    match &*STARTED.lock().unwrap_or_else(|e| e.into_inner()) {
        None => Ok(()),
        Some((with, _)) => Err(EalError::Runs(with.clone())),
    }
}

/// Start the EAL unless it runs.
pub(crate) fn start(eal: &DpdkEal, slots: usize) -> Result<(), EalError> {
    let mut started = STARTED.lock().unwrap_or_else(|e| e.into_inner());
    if started.is_none() {
        let words = arguments(eal, slots, &Machine::read())?;
        let why = sys::start(&words).err().map(|e| e.to_string());
        *started = Some((words.join(" "), why));
    }
    match &*started {
        Some((with, Some(why))) => Err(EalError::Start(why.clone(), with.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Argument, Cores};

    const BARE: Machine = Machine {
        core: 3,
        process: 9,
        free_mb: 0,
    };
    const RICH: Machine = Machine {
        core: 0,
        process: 9,
        free_mb: 1024,
    };

    fn line(eal: &DpdkEal, machine: &Machine) -> String {
        arguments(eal, 16_384, machine).map_or_else(|e| e.to_string(), |words| words.join(" "))
    }

    #[test]
    fn it_starts_on_a_machine_that_nobody_prepared() {
        let eal = DpdkEal::default();
        let usual = "volley --no-telemetry --iova-mode=va -l 3 -m 65 -a 0000:00:00.0 --no-huge --no-shconf --file-prefix=volley9";
        assert_eq!(line(&eal, &BARE), usual);
        assert!(line(&eal, &RICH).ends_with("-a 0000:00:00.0 --in-memory"));
        let plain = DpdkEal {
            huge_pages: HugePages::No,
            ..eal
        };
        assert!(line(&plain, &RICH).contains("--no-huge"));
    }

    #[test]
    fn what_is_asked_for_is_done_or_refused() {
        let eal = DpdkEal {
            lcores: Some(Cores("0-1".into())),
            memory: Some(128),
            huge_pages: HugePages::Yes,
            options: vec![Argument("--log-level=8".into())],
        };
        let words = line(&eal, &RICH);
        assert!(words.contains("-l 0-1 -m 128") && words.ends_with("--log-level=8"));
        let refused = line(&eal, &BARE);
        assert!(refused.contains("0 MB of them are free") && refused.contains("nr_hugepages=64"));
    }
}
