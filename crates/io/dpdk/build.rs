//! With feature `dpdk`: finds libdpdk by pkg-config and compiles the shim. Without it: does nothing.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    shim::build();
}

#[cfg(feature = "dpdk")]
mod shim {
    use std::process::{Command, exit};

    /// Compiler flags other than include paths (`-include rte_config.h`, `-march=...`): headers and library must agree on
    /// them, and the crate `pkg-config` does not report them.
    fn flags() -> Vec<String> {
        let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
        let output = Command::new(program).args(["--cflags", "libdpdk"]).output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let words = text.unwrap_or_default();
        words.split_whitespace().map(str::to_owned).collect()
    }

    pub fn build() {
        for file in ["shim/shim.c", "shim/shim.h"] {
            println!("cargo:rerun-if-changed={file}");
        }
        if let Err(error) = pkg_config::Config::new()
            .atleast_version("22.11")
            .probe("libdpdk")
        {
            println!(
                "cargo:warning=feature dpdk needs libdpdk 22.11 or newer, which pkg-config does not find: \
                 `apt-get install libdpdk-dev dpdk pkg-config`, or build without the feature"
            );
            println!("{error}");
            exit(1);
        }
        let mut build = cc::Build::new();
        build.file("shim/shim.c").warnings(true).std("gnu11");
        for flag in flags() {
            build.flag(flag);
        }
        build.compile("volley_dpdk_shim");
    }
}
