//! Answers as text: results of changes, and the configuration.

mod config;

pub(crate) use config::text as config;
use volley_model::Applied;
pub use volley_object::View;

/// The result of a change as text: empty if there are no notes.
pub fn applied(applied: &Applied) -> String {
    let notes = applied.notes.iter();
    notes.map(|note| format!("{note}\n")).collect()
}
