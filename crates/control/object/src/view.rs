//! Texts of a reply.

/// Which text of a reply is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum View {
    /// The text.
    #[default]
    Table,
    /// The detailed text.
    Verbose,
    /// The text that this word of the command selects.
    Named(&'static str),
}
