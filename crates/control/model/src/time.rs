//! Timestamps in the format of RFC 3339.

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use toml_datetime::Datetime;

/// A point in time: microseconds since 1970, UTC. Written as RFC 3339, such as `2026-11-22T04:17:32.000250Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400;

/// Year, month and day of a day number counted from 1970-01-01.
fn date(day: u64) -> (u64, u64, u64) {
    // Years begin in March of year 0 here, so that the leap day is the last day of a year.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// The day number of a date, counted from 1970-01-01.
fn day_of(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let leaps = year / 4 - year / 100 + year / 400;
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

impl Timestamp {
    /// The current time of the system clock.
    pub fn now() -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(now.unwrap_or_default().as_micros() as u64)
    }

    /// The time of a second since 1970.
    pub fn of_seconds(seconds: u64) -> Timestamp {
        Timestamp(seconds.saturating_mul(SECOND))
    }

    /// The time of day: `04:17:32.123456`, in UTC.
    pub fn time_of_day(self) -> String {
        self.to_string().get(11..26).unwrap_or_default().to_owned()
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> u64 {
        self.0 / SECOND
    }

    /// Date and time for users: `2026-11-22 04:17:32 UTC`.
    pub fn date_and_time(self) -> String {
        let text = self.to_string();
        format!("{} {} UTC", &text[..10], &text[11..19])
    }

    /// Parses the output of `Display`.
    fn read(text: &str) -> Option<Timestamp> {
        let read: Datetime = text.parse().ok()?;
        let (date, time) = (read.date.filter(|date| date.year >= 1970)?, read.time?);
        let day = day_of(date.year.into(), date.month.into(), date.day.into());
        let [hour, minute, second] = [time.hour, time.minute, time.second].map(u64::from);
        let seconds = day * DAY + hour * 3600 + minute * 60 + second;
        let read = Timestamp(seconds * SECOND + u64::from(time.nanosecond) / 1000);
        // There are other notations of a time.
        (read.to_string() == text).then_some(read)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / SECOND, self.0 % SECOND);
        let (year, month, day) = date(seconds / DAY);
        let rest = seconds % DAY;
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let wanted = &"a time such as 2026-11-22T04:17:32.000250Z";
        Timestamp::read(&text)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), wanted))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A point in time, UTC, with microseconds (RFC 3339).",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_and_read_back() {
        let time = Timestamp(3 * 3600 * SECOND + 5);
        assert_eq!(time.time_of_day(), "03:00:00.000005");
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_795_321_052_000_250, "2026-11-22T04:17:32.000250Z"),
            (1_767_225_599_999_999, "2025-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp(micros).to_string(), text);
            let quoted = format!("\"{text}\"");
            assert_eq!(serde_json::to_string(&Timestamp(micros)).unwrap(), quoted);
            let read: Timestamp = serde_json::from_str(&quoted).unwrap();
            assert_eq!(read, Timestamp(micros));
        }
        let time = Timestamp::of_seconds(1_795_321_052);
        assert_eq!(time.date_and_time(), "2026-11-22 04:17:32 UTC");
        for bad in [
            "\"\"",
            "\"2026-11-22\"",
            "\"2026-13-22T04:17:32.000250Z\"",
            "\"2026-11-22T04:17:32.00025éZ\"",
            "\"2026-11-22T04:17:32.+00250Z\"",
            "7",
        ] {
            assert!(serde_json::from_str::<Timestamp>(bad).is_err(), "{bad}");
        }
    }
}
