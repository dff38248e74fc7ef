//! One pattern for a command: the command line reads objects by it, and an object is spelled by it.
//!
//! | written | read | spelled |
//! |---|---|---|
//! | `word`, `word~tail` | the word, or with its tail | the word |
//! | `word@field=value` | the word; the field has this value | the word, when the field has this value |
//! | `word@v4`, `word@v6` | the word | the word, when the object is of this IP version |
//! | `<field>` | a value of the field | the value |
//! | `<+class>` | a value of a setting of this class that an interface is created with | not at all: see `InterfaceSpec` |
//! | `[x]` | perhaps x | x, when it says something that is not default |
//! | `(a \| b)` | one of them | the first that can say it |
//! | `{a \| b}` | any number of them | those that say something that is not default; an option that a later `{...}` has as well, there |
//! | `<list>` | one element, or several numbers or choices with commas between; a list of texts is in `{...}` | the same |
//! | `{fields}` | `{a <a> \| b <b> ...}` of all fields that the pattern does not name | |
//!
//! A pattern spells an object only when it says every field that is not at its default.

use crate::class::FieldDef;
use crate::instance::Instance;
use crate::kind::{Kind, Shape};
use crate::value::{Value, quote};
use std::collections::{BTreeMap, BTreeSet};

/// A pattern.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A word.
    Word(Word),
    /// A value of a field.
    Field(usize),
    /// A value of a setting of this class.
    Setting(String),
    /// One after the other.
    Seq(Vec<Pattern>),
    /// One of these.
    OneOf(Vec<Pattern>),
    /// This or nothing.
    Optional(Box<Pattern>),
    /// Any number of these.
    Many(Vec<Pattern>),
}

/// A word of a command.
#[derive(Clone, Debug)]
pub struct Word {
    /// The word.
    pub text: String,
    /// What a second spelling has behind it.
    pub tail: String,
    /// The field that the word gives a value, and the value.
    pub gives: Option<(usize, Value)>,
    /// The IP version of the objects that are spelled with the word; none = any.
    pub version: Option<u8>,
}

type Parts<'t> = std::iter::Peekable<std::vec::IntoIter<&'t str>>;

impl Pattern {
    /// Reads a pattern over fields. An error is one sentence.
    pub(crate) fn read(text: &str, fields: &[FieldDef]) -> Result<Pattern, String> {
        let wrong = |why: String| format!("pattern '{text}': {why}");
        let mut parts = split(text).into_iter().peekable();
        let pattern = one_of(&mut parts, fields).map_err(&wrong)?;
        if let Some(left) = parts.next() {
            return Err(wrong(format!("'{left}' closes nothing")));
        }
        let mut named = BTreeSet::new();
        pattern.fields(&mut named);
        let pattern = pattern.filled(fields, &named);
        pattern.check_words().map_err(&wrong)?;
        Ok(pattern)
    }

    /// The patterns that it is made of.
    fn inner(&self) -> &[Pattern] {
        match self {
            Pattern::Seq(all) | Pattern::OneOf(all) | Pattern::Many(all) => all,
            Pattern::Optional(inner) => std::slice::from_ref(inner),
            Pattern::Word(_) | Pattern::Field(_) | Pattern::Setting(_) => &[],
        }
    }

    /// Tells itself and all patterns inside, in their order.
    fn all<'p>(&'p self, tell: &mut dyn FnMut(&'p Pattern)) {
        tell(self);
        self.inner().iter().for_each(|it| it.all(tell));
    }

    /// Its words, in their order.
    fn words(&self) -> Vec<&Word> {
        let mut words = Vec::new();
        self.all(&mut |it| {
            if let Pattern::Word(word) = it {
                words.push(word);
            }
        });
        words
    }

