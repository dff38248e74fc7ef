//! The Prometheus text format: families with their help and type, one sample a line.

use std::fmt::Write;

/// Type of a family whose samples only grow.
pub const COUNTER: &str = "counter";
/// Type of a family whose samples go up and down.
pub const GAUGE: &str = "gauge";

/// A page that is being written.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Begins a family.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes one sample.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0 += name;
        for (i, (label, text)) in labels.iter().enumerate() {
            self.0.push(if i == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"{}\"", escaped(text));
        }
        self.0 += if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a family with one sample for each row.
    pub fn rows<R>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        rows: &[R],
        mut one: impl FnMut(&mut dyn FnMut(&[(&str, &str)], f64), &R),
    ) {
        self.family(name, kind, help);
        for row in rows {
            one(&mut |labels, value| self.sample(name, labels, value), row);
        }
    }

    /// The text of the page.
    pub fn text(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.family("a_total", "counter", "All of it.");
        page.sample("a_total", &[("name", "x\"y\\z\n"), ("b", "")], 3);
        page.sample("a_total", &[], 0.5);
        assert_eq!(
            page.text(),
            "# HELP a_total All of it.\n# TYPE a_total counter\na_total{name=\"x\\\"y\\\\z\\n\",b=\"\"} 3\na_total 0.5\n"
        );
    }
}
