//! What the definition of a query says of its runs.

use crate::instance::Instance;
use crate::{FieldError, refuse};
use std::any::Any;

/// What a query must be for a client that gets the reply as a whole.
pub type WholeCheck = fn(&Instance) -> Result<(), FieldError>;

/// What the definition of a query says of its runs.
#[derive(Clone, Copy)]
pub struct StreamDef {
    /// No client gets the reply as a whole.
    pub live: bool,
    /// The parameter that is on when the client wants bytes, and a program that reads them.
    pub bytes: Option<(&'static str, &'static str)>,
    /// What a query must be for a client that gets the reply as a whole.
    pub whole: Option<WholeCheck>,
    failure: fn(&dyn Any) -> Option<String>,
}

impl StreamDef {
    /// Of a query whose replies say by this function whether the run has failed.
    pub(crate) fn new(failure: fn(&dyn Any) -> Option<String>) -> StreamDef {
        StreamDef {
            live: false,
            bytes: None,
            whole: None,
            failure,
        }
    }

    /// Why a run that has ended with this reply has failed.
    pub(crate) fn failure(&self, reply: &dyn Any) -> Option<String> {
        (self.failure)(reply)
    }

    /// Whether a client gets the reply to a query as a whole; an error says what to do in place of it.
    pub(crate) fn check_whole(&self, asked: &Instance) -> Result<(), FieldError> {
        if self.live {
            let name = asked.class().name();
            let why = format!(
                "shows what comes when it comes: write `volley ctl {name} ...` without a pipe and without --json"
            );
            return refuse(name, why);
        }
        self.whole.map_or(Ok(()), |check| check(asked))
    }

    /// The program that reads the reply where the client wants bytes; none where it wants text.
    pub(crate) fn reader(&self, asked: &Instance) -> Option<&'static str> {
        let (parameter, reader) = self.bytes?;
        let at = asked.class().field(parameter)?.0;
        asked.field::<bool>(at)?.then_some(reader)
    }
}