    /// Every word has one meaning in a pattern, wherever it is.
    fn check_words(&self) -> Result<(), String> {
        let mut given = BTreeMap::new();
        for word in self.words() {
            let other = given.insert(&word.text, &word.gives);
            if other.is_some_and(|other| *other != word.gives) {
                return Err(format!("the word '{}' has two meanings", word.text));
            }
        }
        Ok(())
    }

    /// The fields that a pattern names.
    pub fn fields(&self, named: &mut BTreeSet<usize>) {
        self.all(&mut |it| match it {
            Pattern::Word(word) => named.extend(word.gives.as_ref().map(|it| it.0)),
            Pattern::Field(at) => _ = named.insert(*at),
            _ => {}
        });
    }

    /// Whether it takes a setting of a class.
    pub(crate) fn names_setting(&self, class: &str) -> bool {
        let mut found = false;
        self.all(&mut |it| found |= matches!(it, Pattern::Setting(setting) if setting == class));
        found
    }

    /// Whether any number of options may be here, and the same ones in a later place.
    fn is_in_later(&self, later: &[Pattern]) -> bool {
        let named = |pattern: &Pattern| {
            let mut named = BTreeSet::new();
            pattern.fields(&mut named);
            named
        };
        let is_many = |pattern: &&Pattern| matches!(pattern, Pattern::Many(_));
        let mut later = later.iter().filter(is_many).map(named);
        let own = named(self);
        is_many(&self) && !own.is_empty() && later.any(|later| own.is_subset(&later))
    }

    fn names(&self, field: usize) -> bool {
        let mut named = BTreeSet::new();
        self.fields(&mut named);
        named.contains(&field)
    }

    /// Puts the fields that are not named in the place of `{fields}`, which reads as an empty `{}`.
    fn filled(self, fields: &[FieldDef], named: &BTreeSet<usize>) -> Pattern {
        match self {
            Pattern::Many(all) if all.is_empty() => {
                let rest = fields.iter().enumerate();
                let rest = rest.filter(|(at, f)| !f.key && !named.contains(at));
                let option = |(at, field): (usize, &FieldDef)| {
                    let word = Pattern::Word(Word {
                        text: field.dashed(),
                        tail: String::new(),
                        gives: None,
                        version: None,
                    });
                    Pattern::Seq(vec![word, Pattern::Field(at)])
                };
                Pattern::Many(rest.map(option).collect())
            }
            Pattern::Seq(all) => Pattern::Seq(fill(all, fields, named)),
            Pattern::OneOf(all) => Pattern::OneOf(fill(all, fields, named)),
            Pattern::Many(all) => Pattern::Many(fill(all, fields, named)),
            Pattern::Optional(inner) => Pattern::Optional(Box::new(inner.filled(fields, named))),
            other => other,
        }
    }

    /// The field that a word of the pattern gives a value, and the value.
    pub fn given_by(&self, text: &str) -> Option<&(usize, Value)> {
        let mut words = self.words().into_iter().filter(|word| word.text == text);
        words.find_map(|word| word.gives.as_ref())
    }

    /// The values that the words of the pattern give fields.
    pub fn given(&self) -> Vec<(usize, Value)> {
        let words = self.words().into_iter();
        words.filter_map(|word| word.gives.clone()).collect()
    }

    /// Whether a word of the pattern begins with a text. Words in `fixed` do not count.
    pub(crate) fn has_word(&self, text: &str, fixed: &BTreeSet<&str>) -> bool {
        let begins = |word: &&Word| word.text.starts_with(text) && !fixed.contains(&*word.text);
        self.words().iter().any(begins)
    }

    /// Whether it has this word, which gives no field a value.
    pub(crate) fn has_plain(&self, text: &str) -> bool {
        let is = |word: &&Word| word.text == text && word.gives.is_none();
        self.words().iter().any(is)
    }

