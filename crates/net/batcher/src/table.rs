//! State that workers read: parser program, matcher, queues, published as one value.

use crate::matcher::{Matcher, NONE, Test};
use crate::model::{
    BatcherSettings, Literal, PathHeader, PathMatch, PathQueue, PathRule, PathTest,
};
use crate::parser::{Features, Program, WantError, Wanted};
use volley_model::{ModelError, ObjectKind};

/// Largest number of queues, the default queue included.
pub(crate) const QUEUES: usize = 64;
/// Largest number of rules.
pub(crate) const RULES: usize = 1024;
/// Largest number of headers that an operator may define.
pub(crate) const OWN_HEADERS: usize = 32;
/// The name of a queue in sentences.
pub(crate) fn queue_named(id: u32) -> String {
    format!("path-batcher queue {id}")
}

/// Number of counters: one for each rule, then one for each learned path.
pub(crate) const RULE_COUNTERS: usize = RULES + QUEUES;
/// Largest number of extra fields that distinguish learned paths.
pub(crate) const LEARN_FIELDS: usize = 4;

/// Settings of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePlan {
    pub(crate) batch: usize,
    pub(crate) timeout_ns: u64,
    pub(crate) weight: u32,
    /// Full batches that a turn waits for.
    pub(crate) gather: usize,
}

/// A rule's queue and counter, by rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) queue: u32,
    pub(crate) counter: u32,
}

/// A learned path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LearnedPath {
    pub(crate) path: u64,
    pub(crate) seen: u64,
    pub(crate) values: [u128; LEARN_FIELDS],
}

/// The published value.
pub(crate) struct Table {
    pub(crate) version: u64,
    pub(crate) program: Program,
    pub(crate) matcher: Matcher,
    pub(crate) targets: Vec<Target>,
    pub(crate) queues: [QueuePlan; QUEUES],
    /// Strict queues in order of priority.
    pub(crate) strict: Vec<u8>,
    pub(crate) strict_mask: u64,
    /// All packets are released at once: an interface is being disabled, and its packets must not overtake.
    pub(crate) pass: bool,
    /// One of so many packets that match no rule is sampled; 0 = none.
    pub(crate) sample: u32,
    /// Fields that distinguish learned paths.
    pub(crate) learn: Vec<Wanted>,
    /// Ranks from here on are learned paths.
    pub(crate) learned_from: u32,
}

/// Configuration by the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassLimits {
    pub(crate) defaults: BatcherSettings,
    pub(crate) headers: Vec<PathHeader>,
    pub(crate) queues: Vec<PathQueue>,
    /// Rules, each with the number of its counter.
    pub(crate) rules: Vec<(PathRule, u32)>,
}

/// State of the batcher besides the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situation {
    pub(crate) version: u64,
    pub(crate) pass: bool,
    pub(crate) learned: Vec<(LearnedPath, u32)>,
}

fn invalid(what: impl Into<String>, why: impl std::fmt::Display) -> ModelError {
    ModelError::invalid(what.into(), why)
}

impl Table {
    /// Queue and counter for a packet's rank.
    #[inline(always)]
    pub(crate) fn target(&self, rank: u32) -> Target {
        let none = Target {
            queue: 0,
            counter: NONE,
        };
        self.targets.get(rank as usize).copied().unwrap_or(none)
    }

    /// The signature of a packet that was parsed to its end.
    pub(crate) fn signature(&self, of: &Features) -> LearnedPath {
        let mut values = [0; LEARN_FIELDS];
        let mut seen = 0;
        for (value, wanted) in values.iter_mut().zip(&self.learn) {
            seen |= of.seen & wanted.bit;
            if let (Some((slot, _)), true) = (wanted.field, of.seen & wanted.bit != 0) {
                *value = of.values[slot as usize];
            }
        }
        LearnedPath {
            path: of.path,
            seen,
            values,
        }
    }

