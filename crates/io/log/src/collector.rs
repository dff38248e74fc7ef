//! The subscriber of `tracing` events. Spans are not used: fields name the origin of a record.

use crate::limit::Draft;
use crate::model::LogModule;
use crate::record::LogLevel;
use crate::shared::Shared;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Level, LevelFilter, Metadata, Subscriber};

/// The maximum length of a message, in bytes.
const MESSAGE: usize = 4096;
/// The maximum length of a field's value, in bytes.
const VALUE: usize = 1024;

pub(crate) struct Collector(pub Arc<Shared>);

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

impl Subscriber for Collector {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let module = LogModule::of_target(metadata.target());
        metadata.is_event() && level_of(*metadata.level()) <= self.0.level_of(module)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.0.most() {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        })
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut found = Fields::default();
        event.record(&mut found);
        let module = LogModule::of_target(metadata.target());
        if module == "library" {
            found.put("target", metadata.target());
        }
        self.0.take(
            metadata.callsite(),
            Draft {
                level: level_of(*metadata.level()),
                module,
                message: found.message,
                fields: found.fields,
            },
        );
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Message and fields of one event.
#[derive(Default)]
struct Fields {
    message: String,
    fields: BTreeMap<String, String>,
}

impl Fields {
    fn put(&mut self, name: &str, value: impl fmt::Display) {
        let limit = if name == "message" { MESSAGE } else { VALUE };
        let mut text = Bounded(String::new(), limit);
        // An error means that the text is full: the part that fits is kept.
        let _ = write!(text, "{value}");
        match name {
            "message" => self.message = text.0,
            // A field without a value is omitted.
            _ if text.0.is_empty() => {}
            _ => _ = self.fields.insert(name.to_owned(), text.0),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }
}

/// A text with a maximum number of bytes.
struct Bounded(String, usize);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Bounded(out, limit) = self;
        if out.len() + text.len() <= *limit {
            out.push_str(text);
            return Ok(());
        }
        let room = limit.saturating_sub(out.len());
        out.push_str(&text[..text.floor_char_boundary(room)]);
        out.push_str(" ...");
        Err(fmt::Error)
    }
}
