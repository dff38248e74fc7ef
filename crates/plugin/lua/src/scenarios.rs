//! Benchmarks: `volley bench plugin libvolley_lua.so`.

use std::io::Write;
use std::path::PathBuf;
use volley_sdk::prelude::*;

/// The router of the example.
const ROUTER: &str = include_str!("../../../../examples/lua/router.lua");
/// The neighbor of the benchmark, which the router learns by ARP otherwise.
const NEIGHBOR: &str =
    "routes:neighbor('10.0.1.2', { interface = 'pg1', mac = '02:00:00:00:00:77' })\n";
/// A script without work.
const SEND: &str = "function vector(v) v:send('pg1') end";

/// The benchmarks: the router with one route, and a script that only sends.
pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    let router = ROUTER.replacen(
        "-- The fast path.",
        &format!("{NEIGHBOR}-- The fast path."),
        1,
    );
    [("router", router), ("send", SEND.to_owned())]
        .into_iter()
        .map(|(name, text)| {
            Scenario::new(name, "lua-input").commands(move || {
                let file = written(name, &text);
                vec![format!("set lua-script {name} file {}", file.display())]
            })
        })
}

/// The script as a file. A file that cannot be written is an error of the command that names it.
fn written(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("volley-lua-{name}-{}.lua", std::process::id()));
    if let Ok(mut file) = volley_file::create(&path) {
        let _ = file.write_all(text.as_bytes());
    }
    path
}