    /// Compiles the table for workers; an error is one sentence.
    pub(crate) fn new(wishes: &ClassLimits, now: &Situation) -> Result<Table, ModelError> {
        let mut program = Program::new(&wishes.headers);
        let mut rules: Vec<&(PathRule, u32)> = wishes.rules.iter().collect();
        rules.sort_by(|(a, _), (b, _)| (b.priority, &a.name).cmp(&(a.priority, &b.name)));
        contradictions(&rules)?;
        let (mut tests, mut targets) = (Vec::new(), Vec::new());
        for (rule, counter) in &rules {
            if rule.queue != 0 && !wishes.queues.iter().any(|q| q.id == rule.queue) {
                let known = wishes.queues.iter().map(|q| q.id.to_string());
                return Err(ModelError::not_found(
                    ObjectKind::Object,
                    queue_named(rule.queue),
                    known.collect::<Vec<_>>(),
                ));
            }
            tests.push(test(&mut program, rule)?);
            targets.push(Target {
                queue: rule.queue,
                counter: *counter,
            });
        }
        let learned_from = tests.len() as u32;
        let mut learn = Vec::new();
        for field in wishes
            .defaults
            .learning()
            .into_iter()
            .flat_map(|l| &l.learn_field)
        {
            let what = format!("learn-field {field}");
            learn.push(program.want(field).map_err(|e| explain(&what, field, e))?);
        }
        for (learned, queue) in &now.learned {
            tests.push(learned_test(learned, &learn));
            targets.push(Target {
                queue: *queue,
                counter: (RULES as u32) + queue,
            });
        }
        program.whole = tests.iter().any(|t| t.path.is_some());
        program.finish();
        let strict = strict(&wishes.queues);
        Ok(Table {
            version: now.version,
            program,
            matcher: Matcher::new(tests),
            targets,
            queues: plans(wishes),
            strict_mask: strict.iter().fold(0, |all, q| all | 1 << q),
            strict,
            pass: now.pass,
            sample: wishes.defaults.learning().map_or(0, |l| l.learn_sample),
            learn,
            learned_from,
        })
    }
}

fn plans(wishes: &ClassLimits) -> [QueuePlan; QUEUES] {
    let usual = &wishes.defaults;
    std::array::from_fn(|id| {
        let own = wishes.queues.iter().find(|q| q.id as usize == id);
        let batch = own.and_then(|q| q.batch).unwrap_or(usual.batch);
        let timeout_us = own.and_then(|q| q.timeout).unwrap_or(usual.timeout);
        QueuePlan {
            batch: batch as usize,
            timeout_ns: u64::from(timeout_us) * 1000,
            weight: own.and_then(|q| q.weight).unwrap_or(1),
            gather: own.and_then(|q| q.gather).unwrap_or(usual.gather) as usize,
        }
    })
}

fn strict(queues: &[PathQueue]) -> Vec<u8> {
    let mut strict: Vec<_> = queues
        .iter()
        .filter_map(|q| Some((q.strict?, q.id as u8)))
        .collect();
    strict.sort_unstable();
    strict.into_iter().map(|(_, id)| id).collect()
}

/// Refuses two rules with the same tests: the later one could never match, or their queues conflict.
fn contradictions(rules: &[&(PathRule, u32)]) -> Result<(), ModelError> {
    let mut known = std::collections::HashMap::new();
    for (rule, _) in rules {
        if let Some(other) = known.insert(rule.sorted(), &rule.name) {
            let why =
                format!("rule {other} matches the same packets: change or delete one of them");
            return Err(invalid(format!("path-batcher rule {}", rule.name), why));
        }
    }
    Ok(())
}

