//! Records in a file: appended, one line each. A file that exceeds its size limit is renamed to `FILE.1`, `FILE.1` to `FILE.2`
//! and so on. When another process renames or removes the file (logrotate), a new file is created automatically.

use crate::error::LogError;
use crate::record::LogRecord;
use crate::settings::{LogFormat, LogSettings};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use volley_model::acts_on_terminals;

pub(crate) struct File {
    path: PathBuf,
    format: LogFormat,
    /// The size limit in bytes; 0 = none.
    most: u64,
    kept: u32,
    open: Option<fs::File>,
    bytes: u64,
    /// The last line is incomplete: the next record begins with a new line.
    torn: bool,
}

impl File {
    pub fn open(path: &Path, settings: &LogSettings) -> Result<File, LogError> {
        let mut file = File {
            path: path.to_owned(),
            format: settings.format,
            most: settings.file_size,
            kept: settings.file_count,
            open: None,
            bytes: 0,
            torn: false,
        };
        let failed = |source| LogError::File {
            file: path.to_owned(),
            source,
        };
        file.reopen().map_err(failed)?;
        Ok(file)
    }

    /// Writes to a file that was not opened by its path: `/dev/full`, which is like a full disk.
    #[cfg(test)]
    pub fn onto(path: &Path, open: fs::File) -> File {
        let settings = LogSettings::default();
        File {
            path: path.to_owned(),
            format: settings.format,
            most: 0,
            kept: 0,
            open: Some(open),
            bytes: 0,
            torn: false,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn reopen(&mut self) -> io::Result<()> {
        self.open = None;
        let file = volley_file::append(&self.path)?;
        self.bytes = file.metadata()?.len();
        (self.open, self.torn) = (Some(file), false);
        Ok(())
    }

    /// Whether the path names another file now, or none.
    fn is_moved(&self) -> bool {
        let same = || {
            let (mine, there) = (
                self.open.as_ref()?.metadata().ok()?,
                fs::metadata(&self.path).ok()?,
            );
            Some((mine.dev(), mine.ino()) == (there.dev(), there.ino()))
        };
        same() != Some(true)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.kept).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match self.kept {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, self.numbered(1))?,
        }
        self.reopen()
    }

    pub fn write(&mut self, record: &LogRecord) -> io::Result<()> {
        let mut line = match self.format {
            LogFormat::Text => record.to_string(),
            LogFormat::Json => json(record),
        };
        line.push('\n');
        if self.is_moved() {
            self.reopen()?;
        }
        if self.most > 0 && self.bytes > 0 && self.bytes + line.len() as u64 > self.most {
            self.rotate()?;
        }
        if self.torn {
            line.insert(0, '\n');
        }
        let Some(file) = &mut self.open else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let done = file.write_all(line.as_bytes());
        self.torn = match &done {
            Ok(()) => false,
            Err(_) => file.metadata().is_ok_and(|m| m.len() != self.bytes) || self.torn,
        };
        self.bytes = file.metadata().map_or(self.bytes, |m| m.len());
        done
    }
}

/// One line of JSON; terminal control characters are written as `\uXXXX`, because such files are shown on terminals, too.
pub(crate) fn json(record: &LogRecord) -> String {
    // A record is plain data with text keys, which can always be written.
    let text = serde_json::to_string(record).unwrap_or_default();
    if !text.chars().any(acts_on_terminals) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match acts_on_terminals(c) {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}
