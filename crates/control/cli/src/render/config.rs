//! Answers to `config ...`.

use std::fmt::Write;
use volley_model::{CommitRow, ConfigReply, Timestamp, escape};
use volley_show::{or_dash, table};

/// The answer as text.
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
                    "the commit is rolled back at {} unless `config confirm` is entered before",
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
        let state = match (row.current, row.confirm_by, row.lapsed_s) {
            (true, Some(by), _) => format!("waits until {}", time(by)),
            (true, None, _) => "holds".into(),
            (false, _, Some(at)) => format!("not confirmed, rolled back {}", time(at)),
            _ => String::new(),
        };
        let comment = row.comment.as_deref().unwrap_or_default();
        let user = row.user.as_deref().map(escape);
        // The metadata of a damaged file are unknown.
        let when = row.fault.is_none().then(|| time(row.time_s));
        let comment = row.fault.as_deref().unwrap_or(comment);
        vec![
            row.number.to_string(),
            or_dash(when),
            or_dash(user),
            or_dash(row.how),
            row.requests.to_string(),
            state,
            escape(comment).into_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = commits.iter().map(row).collect();
    table(
        &[
            ">commit",
            "time",
            "user",
            "how",
            ">requests",
            "state",
            "comment",
        ],
        &rows,
    )
}

fn time(seconds: u64) -> String {
    Timestamp::of_seconds(seconds).date_and_time()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_model::CommitHow;

    #[test]
    fn history_names_who_how_and_when_and_forges_no_row() {
        let row = |number, comment: &str| CommitRow {
            number,
            time_s: 1_795_321_052,
            comment: Some(comment.to_owned()),
            ..CommitRow::default()
        };
        let commits = vec![
            CommitRow {
                user: Some("ada".into()),
                how: Some(CommitHow::Rollback),
                current: true,
                ..row(3, "x\n4 \x1b[2Jforged")
            },
            CommitRow {
                user: Some("token ops".into()),
                how: Some(CommitHow::Operator),
                lapsed_s: Some(1_795_321_112),
                ..row(2, "risky")
            },
            row(1, "of an older version"),
        ];
        let out = text(&ConfigReply::History { commits });
        let lines: Vec<Vec<&str>> = out
            .lines()
            .map(|l| {
                l.split("  ")
                    .map(str::trim)
                    .filter(|w| !w.is_empty())
                    .collect()
            })
            .collect();
        let at = "2026-11-22 04:17:32 UTC";
        assert_eq!(
            lines[1..],
            [
                vec![
                    "3",
                    at,
                    "ada",
                    "rollback",
                    "0",
                    "holds",
                    "x\\n4 \\u{1b}[2Jforged"
                ],
                vec![
                    "2",
                    at,
                    "token ops",
                    "operator",
                    "0",
                    "not confirmed, rolled back 2026-11-22 04:18:32 UTC",
                    "risky"
                ],
                vec!["1", at, "-", "-", "0", "of an older version"],
            ]
        );
    }
}