fn explain(what: &str, name: &str, error: WantError) -> ModelError {
    match error {
        WantError::NoHeader(known) => {
            let header = name.split(['.', '@']).next().unwrap_or(name);
            let why = format!(
                "there is no header {header}; there are: {}",
                known.join(", ")
            );
            invalid(what, why)
        }
        WantError::NoField(known) => {
            let (header, field) = name.split_once('.').unwrap_or((name, ""));
            let why = format!(
                "{header} has no field {field}; it has: {}",
                known.join(", ")
            );
            invalid(what, why)
        }
        WantError::TooMany => {
            let most = crate::parser::SLOTS;
            invalid(
                what,
                format!("all rules together may name {most} different fields: use fewer"),
            )
        }
    }
}

fn test(program: &mut Program, rule: &PathRule) -> Result<Test, ModelError> {
    let mut test = Test::default();
    for one in &rule.r#match {
        let what = format!("match {one} of path-batcher rule {}", rule.name);
        if let PathTest::Path(headers) = &one.test {
            let mut path = 0;
            for (at, header) in headers.iter().enumerate() {
                let number = program
                    .number(header)
                    .ok_or_else(|| invalid(what.clone(), format!("there is no header {header}")))?;
                path |= u64::from(number) << (8 * at);
            }
            if test.path.is_some_and(|p| p != path) {
                return Err(invalid(
                    what,
                    "another match of the rule names another path: no packet has both",
                ));
            }
            test.path = Some(path);
            continue;
        }
        let wanted = program
            .want(&one.field)
            .map_err(|e| explain(&what, &one.field, e))?;
        test.need |= wanted.bit;
        if let Some(field) = wanted.field {
            narrow(&mut test, field, one).map_err(|why| invalid(what, why))?;
        }
    }
    test.masked.sort_unstable();
    Ok(test)
}

/// Adds a test of a field.
fn narrow(test: &mut Test, (slot, bits): (u8, u8), one: &PathMatch) -> Result<(), String> {
    let full = if bits >= 128 {
        u128::MAX
    } else {
        (1 << bits) - 1
    };
    let fits = |value: Literal| {
        let family = match value {
            Literal::Number(_) => true,
            Literal::Ip4(_) => bits == 32,
            Literal::Ip6(_) => bits == 128,
            Literal::Mac(_) => bits == 48,
        };
        let fits = family && value.bits() <= full;
        fits.then(|| value.bits())
            .ok_or_else(|| format!("{value} is no value of this field, which has {bits} bits"))
    };
    let (mask, value) = match &one.test {
        PathTest::Present | PathTest::Path(_) => return Ok(()),
        PathTest::Is(value) => (full, fits(*value)?),
        PathTest::Prefix(value, length) => {
            let length = u32::from(*length);
            if length > u32::from(bits) {
                return Err(format!("the field has {bits} bits only"));
            }
            let mask = full & !(full.checked_shr(length).unwrap_or(0));
            (mask, fits(*value)? & mask)
        }
        PathTest::Mask(value, mask) => (mask & full, fits(*value)? & mask),
        PathTest::Range(low, high) => {
            test.ranges.push((slot, fits(*low)?, fits(*high)?));
            return Ok(());
        }
    };
    match test.masked.iter_mut().find(|m| m.0 == slot) {
        None => test.masked.push((slot, mask, value)),
        Some(known) => {
            let both = known.1 & mask;
            if known.2 & both != value & both {
                return Err(
                    "another match of the rule wants another value: no packet has both".into(),
                );
            }
            (known.1, known.2) = (known.1 | mask, known.2 | value);
        }
    }
    Ok(())
}

fn learned_test(learned: &LearnedPath, learn: &[Wanted]) -> Test {
    let mut test = Test {
        need: learned.seen,
        path: Some(learned.path),
        ..Test::default()
    };
    for (wanted, value) in learn.iter().zip(learned.values) {
        if let (Some((slot, bits)), true) = (wanted.field, learned.seen & wanted.bit != 0) {
            let full = if bits >= 128 {
                u128::MAX
            } else {
                (1 << bits) - 1
            };
            test.masked.push((slot, full, value));
        }
    }
    test.masked.sort_unstable();
    test.masked.dedup();
    test
}
