//! Objects of the sample. A test makes other versions of the file by another last digit of `MARK`.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use volley_sdk::prelude::*;

/// The version: 1, or 2 with one more field, or 3 with a smaller range and without the class of the ink.
static MARK: [u8; 16] = *b"sample version 1";

/// Ink of the stamp.
#[derive(Clone, Debug, Object)]
#[object(class = "stamp_ink", file = "[stamp_ink]")]
#[object(set = "set stamp-ink {fields}", example = "set stamp-ink level 70")]
struct Ink {
    /// Level of the ink.
    #[object(default = 50, range = 1..=100, unit = "percent")]
    level: u32,
}

/// Colour of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
enum Color {
    /// The usual one.
    Black,
    /// For warnings.
    Red,
}

/// Stamp rule: which packets of an interface are stamped.
#[derive(Clone, Debug, Object)]
#[object(class = "stamp_rule", file = "[stamp_rule.*]", check = Rule::check)]
#[object(
    set = "set stamp-rule <name> {fields}",
    unset = "delete stamp-rule <name>"
)]
#[object(example = "set stamp-rule a interface pg0 limit 70")]
struct Rule {
    /// Name of the rule.
    #[object(key, example = "a")]
    name: String,
    /// Interface whose packets are stamped.
    #[object(needs = "interface")]
    interface: String,
    /// Limit of stamps.
    #[object(default = 5, range = 1..=100)]
    limit: u32,
    /// Colour.
    #[object(default = Color::Black)]
    color: Color,
}

impl Rule {
    fn check(&self) -> Result<(), FieldError> {
        match self.limit {
            13 => refuse("limit", "must not be 13: it is unlucky"),
            _ => Ok(()),
        }
    }
}

mod second {
    use super::Color;
    use volley_sdk::prelude::*;

    /// Stamp rule: which packets of an interface are stamped.
    #[derive(Clone, Debug, Object)]
    #[object(class = "stamp_rule", file = "[stamp_rule.*]")]
    #[object(
        set = "set stamp-rule <name> {fields}",
        unset = "delete stamp-rule <name>"
    )]
    #[object(example = "set stamp-rule a interface pg0 strict on")]
    pub(super) struct Rule {
        /// Name of the rule.
        #[object(key, example = "a")]
        pub(super) name: String,
        /// Interface whose packets are stamped.
        #[object(needs = "interface")]
        pub(super) interface: String,
        /// Limit of stamps.
        #[object(default = 5, range = 1..=100)]
        pub(super) limit: u32,
        /// Colour.
        #[object(default = Color::Black)]
        pub(super) color: Color,
        /// Stamp packets of other interfaces never.
        #[object(default = false)]
        pub(super) strict: bool,
    }
}

mod third {
    use volley_sdk::prelude::*;

    /// Stamp rule: which packets of an interface are stamped.
    #[derive(Clone, Debug, Object)]
    #[object(class = "stamp_rule", file = "[stamp_rule.*]")]
    #[object(
        set = "set stamp-rule <name> {fields}",
        unset = "delete stamp-rule <name>"
    )]
    #[object(example = "set stamp-rule a interface pg0 limit 7")]
    pub(super) struct Rule {
        /// Name of the rule.
        #[object(key, example = "a")]
        pub(super) name: String,
        /// Interface whose packets are stamped.
        #[object(needs = "interface")]
        pub(super) interface: String,
        /// Limit of stamps.
        #[object(default = 5, range = 1..=10)]
        pub(super) limit: u32,
    }
}

/// What the objects say. The rule `probe` is refused with it as the reason.
#[derive(Default)]
struct Known {
    ink: u32,
    rules: Vec<String>,
}

impl Known {
    fn take(&mut self, key: &ObjectKey, rule: Option<String>) -> Result<(), String> {
        let name = key.name();
        if name == "probe" {
            return Err(format!("ink {}, rules {}", self.ink, self.rules.join("; ")));
        }
        self.rules
            .retain(|rule| !rule.starts_with(&format!("{name} ")));
        self.rules.extend(rule);
        self.rules.sort();
        Ok(())
    }
}

/// The digit of the version.
pub(crate) fn version() -> u8 {
    black_box(&MARK)[15]
}

/// Registers the classes of the version.
pub(crate) fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
    let version = version();
    let known = Rc::new(RefCell::new(Known::default()));
    let (ink, rules) = (known.clone(), known);
    if version < b'3' {
        plugin.settings(move |it: Ink| ink.borrow_mut().ink = it.level)?;
    }
    match version {
        b'1' => plugin.object(move |key, rule: Option<Rule>| {
            assert!(
                rule.as_ref().is_none_or(|it| it.limit != 14),
                "it is too much"
            );
            let text =
                rule.map(|it| format!("{} {} {} {}", it.name, it.interface, it.limit, it.color));
            rules.borrow_mut().take(key, text)
        })?,
        b'2' => plugin.object(move |key, rule: Option<second::Rule>| {
            let text = rule.map(|it| {
                let second::Rule {
                    name,
                    interface,
                    limit,
                    color,
                    strict,
                } = it;
                format!("{name} {interface} {limit} {color} {strict}")
            });
            rules.borrow_mut().take(key, text)
        })?,
        _ => plugin.object(move |key, rule: Option<third::Rule>| {
            let text = rule.map(|it| format!("{} {} {}", it.name, it.interface, it.limit));
            rules.borrow_mut().take(key, text)
        })?,
    };
    Ok(())
}
