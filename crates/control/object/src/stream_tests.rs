//! Queries whose reply comes in items: parts, the whole reply, and refused queries.

use crate::{
    FieldError, Parameters as _, Progress, Query, QueryDef, ReplyPart, Run, Value, View, classes,
    define, refuse, running, undefine, whole_run,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Strokes of a clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
struct Strokes {
    /// Number of strokes so far.
    all: u32,
    /// The strokes.
    strokes: Vec<u32>,
    /// Recorded sound.
    #[serde(skip)]
    sound: Vec<u8>,
}

/// Listen to a clock.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "test-clock",
    show = "listen test-clock <hour> [sound@sound=on]",
    operate
)]
#[query(example = "listen test-clock 3", reply = Strokes)]
#[query(stream(
    items = strokes,
    head = head,
    line = line,
    end = end,
    failure = failure,
    whole = Listen::whole,
    bytes = sound,
    reader = "play -"
))]
struct Listen {
    /// Hour of the clock.
    hour: u32,
    /// Recorded sound in place of text.
    #[query(default = false)]
    sound: bool,
}

impl Listen {
    fn whole(&self) -> Result<(), FieldError> {
        match self.hour {
            12 => refuse("hour", "must be another one: the clock does not end"),
            hour => whole_run("hour", hour, u64::from(hour) * 10_000),
        }
    }
}

/// Look at a clock.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "test-look", show = "look test-clock", reply = Strokes)]
#[query(stream(items = strokes, line = line, end = end, live))]
struct Look;

fn head(_: &Strokes) -> String {
    "the clock\n".to_owned()
}

fn line(number: usize, stroke: &u32) -> String {
    format!("{number}: stroke {stroke}\n")
}

fn end(strokes: &Strokes) -> String {
    format!("{} strokes\n", strokes.all)
}

fn failure(strokes: &Strokes) -> Option<String> {
    (strokes.all == 0).then(|| "the clock does not strike".to_owned())
}

/// Two strokes at each call, until the number of strokes is the hour.
struct Clock {
    hour: u32,
    reported: u32,
    stopped: bool,
}

impl Clock {
    fn of(hour: u32) -> Clock {
        let (reported, stopped) = (0, false);
        Clock {
            hour,
            reported,
            stopped,
        }
    }
}

impl Run for Clock {
    type Reply = Strokes;

    fn take(&mut self) -> Progress<Strokes> {
        let first = self.reported + 1;
        self.reported = (self.reported + 2).min(self.hour);
        let reply = Strokes {
            all: self.reported,
            strokes: (first..=self.reported).collect(),
            sound: vec![self.reported as u8],
        };
        let is_over = self.stopped || self.reported == self.hour;
        Progress { reply, is_over }
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

#[test]
fn a_reply_comes_in_parts_with_head_and_end() {
    let mut run = running::<Listen>(Clock::of(3));
    let first = run.part();
    assert_eq!(first.text, "the clock\n0: stroke 1\n1: stroke 2\n");
    assert_eq!((first.bytes, first.is_last), (vec![2], false));
    let last = ReplyPart {
        text: "2: stroke 3\n3 strokes\n".to_owned(),
        bytes: vec![3],
        is_last: true,
        failure: None,
    };
    assert_eq!(run.part(), last);
    // A run that was stopped ends with the strokes so far; a run without a stroke has failed.
    let mut run = running::<Listen>(Clock::of(9));
    run.part();
    run.stop();
    let last = run.part();
    assert_eq!(last.text, "2: stroke 3\n3: stroke 4\n4 strokes\n");
    assert!(last.is_last && last.failure.is_none());
    let silent = running::<Listen>(Clock::of(0)).part();
    assert_eq!(silent.failure.unwrap(), "the clock does not strike");
    assert!(ReplyPart::default().is_empty());
}

#[test]
fn a_whole_reply_is_what_its_parts_are() {
    let mut run = running::<Listen>(Clock::of(3));
    assert!(run.whole().unwrap().is_none());
    let whole = run.whole().unwrap().unwrap();
    assert_eq!(whole.json()["strokes"], serde_json::json!([1, 2, 3]));
    assert_eq!(whole.failure(), None);
    let mut parts = running::<Listen>(Clock::of(3));
    let parts = parts.part().text + &parts.part().text;
    assert_eq!(whole.text(View::Table), parts);
    let silent = running::<Listen>(Clock::of(0)).whole().unwrap();
    assert!(silent.unwrap().failure().is_some());
}

#[test]
fn who_waits_for_the_end_gets_one() {
    let listen = Listen::query().unwrap();
    let check = |hour| {
        let asked = Listen { hour, sound: false }.asked().unwrap();
        assert!(asked.is_stream());
        asked.check_whole().map_err(|e| e.to_string())
    };
    assert_eq!(check(5), Ok(()));
    for (hour, why) in [
        (12, "hour must be another one: the clock does not end"),
        (
            7,
            "hour makes a run of 70 s, and 60 s is the most: choose fewer requests, or less time for each",
        ),
        (
            0,
            "hour must be a number from 1 to 100, not '0', where the answer comes as a whole",
        ),
    ] {
        assert_eq!(check(hour), Err(why.to_owned()));
    }
    let reader = |sound| Listen { hour: 1, sound }.asked().unwrap().reader();
    assert_eq!((reader(true), reader(false)), (Some("play -"), None));
    let look = Look::query().unwrap();
    assert!(!look.has_whole() && listen.has_whole());
    let error = Look.asked().unwrap().check_whole().unwrap_err();
    assert!(
        error.to_string().contains("volley ctl test-look ..."),
        "{error}"
    );
}

#[test]
fn a_parameter_that_selects_bytes_is_on_or_off() {
    let mut def = Listen::definition();
    def.class.name = "test-deaf";
    for (parameter, why) in [("hour", "on or off"), ("volume", "on or off")] {
        def.stream.as_mut().unwrap().bytes = Some((parameter, "play -"));
        let error = define(def.clone()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    def.stream.as_mut().unwrap().bytes = Some(("sound", "play -"));
    define(def).unwrap();
    let known = classes();
    let deaf = known.query("test-deaf").unwrap();
    let asked = deaf.call(vec![Some(Value::Number(1))]).unwrap();
    assert!(asked.reader().is_none());
    undefine::<QueryDef>("test-deaf").unwrap();
}