    /// The words that every command of the pattern has.
    pub(crate) fn fixed_words(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Pattern::Seq(all) => &all[..],
            one => std::slice::from_ref(one),
        };
        all.iter().filter_map(|p| match p {
            Pattern::Word(word) => Some(&*word.text),
            _ => None,
        })
    }

    /// Whether it names a field behind the key.
    pub fn names_value(&self, fields: &[FieldDef]) -> bool {
        let mut named = BTreeSet::new();
        self.fields(&mut named);
        named
            .iter()
            .any(|at| fields.get(*at).is_some_and(|f| !f.key))
    }

    /// The pattern as people read it, each field by the name of its slot.
    pub fn show(&self, fields: &[FieldDef]) -> String {
        let join = |all: &[Pattern], by: &str| {
            let all: Vec<String> = all.iter().map(|p| p.show(fields)).collect();
            all.join(by)
        };
        match self {
            Pattern::Word(word) if word.tail.is_empty() => word.text.clone(),
            Pattern::Word(word) => format!("{}[{}]", word.text, word.tail),
            Pattern::Field(at) => fields.get(*at).map_or_else(String::new, slot_text),
            Pattern::Setting(class) => format!("<{class}>"),
            Pattern::Seq(all) => join(all, " "),
            Pattern::OneOf(all) => format!("({})", join(all, " | ")),
            Pattern::Optional(inner) => format!("[{}]", inner.show(fields)),
            Pattern::Many(all) => format!("{{{}}}", join(all, " | ")),
        }
    }
}

fn fill(all: Vec<Pattern>, fields: &[FieldDef], named: &BTreeSet<usize>) -> Vec<Pattern> {
    all.into_iter().map(|p| p.filled(fields, named)).collect()
}

fn slot_text(field: &FieldDef) -> String {
    match field.kind.element() {
        Kind::Bool => "(on | off)".to_owned(),
        Kind::Choice(all) => {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            format!("({})", names.join(" | "))
        }
        Kind::Text(text) if !text.parts.is_empty() => text.parts.to_owned(),
        _ => format!("<{}>", field.dashed()),
    }
}

/// Words and signs of a pattern.
pub fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(['[', ']', '(', ')', '{', '}', '|']) {
            if at > 0 {
                parts.push(&rest[..at]);
            }
            parts.push(&rest[at..=at]);
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
    }
    parts
}

fn one_of(parts: &mut Parts<'_>, fields: &[FieldDef]) -> Result<Pattern, String> {
    let mut choices = vec![sequence(parts, fields)?];
    while parts.next_if_eq(&"|").is_some() {
        choices.push(sequence(parts, fields)?);
    }
    match choices.pop() {
        Some(only) if choices.is_empty() => Ok(only),
        last => {
            choices.extend(last);
            Ok(Pattern::OneOf(choices))
        }
    }
}

fn sequence(parts: &mut Parts<'_>, fields: &[FieldDef]) -> Result<Pattern, String> {
    let mut items = Vec::new();
    while let Some(part) = parts.next_if(|p| !["]", ")", "}", "|"].contains(p)) {
        items.push(match part {
            "[" => Pattern::Optional(Box::new(inner(parts, "]", fields)?)),
            "{" if parts.next_if_eq(&"fields").is_some() => {
                parts
                    .next_if_eq(&"}")
                    .ok_or("'{fields' has nothing behind it but '}'")?;
                Pattern::Many(Vec::new())
            }
            "{" => match inner(parts, "}", fields)? {
                Pattern::OneOf(all) => Pattern::Many(all),
                one => Pattern::Many(vec![one]),
            },
            "(" => inner(parts, ")", fields)?,
            part => one(part, fields)?,
        });
    }
    Ok(Pattern::Seq(items))
}

fn inner(parts: &mut Parts<'_>, close: &str, fields: &[FieldDef]) -> Result<Pattern, String> {
    let pattern = one_of(parts, fields)?;
    match parts.next_if_eq(&close) {
        Some(_) => Ok(pattern),
        None => Err(format!("'{close}' is missing")),
    }
}

