//! `show log` as text.

use crate::model::LogReply;
use volley_model::escape;

pub(crate) fn log(reply: &LogReply) -> String {
    let mut out: String = reply.records.iter().map(|r| format!("{r}\n")).collect();
    if reply.records.is_empty() {
        out += &format!("no such records; levels {}\n", reply.levels);
    }
    if reply.suppressed > 0 {
        out += &format!(
            "{} records were suppressed since start: too many alike came at once\n",
            reply.suppressed
        );
    }
    if reply.dropped > 0 {
        out += &format!(
            "{} records were not written to {} since start: it did not keep up\n",
            reply.dropped, reply.destination
        );
    }
    if reply.failed > 0 {
        let now = match &reply.fault {
            Some(fault) => format!(", the last one too: {}", escape(fault)),
            None => ", but it takes them again".to_owned(),
        };
        out += &format!(
            "{} records were refused by {} since start{now}\n",
            reply.failed, reply.destination
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LogLevel, LogRecord};
    use volley_model::Timestamp;

    #[test]
    fn records_come_with_what_is_missing() {
        let record = LogRecord {
            sequence: 9,
            time: Timestamp(1_795_321_052_000_250),
            level: LogLevel::Info,
            module: "interface".into(),
            message: "link up".into(),
            fields: [("interface".to_owned(), "tap0".to_owned())].into(),
        };
        let mut reply = LogReply {
            records: vec![record],
            levels: "info".into(),
            destination: "file /var/log/v".into(),
            ..LogReply::default()
        };
        let line = "2026-11-22T04:17:32.000250Z info  interface: link up interface=tap0\n";
        assert_eq!(log(&reply), line);
        (reply.suppressed, reply.dropped, reply.failed) = (1, 2, 3);
        reply.fault = Some("No space left\x1b".into());
        assert_eq!(
            log(&reply),
            format!(
                "{line}1 records were suppressed since start: too many alike came at once\n\
                 2 records were not written to file /var/log/v since start: it did not keep up\n\
                 3 records were refused by file /var/log/v since start, the last one too: No space left\\u{{1b}}\n"
            )
        );
        assert_eq!(
            log(&LogReply {
                levels: "info".into(),
                ..LogReply::default()
            }),
            "no such records; levels info\n"
        );
    }
}
