//! Intended sharing between workers, each with its reason: the list that `cargo xtask contended` accepts. It has places
//! in the code, not addresses: other data on the same cache lines is not accepted.

/// A file, and functions in it; all functions if none is named.
type Source = (&'static str, &'static [&'static str]);

/// An intended shared access.
pub struct Meant {
    pub name: &'static str,
    pub why: &'static str,
    /// Code with the accesses.
    pub sources: &'static [Source],
    /// Whether the accesses synchronise: a reader then knows what the writer did before.
    pub orders: bool,
}

impl Meant {
    /// Whether a function, possibly with generic arguments, belongs to this entry; `at` is `file:line`.
    pub fn has(&self, function: &str, at: &str) -> bool {
        let name = function.split('<').next().unwrap_or_default();
        let file = at.rsplit_once(':').map_or(at, |(file, _)| file);
        let belongs = |(in_file, names): &Source| {
            file == *in_file && (names.is_empty() || names.contains(&name))
        };
        self.sources.iter().any(belongs)
    }
}

pub const MEANT: [Meant; 4] = [
    Meant {
        name: "handoff rings",
        why: "indices and places of the rings between two workers, and turns: this is how packets go over, once a frame",
        sources: &[("crates/base/tables/src/exchange.rs", &[])],
        orders: true,
    },
    Meant {
        name: "free buffers",
        why: "the shared list behind the workers' caches, taken from and given to by batches of 64",
        sources: &[("crates/base/buf/src/ring.rs", &[])],
        orders: true,
    },
    Meant {
        name: "wake-ups",
        why: "whether a worker sleeps: the worker writes it, and a producer reads it to wake the worker",
        sources: &[
            (
                "crates/base/graph/src/queues/wakeup.rs",
                &["notify", "is_asleep"],
            ),
            ("crates/base/graph/src/worker/sleep.rs", &["sleep", "wait"]),
            ("crates/base/graph/src/queues/channel.rs", &["wake"]),
        ],
        orders: false,
    },
    Meant {
        name: "position of a worker",
        why: "the answer of a stopped worker to the watchdog: workers that are stepped one by one write it, others never do",
        sources: &[(
            "crates/base/stack-sample/src/lib.rs",
            &["record", "copy", "on_signal"],
        )],
        orders: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_list_are_there_and_functions_are_told_apart() {
        let home = xtask::home::Home::find().unwrap();
        for (file, names) in MEANT.iter().flat_map(|m| m.sources) {
            let text = std::fs::read_to_string(home.root.join(file)).unwrap();
            for name in *names {
                assert!(text.contains(&format!("fn {name}")), "{file}: {name}");
            }
        }
        let ring = &MEANT[0];
        assert!(ring.has(
            "dequeue<volley_graph::queues::handoff::HandoffEntry>",
            "crates/base/tables/src/exchange.rs:9"
        ));
        assert!(!ring.has("dequeue", "crates/base/tables/src/limbo.rs:9"));
        let one = Meant {
            sources: &[("a.rs", &["f"])],
            ..MEANT[0]
        };
        assert!(one.has("f<u8>", "a.rs:1") && !one.has("g", "a.rs:1"));
    }
}
