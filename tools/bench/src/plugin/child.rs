//! Processes of the command: arguments, output, errors.

use super::rig::Case;
use crate::BenchError;
use crate::args::PluginArgs;
use std::ffi::OsString;
use std::process::Command;

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
    number("--isa", args.isa.clone());
    words
}

/// This program.
pub fn program() -> Result<OsString, BenchError> {
    let found = std::env::current_exe();
    let found = found.map_err(|why| file_error("the running program", &why))?;
    Ok(found.into())
}

/// The standard output of a process that must succeed.
pub fn output(command: &mut Command) -> Result<String, BenchError> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|why| file_error(&shown, &why))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        let why = why.lines().last().unwrap_or("the reason is above");
        let text = format!("{shown} ended with {}: {why}", done.status);
        return Err(BenchError::Wrong(text));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The error of a file or program that cannot be opened.
pub fn file_error(path: &str, why: &std::io::Error) -> BenchError {
    BenchError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}
