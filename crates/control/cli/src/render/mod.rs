//! Answers as text: what changes did, and the configuration.

mod config;

pub(crate) use config::text as config;
use volley_model::Applied;
pub use volley_object::View;

/// What a change did, as text: nothing when all is said by its success.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    for note in &applied.notes {
        out += &format!("{note}\n");
    }
    out
}
