//! The texts of a reply.

/// Selects the text of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum View {
    /// The main text.
    #[default]
    Table,
    /// The detailed text.
    Verbose,
    /// The text that this word of the command selects.
    Named(&'static str),
}
