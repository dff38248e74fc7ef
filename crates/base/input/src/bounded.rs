//! Counts the output of a decompressor, stops at the limit, and adds the position to errors.

use std::io::{self, Read};
use std::path::PathBuf;

use crate::Format;

pub(crate) struct Bounded {
    inner: Box<dyn Read + Send>,
    name: PathBuf,
    format: Format,
    read: u64,
    limit: u64,
}

impl Bounded {
    pub(crate) fn new(
        inner: Box<dyn Read + Send>,
        name: PathBuf,
        format: Format,
        limit: u64,
    ) -> Self {
        Bounded {
            inner,
            name,
            format,
            read: 0,
            limit,
        }
    }

    fn located(&self, error: io::Error) -> io::Error {
        let text = format!(
            "{}: the {} data is cut or damaged: {error} (after {} bytes of content)",
            self.name.display(),
            self.format.name(),
            self.read,
        );
        io::Error::new(error.kind(), text)
    }

    fn over(&self) -> io::Error {
        let text = format!(
            "{}: more than {} bytes of content, the limit for one file; split it",
            self.name.display(),
            self.limit,
        );
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    }
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = loop {
            match self.inner.read(into) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if self.format == Format::Plain => {
                    return Err(io::Error::new(
                        e.kind(),
                        format!("{}: {e}", self.name.display()),
                    ));
                }
                Err(e) => return Err(self.located(e)),
                Ok(n) => break n,
            }
        };
        self.read = self.read.saturating_add(n as u64);
        if self.read > self.limit {
            return Err(self.over());
        }
        Ok(n)
    }
}
