//! Route files, as text and as MRT dumps: errors name the file, routes are within bounds and no more than wanted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use volley_fib::RouteFormat;
use volley_fib::load::{ReadOptions, read_from};

const LIMIT: u64 = 50;

fuzz_target!(|bytes: &[u8]| {
    for format in [RouteFormat::Auto, RouteFormat::Text, RouteFormat::Mrt] {
        let options = ReadOptions {
            format,
            only: None,
            limit: Some(LIMIT),
        };
        match read_from(Path::new("fuzz"), bytes, options) {
            Ok(routes) => {
                assert!(routes.len() as u64 <= LIMIT);
                let count = routes.hops.count();
                let four = routes.v4.iter().map(|r| (r.1 <= 32, r.2));
                let six = routes.v6.iter().map(|r| (r.1 <= 128, r.2));
                for (fits, rank) in four.chain(six) {
                    assert!(fits && u64::from(rank) < count);
                }
            }
            Err(error) => assert!(error.to_string().contains("fuzz"), "{error}"),
        }
    }
});
