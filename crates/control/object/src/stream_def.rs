//! The definition of a query's runs.

use crate::instance::Instance;
use crate::{FieldError, refuse};
use std::any::Any;

/// Checks that the reply to a query can be returned as a whole.
pub type WholeCheck = fn(&Instance) -> Result<(), FieldError>;

/// The definition of a query's runs.
#[derive(Clone, Copy)]
pub struct StreamDef {
    /// The reply is never returned as a whole.
    pub live: bool,
    /// The boolean parameter that requests bytes, and a program that reads them.
    pub bytes: Option<(&'static str, &'static str)>,
    /// Checks that the reply to a query can be returned as a whole.
    pub whole: Option<WholeCheck>,
    failure: fn(&dyn Any) -> Option<String>,
}

impl StreamDef {
    /// A definition with a function that returns the reason of a failure.
    pub(crate) fn new(failure: fn(&dyn Any) -> Option<String>) -> StreamDef {
        StreamDef {
            live: false,
            bytes: None,
            whole: None,
            failure,
        }
    }

    /// The reason of the failure of a run that ended with this reply.
    pub(crate) fn failure(&self, reply: &dyn Any) -> Option<String> {
        (self.failure)(reply)
    }

    /// Checks that the reply to a query can be returned as a whole; an error says what to use instead.
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

    /// The program that reads the reply if the client requested bytes; `None` if the reply is text.
    pub(crate) fn reader(&self, asked: &Instance) -> Option<&'static str> {
        let (parameter, reader) = self.bytes?;
        let at = asked.class().field(parameter)?.0;
        asked.field::<bool>(at)?.then_some(reader)
    }
}
