//! Answers to `config ...`.

use super::table::table;
use std::fmt::Write;
use volley_model::{CommitRow, ConfigReply};

/// As text.
pub(crate) fn text(reply: &ConfigReply) -> String {
    match reply {
        ConfigReply::Checked { objects } => format!("fine, {objects} objects\n"),
        ConfigReply::Text { text } => text.clone(),
        ConfigReply::Difference { lines } if lines.is_empty() => "no difference\n".into(),
        ConfigReply::Difference { lines } => lines.iter().map(|l| format!("{l}\n")).collect(),
        ConfigReply::Committed(c) => {
            let mut out = format!("commit {}: {} steps\n", c.number, c.steps);
            if let Some(by) = c.confirm_by {
                let _ = writeln!(
                    out,
                    "it is taken back at {} unless `config confirm` comes before",
                    time(by)
                );
            }
            c.notes.iter().for_each(|n| _ = writeln!(out, "{n}"));
            out
        }
        ConfigReply::Confirmed { number } => format!("commit {number} is kept\n"),
        ConfigReply::History { commits } if commits.is_empty() => "no commits yet\n".into(),
        ConfigReply::History { commits } => history(commits),
    }
}

fn history(commits: &[CommitRow]) -> String {
    let row = |row: &CommitRow| {
        let state = match (row.current, row.confirm_by) {
            (true, Some(by)) => format!("waits until {}", time(by)),
            (true, None) => "holds".into(),
            _ => String::new(),
        };
        vec![
            row.number.to_string(),
            time(row.time_s),
            row.requests.to_string(),
            state,
            row.comment.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = commits.iter().map(row).collect();
    table(&[">commit", "time", ">requests", "state", "comment"], &rows)
}

/// Seconds since 1970 as date and time in UTC.
fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from the first of March of year 0, so that the leap day is the last of its year.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(time(1_795_321_052), "2026-11-22 04:17:32 UTC");
    }
}
