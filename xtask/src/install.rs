//! Requirements of the tests beyond cargo. All are optional: a missing one is a SKIP with its reason, and the stages that
//! need it skip too.

use crate::home::Home;
use crate::report::{Outcome, Pass, Report, Skip};
use crate::run::{Program, exists};

/// A Debian package, and a program (or a file, by its path) that shows that it is installed.
pub(crate) struct Package {
    program: &'static str,
    packages: &'static [&'static str],
}

impl Package {
    pub(crate) const fn new(program: &'static str, packages: &'static [&'static str]) -> Self {
        Self { program, packages }
    }
}

const PACKAGES: [Package; 19] = [
    Package {
        program: "ip",
        packages: &["iproute2"],
    },
    Package {
        program: "ping",
        packages: &["iputils-ping"],
    },
    Package {
        program: "iperf3",
        packages: &["iperf3"],
    },
    Package {
        program: "ethtool",
        packages: &["ethtool"],
    },
    Package {
        program: "tcpdump",
        packages: &["tcpdump"],
    },
    Package {
        program: "taskset",
        packages: &["util-linux"],
    },
    Package {
        program: "qemu-system-x86_64",
        packages: &["qemu-system-x86"],
    },
    Package {
        program: "valgrind",
        packages: &["valgrind"],
    },
    Package {
        program: "xz",
        packages: &["xz-utils"],
    },
    Package {
        program: "g++",
        packages: &["g++"],
    },
    Package {
        program: "python3",
        packages: &["python3", "python3-venv"],
    },
    Package {
        program: "/usr/lib/frr/bgpd",
        packages: &["frr"],
    },
    Package {
        program: "dnsmasq",
        packages: &["dnsmasq-base"],
    },
    Package {
        program: "udhcpc",
        packages: &["udhcpc"],
    },
    Package {
        program: "dhclient",
        packages: &["isc-dhcp-client"],
    },
    Package {
        program: "bird",
        packages: &["bird2"],
    },
    Package {
        program: "dpdk-test-fib",
        packages: &["dpdk", "dpdk-dev"],
    },
    Package {
        program: "dpdk-testpmd",
        packages: &["dpdk"],
    },
    Package {
        program: "/usr/include/dpdk/rte_eal.h",
        packages: &["libdpdk-dev", "pkg-config"],
    },
];
const PIP_SECONDS: u64 = 180;
const APT_SECONDS: u64 = 600;

/// The command.
pub fn run(home: &Home) -> bool {
    let mut report = Report::default();
    for package in &PACKAGES {
        report.stage(package.program, || debian(home, package));
    }
    report.stage("scapy", || scapy(home));
    report.close()
}

/// The stage of `ci`: one line for all packages.
pub fn stage(home: &Home) -> Outcome {
    let mut outcomes: Vec<(&str, Outcome)> = PACKAGES
        .iter()
        .map(|package| (package.program, debian(home, package)))
        .collect();
    outcomes.push(("scapy", scapy(home)));
    let missing: Vec<String> = outcomes
        .iter()
        .filter_map(|(name, outcome)| match outcome {
            Skip(reason) => Some(format!("{name} ({reason})")),
            _ => None,
        })
        .collect();
    if missing.is_empty() {
        Pass("everything is there".into())
    } else {
        Skip(missing.join("; "))
    }
}

/// Installs the package unless its program is there.
pub(crate) fn debian(home: &Home, package: &Package) -> Outcome {
    if exists(package.program) {
        return Pass("there".into());
    }
    if !exists("apt-get") {
        return Skip("no apt-get on this machine".into());
    }
    let install = || {
        apt(
            home,
            &[
                &["install", "-y", "--no-install-recommends"],
                package.packages,
            ]
            .concat(),
        )
    };
    // The package lists of a new container are empty or old: try again after an update.
    let result = install().or_else(|_| apt(home, &["update"]).and_then(|()| install()));
    match result {
        Ok(()) if exists(package.program) => Pass("installed".into()),
        Ok(()) => Skip(format!(
            "{} came without {}",
            package.packages.join(" "),
            package.program
        )),
        Err(reason) => Skip(reason),
    }
}

fn apt(home: &Home, args: &[&str]) -> Result<(), String> {
    let as_root = std::env::var("USER").is_ok_and(|user| user == "root") || id(home) == "0";
    let program = if as_root {
        Program::new(home, "apt-get")
    } else if exists("sudo") {
        Program::new(home, "sudo").arg("-n").arg("apt-get")
    } else {
        return Err("apt-get needs root".into());
    };
    let run = program
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .limit_seconds(APT_SECONDS)
        .require();
    run.map(|_| ())
        .map_err(|text| text.lines().last().unwrap_or_default().to_owned())
}

fn id(home: &Home) -> String {
    let output = Program::new(home, "id").arg("-u").output();
    output
        .map(|output| output.stdout.trim().to_owned())
        .unwrap_or_default()
}

/// A virtual environment with the pinned scapy.
fn scapy(home: &Home) -> Outcome {
    if has_scapy(home) {
        return Pass("there".into());
    }
    let venv = home.venv();
    let make = Program::new(home, "python3")
        .args(["-m", "venv"])
        .arg(&venv)
        .limit_seconds(PIP_SECONDS)
        .require();
    let pip = || {
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            "tests/oracle/requirements.txt",
        ];
        Program::new(home, home.python())
            .args(install)
            .limit_seconds(PIP_SECONDS)
            .require()
    };
    match make.and_then(|_| pip()) {
        Ok(_) if has_scapy(home) => Pass(format!("installed in {}", venv.display())),
        Ok(_) => Skip("installed, but it cannot be imported".into()),
        Err(reason) => Skip(reason.lines().last().unwrap_or_default().to_owned()),
    }
}

/// Whether scapy is installed, with which the oracle compares its results.
pub fn has_scapy(home: &Home) -> bool {
    let probe = Program::new(home, home.python())
        .args(["-c", "import scapy.layers.inet6"])
        .limit_seconds(60)
        .output();
    probe.is_ok_and(|output| output.ok)
}
