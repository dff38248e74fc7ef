//! Columns of text.

/// Alignment of a cell in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

use Side::{Left, Right};

/// Maximum column width: a longer cell exceeds the column, so that one long text does not widen all rows.
const WIDEST: usize = 256;

fn padded(cell: &str, width: usize, side: Side) -> String {
    let space = " ".repeat(width.saturating_sub(cell.chars().count()));
    match side {
        Left => cell.to_owned() + &space,
        Right => space + cell,
    }
}

/// A table: `headers` beginning with `>` are right-aligned. Ends with a newline.
pub fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let sides: Vec<Side> = headers
        .iter()
        .map(|h| if h.starts_with('>') { Right } else { Left })
        .collect();
    let heads: Vec<String> = headers
        .iter()
        .map(|h| h.trim_start_matches('>').to_string())
        .collect();
    let mut widths: Vec<usize> = heads.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count()).min(WIDEST);
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let cells = row
            .iter()
            .zip(&widths)
            .zip(&sides)
            .map(|((cell, width), side)| padded(cell, *width, *side));
        let line = cells.collect::<Vec<_>>().join("  ");
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Width in characters that every terminal can show.
pub const WIDTH: usize = 80;

/// Truncates lines to the width of a terminal and marks them: for tables whose last column is a text that other commands show
/// in full.
pub fn narrow(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(WIDTH) {
        Some(_) => line
            .chars()
            .take(WIDTH - 3)
            .chain("...\n".chars())
            .collect(),
        None => format!("{line}\n"),
    };
    text.lines().map(cut).collect()
}

/// Splits a text between words into lines of at most `width` characters.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let at = lines.len() - 1;
        let line = &mut lines[at];
        if line.is_empty() {
            *line += word;
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            *line += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The value, or `-` for none.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_string(), |v| v.to_string())
}

/// A rate with three digits and a unit: `1.04e7` becomes `10.4M`.
pub fn rate(n: f64) -> String {
    let (n, unit) = match n {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e3 => (n / 1e3, "k"),
        n => (n, ""),
    };
    match n {
        n if n >= 100.0 => format!("{n:.0}{unit}"),
        n if n >= 10.0 => format!("{n:.1}{unit}"),
        n => format!("{n:.2}{unit}"),
    }
}

/// Bytes with a binary unit.
pub fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 30 => format!("{:.1} GiB", n as f64 / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.1} MiB", n as f64 / (1u64 << 20) as f64),
        n if n >= 1 << 10 => format!("{:.1} KiB", n as f64 / 1024.0),
        n => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_any_length_are_shown() {
        let long = "x".repeat(1 << 20);
        let rows = vec![
            vec![long.clone(), "1".into()],
            vec!["a".into(), "22".into()],
        ];
        let out = table(&["name", ">n"], &rows);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1], format!("{long}   1"));
        assert_eq!(lines[2].len(), WIDEST + 4);
    }
}
