//! Handlers: values of elements by name.

use crate::arguments::{boolean, number, seconds};
use crate::cells::Cells;
use crate::pace::{from_fixed, to_fixed};
use crate::spec::{Format, HandlerKind, Spec};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// An element of a graph that runs, on the control thread.
pub struct Placed {
    /// Name.
    pub name: String,
    /// Class.
    pub spec: &'static Spec,
    /// Arguments.
    pub config: String,
    /// Connections of each input and output, for the handler `ports`.
    pub ports: String,
    /// Numbers.
    pub cells: Arc<Cells>,
    /// Texts of further handlers.
    pub texts: Vec<(&'static str, String)>,
}

/// Handlers of every element that can be read.
const OF_ALL: [&str; 5] = ["class", "config", "handlers", "name", "ports"];

impl Placed {
    /// The names of all handlers, each with its access: `r`, `w` or `rw`.
    pub fn handlers(&self) -> Vec<(String, &'static str)> {
        let of_all = OF_ALL.iter().map(|name| ((*name).to_owned(), "r"));
        let texts = self.texts.iter().map(|(name, _)| ((*name).to_owned(), "r"));
        let own = self.spec.handlers.iter().map(|it| {
            let access = match it.kind.access() {
                (true, true) => "rw",
                (true, false) => "r",
                _ => "w",
            };
            (it.name.to_owned(), access)
        });
        own.chain(texts).chain(of_all).collect()
    }

    fn unknown(&self, name: &str) -> String {
        let all = self.handlers();
        let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let otherwise = format!("its handlers are {}", known.join(", "));
        let hint = volley_click_lang::hint(name, known.iter().copied(), &otherwise);
        format!(
            "{} ({}) has no handler {name}{hint}",
            self.name, self.spec.name
        )
    }

    /// Read a handler.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let all = || {
            let rows = self
                .handlers()
                .into_iter()
                .map(|(name, access)| format!("{name}\t{access}\n"));
            rows.collect::<String>()
        };
        if let Some((_, text)) = self.texts.iter().find(|(it, _)| *it == name) {
            return Ok(text.clone());
        }
        if let Some(handler) = self.spec.handlers.iter().find(|it| it.name == name) {
            return match handler.kind {
                HandlerKind::Read(cell, format) | HandlerKind::ReadWrite(cell, format) => {
                    Ok(text(self.cells.get(usize::from(cell)), format))
                }
                HandlerKind::AverageRate => Ok(format!("{:.1}", self.rate())),
                HandlerKind::Report(_, report) => Ok(report(&self.cells)),
                HandlerKind::Reset(..) | HandlerKind::Trigger(_) => Err(format!(
                    "the handler {name} of {} can only be written: write it with any value",
                    self.name
                )),
            };
        }
        match name {
            "class" => Ok(self.spec.name.to_owned()),
            "config" => Ok(self.config.clone()),
            "handlers" => Ok(all()),
            "name" => Ok(self.name.clone()),
            "ports" => Ok(self.ports.clone()),
            _ => Err(self.unknown(name)),
        }
    }

    fn rate(&self) -> f64 {
        let (count, first, last) = (self.cells.get(0), self.cells.get(2), self.cells.get(3));
        match last.saturating_sub(first) {
            0 => 0.0,
            passed => count as f64 * 1e9 / passed as f64,
        }
    }

    /// Write a handler.
    pub fn write(&self, name: &str, value: &str) -> Result<(), String> {
        let Some(handler) = self.spec.handlers.iter().find(|it| it.name == name) else {
            let readable = self.texts.iter().map(|it| it.0).chain(OF_ALL);
            return match readable.into_iter().any(|it| it == name) {
                true => Err(format!(
                    "the handler {name} of {} cannot be written",
                    self.name
                )),
                false => Err(self.unknown(name)),
            };
        };
        match handler.kind {
            HandlerKind::ReadWrite(cell, format) => {
                let word = word(value.trim(), format).ok_or_else(|| {
                    let wanted = match format {
                        Format::Number => "a number",
                        Format::Integer => "a whole number",
                        Format::Bool => "true or false",
                        Format::Fraction => "a number",
                        Format::Seconds => "a time, such as 100ms",
                        Format::Address => "an IPv4 address",
                    };
                    format!(
                        "the handler {name} of {} must be {wanted}, not '{value}'",
                        self.name
                    )
                })?;
                self.cells.set(usize::from(cell), word);
                Ok(())
            }
            HandlerKind::Reset(first, end) => {
                (usize::from(first)..usize::from(end)).for_each(|cell| self.cells.set(cell, 0));
                Ok(())
            }
            HandlerKind::Trigger(cell) => {
                self.cells.add(usize::from(cell), 1);
                Ok(())
            }
            _ => Err(format!(
                "the handler {name} of {} cannot be written",
                self.name
            )),
        }
    }
}

/// The text of a cell.
pub(crate) fn text(word: u64, format: Format) -> String {
    match format {
        Format::Number => word.to_string(),
        Format::Integer => (word as i64).to_string(),
        Format::Bool => (word != 0).to_string(),
        Format::Fraction => {
            let value = from_fixed(word);
            match value.fract() == 0.0 {
                true => format!("{value:.0}"),
                false => format!("{value:.4}"),
            }
        }
        Format::Seconds => time(word),
        Format::Address => Ipv4Addr::from_bits(word as u32).to_string(),
    }
}

/// Microseconds as seconds.
pub(crate) fn time(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn word(text: &str, format: Format) -> Option<u64> {
    match format {
        Format::Number => number(text),
        Format::Integer => text.parse::<i64>().ok().map(|it| it as u64),
        Format::Bool => boolean(text).map(u64::from),
        Format::Fraction => {
            let value = text.parse::<f64>().ok()?;
            (value.is_finite() && value >= 0.0).then(|| to_fixed(value))
        }
        Format::Seconds => seconds(text).map(|it| (it * 1e6).round() as u64),
        Format::Address => text.parse::<Ipv4Addr>().ok().map(|it| it.to_bits().into()),
    }
}