fn one(part: &str, fields: &[FieldDef]) -> Result<Pattern, String> {
    let find = |name: &str| {
        let found = fields.iter().position(|f| f.name == name);
        found.ok_or_else(|| format!("there is no field '{name}'"))
    };
    if let Some(name) = part.strip_prefix('<') {
        let name = name.strip_suffix('>').ok_or("'>' is missing")?;
        if let Some(class) = name.strip_prefix('+') {
            return Ok(Pattern::Setting(class.to_owned()));
        }
        return find(name).map(Pattern::Field);
    }
    let mut version = None;
    let (word, gives) = match part.split_once('@') {
        None => (part, None),
        Some((word, family @ ("v4" | "v6"))) => {
            version = Some(if family == "v4" { 4 } else { 6 });
            (word, None)
        }
        Some((word, given)) => {
            let (name, value) = given.split_once('=').ok_or("'=' is missing behind '@'")?;
            let at = find(name)?;
            (word, Some((at, fields[at].kind.read(value)?)))
        }
    };
    let (text, tail) = word.split_once('~').unwrap_or((word, ""));
    Ok(Pattern::Word(Word {
        text: text.to_owned(),
        tail: tail.to_owned(),
        gives,
        version,
    }))
}

/// What a pattern says of an object so far.
struct Speller<'i> {
    instance: &'i Instance,
    words: Vec<String>,
    said: BTreeSet<usize>,
}

/// The object as a command by this pattern; none when the pattern cannot say all of it.
pub fn spell(pattern: &Pattern, instance: &Instance) -> Option<String> {
    let mut speller = Speller {
        instance,
        words: Vec::new(),
        said: BTreeSet::new(),
    };
    speller.say(pattern, false).then_some(())?;
    let fields = 0..instance.class().fields().len();
    let mut unsaid = fields.filter(|at| instance.slot(*at).is_some() && instance.is_set(*at));
    let complete = unsaid.all(|at| speller.said.contains(&at));
    complete.then(|| speller.words.join(" "))
}

