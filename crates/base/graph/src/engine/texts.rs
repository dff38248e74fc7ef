//! Texts and lists of nodes whose code may be unmapped: copies that stay. Equal ones are kept once, so that a plugin that is
//! loaded a thousand times costs what it costs once.

use crate::data::col::{ColumnInfo, Life};
use crate::data::counters::CounterInfo;
use crate::engine::arcs::Feature;
use std::collections::BTreeSet;

/// The copies.
#[derive(Default)]
pub(crate) struct KeptTexts {
    texts: BTreeSet<&'static str>,
    lists: BTreeSet<&'static [&'static str]>,
    counters: Vec<&'static [CounterInfo]>,
}

impl KeptTexts {
    pub(crate) fn text(&mut self, text: &str) -> &'static str {
        if let Some(kept) = self.texts.get(text) {
            return kept;
        }
        let kept: &'static str = Box::leak(text.into());
        self.texts.insert(kept);
        kept
    }

    pub(crate) fn list(&mut self, list: &[&str]) -> &'static [&'static str] {
        let kept: Vec<&'static str> = list.iter().map(|text| self.text(text)).collect();
        if let Some(kept) = self.lists.get(kept.as_slice()) {
            return kept;
        }
        let kept: &'static [&'static str] = kept.leak();
        self.lists.insert(kept);
        kept
    }

    pub(crate) fn counters(&mut self, list: &[CounterInfo]) -> &'static [CounterInfo] {
        if let Some(kept) = self.counters.iter().find(|kept| **kept == list) {
            return kept;
        }
        let copy = |it: &CounterInfo| CounterInfo {
            name: self.text(it.name),
            severity: it.severity,
            text: self.text(it.text),
        };
        let kept: Vec<CounterInfo> = list.iter().map(copy).collect();
        let kept: &'static [CounterInfo] = kept.leak();
        self.counters.push(kept);
        kept
    }

    pub(crate) fn column(&mut self, column: &ColumnInfo) -> ColumnInfo {
        let mut kept = *column;
        kept.name = self.text(column.name);
        if let Life::Layer(layer) = column.life {
            kept.life = Life::Layer(self.text(layer));
        }
        kept
    }

    pub(crate) fn feature(&mut self, feature: &Feature) -> Feature {
        Feature {
            name: self.text(feature.name),
            before: self.list(feature.before),
            after: self.list(feature.after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::counters::Severity;

    #[test]
    fn equal_texts_are_kept_once() {
        let mut kept = KeptTexts::default();
        let names = |kept: &mut KeptTexts| {
            let one = [String::from("a"), String::from("b")];
            let list = kept.list(&[&one[0], &one[1]]);
            let counter = CounterInfo {
                name: "seen",
                severity: Severity::Info,
                text: "packets seen",
            };
            (list.as_ptr(), kept.counters(&[counter]).as_ptr())
        };
        assert_eq!(names(&mut kept), names(&mut kept));
        assert_eq!(kept.list(&["a", "b"]), ["a", "b"]);
        assert_ne!(kept.list(&["b", "a"]).as_ptr(), names(&mut kept).0);
    }
}
