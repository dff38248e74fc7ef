//! Queries whose reply comes in items over time (`ping`, `monitor`), and their runs, for every interface.
//!
//! A run belongs to one client, and ends when the client stops it or disconnects. A client either follows the run, and gets the
//! text of each item as soon as it exists, or gets the whole reply when the run has ended.

use crate::FieldError;
use crate::query::{Answer, Query};
use crate::query_class::{QueryDef, StreamDef};
use crate::{DefinitionError, refuse};
use std::any::Any;

/// Number of requests or items of a run whose reply is returned as a whole.
pub const WHOLE_ITEMS: std::ops::RangeInclusive<u32> = 1..=100;
/// Maximum duration in milliseconds of a run whose reply is returned as a whole.
pub const WHOLE_MS: u64 = 60_000;

/// A query whose reply comes in items, by `stream(...)` of `#[derive(Query)]`:
///
/// - `items = answers`: the field of the reply that lists the items.
/// - `line = path`: a function `fn(usize, &Item) -> String` that writes an item as text; the number counts items from 0.
/// - `head = path`, `end = path`: functions `fn(&Reply) -> String` that write the text before the first item and after the last
///   one.
/// - `failure = path`: a function `fn(&Reply) -> Option<String>` that returns the reason of the failure of a run that has
///   ended, as one sentence.
/// - `whole = path`: a function `fn(&Self) -> Result<(), FieldError>` that checks whether the reply can be returned as a whole,
///   see [`whole_run`].
/// - `live`: the reply is never returned as a whole.
/// - `bytes = pcapng`, `reader = "wireshark -k -i -"`: the boolean parameter that requests bytes for the client's standard
///   output, the field of the reply with the bytes, and a program that reads them. Parameter and field have this name.
///
/// The text of a whole reply is the concatenation of the texts of its parts: such a query has no `text`.
pub trait Stream: Query {
    /// The text before the first item.
    fn head(reply: &Self::Reply) -> String;

    /// The texts of the items of a reply; `first` is the number of the first item.
    fn lines(reply: &Self::Reply, first: usize) -> String;

    /// The text after the last item.
    fn end(reply: &Self::Reply) -> String;

    /// Number of items of a reply.
    fn count(reply: &Self::Reply) -> usize;

    /// Inserts items before those of a reply.
    fn prepend(reply: &mut Self::Reply, before: Self::Reply);

    /// Moves out the bytes for the standard output of the client.
    fn take_bytes(_reply: &mut Self::Reply) -> Vec<u8> {
        Vec::new()
    }

    /// The reason of the failure of a run that has ended.
    fn failure(_reply: &Self::Reply) -> Option<String> {
        None
    }

    /// The text of a whole reply.
    fn whole_text(reply: &Self::Reply) -> String {
        Self::head(reply) + &Self::lines(reply, 0) + &Self::end(reply)
    }
}

/// A run of a query. Dropping it ends the run.
pub trait Run {
    /// The reply to the query.
    type Reply;

    /// The results since the last call.
    fn take(&mut self) -> Progress<Self::Reply>;

    /// Stops the run on request of the client: no new requests are sent, and existing results are still returned.
    fn stop(&mut self);
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<R> {
    /// The state of the reply, with the items since the last call.
    pub reply: R,
    /// No results follow.
    pub is_over: bool,
}

impl QueryDef {
    /// Declares that the reply comes in items.
    pub fn stream<Q: Stream>(&mut self) -> &mut StreamDef {
        let failure = |reply: &dyn Any| reply.downcast_ref().and_then(Q::failure);
        self.stream.insert(StreamDef {
            live: false,
            bytes: None,
            whole: None,
            failure,
        })
    }
}

/// Checks a run whose reply is returned as a whole: the number of its requests, and the milliseconds from the first request to
/// the end of the last one.
pub fn whole_run(field: &'static str, requests: u32, span_ms: u64) -> Result<(), FieldError> {
    if !WHOLE_ITEMS.contains(&requests) {
        let (least, most) = WHOLE_ITEMS.into_inner();
        let why = format!(
            "must be a number from {least} to {most}, not '{requests}', where the answer comes as a whole"
        );
        return refuse(field, why);
    }
    if span_ms > WHOLE_MS {
        let why = format!(
            "makes a run of {} s, and {} s is the most: choose fewer requests, or less time for each",
            span_ms.div_ceil(1000),
            WHOLE_MS / 1000
        );
        return refuse(field, why);
    }
    Ok(())
}

/// A part of a reply, for a client that follows the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyPart {
    /// Lines of text.
    pub text: String,
    /// Bytes for the standard output of the client.
    pub bytes: Vec<u8>,
    /// No part follows.
    pub is_last: bool,
    /// The reason of a failure, as one sentence, when the run has ended and failed.
    pub failure: Option<String>,
}

impl ReplyPart {
    /// Whether the part has nothing to show, and more parts may follow.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.bytes.is_empty() && !self.is_last
    }
}

/// A run of a registered query.
pub type Running = Box<dyn AnyRun>;

/// A run of any registered query.
pub trait AnyRun {
    /// The results since the last call, as text and bytes.
    fn part(&mut self) -> ReplyPart;

    /// The whole reply, when the run has ended. A run whose parts were taken has no whole reply.
    fn whole(&mut self) -> Result<Option<Answer>, DefinitionError>;

    /// Stops the run on request of the client.
    fn stop(&mut self);
}

/// A run of `Q`.
pub fn running<Q: Stream + 'static>(run: impl Run<Reply = Q::Reply> + 'static) -> Running {
    Box::new(Typed::<Q, _> {
        run,
        number: 0,
        begun: false,
        before: None,
    })
}

struct Typed<Q: Query, R> {
    run: R,
    /// Number of the next item.
    number: usize,
    /// The head was taken.
    begun: bool,
    /// Items of a whole reply so far.
    before: Option<Q::Reply>,
}

impl<Q: Stream, R: Run<Reply = Q::Reply>> AnyRun for Typed<Q, R> {
    fn part(&mut self) -> ReplyPart {
        let Progress { mut reply, is_over } = self.run.take();
        let mut part = ReplyPart {
            is_last: is_over,
            bytes: Q::take_bytes(&mut reply),
            ..ReplyPart::default()
        };
        if !std::mem::replace(&mut self.begun, true) {
            part.text = Q::head(&reply);
        }
        part.text += &Q::lines(&reply, self.number);
        self.number += Q::count(&reply);
        if is_over {
            part.text += &Q::end(&reply);
            part.failure = Q::failure(&reply);
        }
        part
    }

    fn whole(&mut self) -> Result<Option<Answer>, DefinitionError> {
        let Progress { mut reply, is_over } = self.run.take();
        if let Some(before) = self.before.take() {
            Q::prepend(&mut reply, before);
        }
        if is_over {
            return Answer::new::<Q>(reply).map(Some);
        }
        self.before = Some(reply);
        Ok(None)
    }

    fn stop(&mut self) {
        self.run.stop();
    }
}
