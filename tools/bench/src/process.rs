//! Other processes of a command: output, errors.

use super::BenchError;
use std::ffi::OsString;
use std::process::Command;

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