impl Speller<'_> {
    /// Says a pattern, all or nothing. `contested`: a keyword could be in the same place as a value.
    fn say(&mut self, pattern: &Pattern, contested: bool) -> bool {
        match pattern {
            Pattern::Word(word) => {
                if word.version.is_some() && word.version != self.instance.ip_version() {
                    return false;
                }
                if let Some((at, value)) = &word.gives {
                    if self.instance.slot(*at) != Some(value) {
                        return false;
                    }
                    self.said.insert(*at);
                }
                self.words.push(word.text.clone());
                true
            }
            Pattern::Field(at) => {
                let Some(value) = self.instance.slot(*at) else {
                    return false;
                };
                let joined = self.instance.class().fields()[*at].kind.is_joined();
                if matches!(value, Value::List(all) if !joined || all.is_empty()) {
                    return false;
                }
                let word = self.word(*at, value, contested);
                self.words.push(word);
                self.said.insert(*at);
                true
            }
            Pattern::Setting(_) => false,
            Pattern::Seq(all) => self.attempt(|it| {
                let mut behind_word = false;
                // Only a value can come behind a word that introduces it.
                all.iter().enumerate().all(|(at, p)| {
                    if p.is_in_later(&all[at + 1..]) {
                        return true;
                    }
                    let contested = contested && !behind_word;
                    behind_word = matches!(p, Pattern::Word(_));
                    it.say(p, contested)
                })
            }),
            Pattern::OneOf(all) => all.iter().any(|p| self.attempt(|it| it.say(p, true))),
            Pattern::Optional(inner) => {
                self.attempt(|it| it.says_more(inner));
                true
            }
            Pattern::Many(all) => {
                for option in all {
                    if !self.repeat(option) {
                        self.attempt(|it| it.says_more(option));
                    }
                }
                true
            }
        }
    }

    fn attempt(&mut self, say: impl FnOnce(&mut Self) -> bool) -> bool {
        let (words, said) = (self.words.len(), self.said.clone());
        let done = say(self);
        if !done {
            self.words.truncate(words);
            self.said = said;
        }
        done
    }

    /// Says something that is not default and was not said yet.
    fn says_more(&mut self, pattern: &Pattern) -> bool {
        let before = self.said.clone();
        let done = self.say(pattern, true);
        let instance = self.instance;
        done && self
            .said
            .difference(&before)
            .any(|at| instance.is_set(*at) || instance.class().fields()[*at].is_essential())
    }

    /// Says a pattern once for each element of the list that it names; false when it names none.
    fn repeat(&mut self, pattern: &Pattern) -> bool {
        let mut named = BTreeSet::new();
        pattern.fields(&mut named);
        let instance = self.instance;
        let list = |at: &usize| match instance.slot(*at) {
            Some(Value::List(all)) if !instance.class().fields()[*at].kind.is_joined() => {
                Some((*at, all.clone()))
            }
            _ => None,
        };
        let Some((at, all)) = named.iter().find_map(list) else {
            return false;
        };
        let (words, mut rest) = (self.words.len(), all.iter());
        while rest.len() > 0 {
            let left = rest.len();
            self.say_with(pattern, at, &mut rest);
            if rest.len() == left {
                self.words.truncate(words);
                return false;
            }
        }
        self.said.insert(at);
        true
    }

    /// Says the next values of a list: one for the field, and all others where any number of them may come.
    fn say_with(&mut self, pattern: &Pattern, list: usize, rest: &mut std::slice::Iter<'_, Value>) {
        match pattern {
            Pattern::Field(at) if *at == list => {
                if let Some(value) = rest.next() {
                    let word = self.word(*at, value, true);
                    self.words.push(word);
                }
            }
            Pattern::Seq(all) => all.iter().for_each(|p| self.say_with(p, list, rest)),
            Pattern::Many(all) if all.iter().any(|p| p.names(list)) => {
                let more = || all.iter().filter(|p| p.names(list));
                let mut left = rest.len() + 1;
                while rest.len() > 0 && rest.len() < left {
                    left = rest.len();
                    more().for_each(|p| self.say_with(p, list, rest));
                }
            }
            other => _ = self.say(other, true),
        }
    }

    fn word(&self, at: usize, value: &Value, contested: bool) -> String {
        let field = &self.instance.class().fields()[at];
        match (field.kind.element(), value) {
            (Kind::Text(text), Value::Text(words)) if !text.parts.is_empty() => words.to_string(),
            // Inside braces, braces and quotes have a meaning.
            (Kind::Text(text), Value::Text(words))
                if text.shape == Shape::Block && !words.contains(['{', '}', '"']) =>
            {
                format!("{{ {words} }}")
            }
            (Kind::Text(text), Value::Text(word))
                if text.shape.is_any() && self.instance.class().has_word(word) =>
            {
                format!("\"{word}\"")
            }
            (Kind::Text(text), Value::Text(_)) if text.shape == Shape::Numbers => value.word(),
            (Kind::Text(text), Value::Text(word)) if contested && text.shape.is_any() => {
                apart(word)
            }
            _ => value.word(),
        }
    }
}

/// A name in a place where a keyword could be: in quotes unless no keyword looks like it.
fn apart(name: &str) -> String {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let digit = name.ends_with(|c: char| c.is_ascii_digit()) && !name.starts_with("ip");
    // No keyword has these signs; three parts could be a MAC address.
    let signs = name.contains(['.', '=']) && name.split(['-', '.']).count() < 3;
    let unlike = letter && (digit || signs) && !name.contains(':') || name.starts_with('-');
    match quote(name) {
        quoted if unlike || quoted.starts_with('"') => quoted,
        plain => format!("\"{plain}\""),
    }
}
