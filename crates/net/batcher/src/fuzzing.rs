//! Entry points for the fuzz targets in `fuzz/`.

use crate::PathHeader;
use crate::memo::Trail;
use crate::parser::{Features, Program};

/// Parses a packet for the headers and fields of these names, once as far as needed and once to its end: both give the same
/// result.
pub fn walk(own: &[PathHeader], wanted: &[&str], packet: &[u8]) {
    let mut program = Program::new(own);
    for name in wanted {
        // Unknown names and too many names are refused.
        let _ = program.want(name);
    }
    program.finish();
    let mut found = [false, true].map(|whole| {
        let mut found = Features::default();
        program.parse(packet, whole, &mut found, &mut Trail::default());
        found
    });
    for found in &mut found {
        assert!(program.path_text(found.path).len() < 1024);
    }
    assert_eq!(found[0].seen, found[1].seen, "headers that are wanted");
    assert_eq!(found[0].values, found[1].values, "fields that are wanted");
}
