//! The arguments of the processes of the command.

use super::rig::Case;
use crate::args::PluginArgs;
use std::ffi::OsString;

/// The arguments of a process that runs one scenario.
pub fn words(args: &PluginArgs, case: &Case) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["bench".into(), "plugin".into(), args.file.clone().into()];
    let option = match case.is_offered {
        true => ["--scenario", &case.name],
        false => ["--node", &case.node],
    };
    words.extend(option.map(OsString::from));
    let mut number = |name: &str, value: String| words.extend([name.into(), value.into()]);
    if let Some(size) = args.vector_size {
        number("--vector-size", size.to_string());
    }
    if let Some(size) = args.batch {
        number("--batch", size.to_string());
    }
    for edit in &args.edit {
        number("--edit", edit.clone());
    }
    if let Some(core) = args.core {
        number("--core", core.to_string());
    }
    number("--seconds", args.seconds.to_string());
    number("--repetitions", args.repetitions.to_string());
    number("--isa", args.level.isa.clone());
    words
}
