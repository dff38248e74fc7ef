//! Texts of several commands.

/// The commands of a text, each with the number of its first line. A command with an open brace continues in the next line.
pub(crate) fn commands(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let (mut held, mut first) = (String::new(), 1);
    for (i, line) in text.lines().enumerate() {
        if held.is_empty() {
            first = i + 1;
        } else {
            held.push('\n');
        }
        held += line;
        if !open(&held) {
            all.push((first, std::mem::take(&mut held)));
        }
    }
    if !held.is_empty() {
        all.push((first, held));
    }
    all
}

/// Whether a brace of the text is still open.
pub(crate) fn open(text: &str) -> bool {
    matches!(crate::token::tokens(text, 1), Err(e) if e.message.starts_with("this brace"))
}
