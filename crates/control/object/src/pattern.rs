//! Patterns of commands: one pattern both parses a command line to an object, and writes an object as a command.
//!
//! | pattern | parsed | written |
//! |---|---|---|
//! | `word`, `word~tail` | the word, with or without its suffix | the word |
//! | `word@field=value` | the word; the field has this value | the word, when the field has this value |
//! | `word@v4`, `word@v6` | the word | the word, when the object is of this IP version |
//! | `<field>` | a value of the field | the value |
//! | `<+class>` | a value of a setting of this class that an interface is created with | not written: see `InterfaceSpec` |
//! | `[x]` | x, or nothing | x, when it expresses a value that differs from its default |
//! | `(a \| b)` | one of them | the first that can express the value |
//! | `{a \| b}` | any number of them | those that differ from defaults; an option that a later `{...}` also has, there |
//! | `<list>` | one element, or several numbers or choices with commas between; a list of texts is in `{...}` | the same |
//! | `{fields}` | `{a <a> \| b <b> ...}` of all fields that the pattern does not name | |
//!
//! A pattern can express an object only if it contains every field that differs from its default.

use crate::field::FieldDef;
use crate::instance::Instance;
use crate::kind::{Kind, Shape};
use crate::value::{Value, quote};
use std::collections::{BTreeMap, BTreeSet};

/// A tree of consecutive parts and alternatives.
#[derive(Clone, Debug)]
pub enum Tree<L> {
    /// One word of a command.
    Leaf(L),
    /// Consecutive parts.
    Seq(Vec<Tree<L>>),
    /// One of these alternatives.
    OneOf(Vec<Tree<L>>),
    /// The part, or nothing.
    Optional(Box<Tree<L>>),
    /// Any number of these alternatives.
    Many(Vec<Tree<L>>),
}

/// A leaf of a pattern.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// A word.
    Word(Word),
    /// A value of a field.
    Field(usize),
    /// A value of a setting of this class.
    Setting(String),
}

/// A pattern.
pub type Pattern = Tree<Leaf>;

/// A word of a command.
#[derive(Clone, Debug)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Suffix of a second spelling.
    pub tail: String,
    /// The field that the word sets, and the value.
    pub gives: Option<(usize, Value)>,
    /// The IP version of the objects whose command contains the word; `None`: any.
    pub version: Option<u8>,
}

type Parts<'t> = std::iter::Peekable<std::vec::IntoIter<&'t str>>;

/// Parses a word of the text of a pattern.
type Read<'l, 't, L> = &'l dyn Fn(&'t str) -> Result<L, String>;

impl<L> Tree<L> {
    /// Parses the text of a pattern; `leaf` parses each word.
    pub fn parse<'t>(text: &'t str, leaf: Read<'_, 't, L>) -> Result<Self, String> {
        let mut parts = split(text).into_iter().peekable();
        let tree = Tree::one_of(&mut parts, leaf)?;
        match parts.next() {
            Some(left) => Err(format!("'{left}' closes nothing")),
            None => Ok(tree),
        }
    }

    fn one_of<'t>(parts: &mut Parts<'t>, leaf: Read<'_, 't, L>) -> Result<Self, String> {
        let first = Tree::sequence(parts, leaf)?;
        let mut choices = vec![first];
        while parts.next_if_eq(&"|").is_some() {
            choices.push(Tree::sequence(parts, leaf)?);
        }
        match choices.len() {
            1 => Ok(choices.remove(0)),
            _ => Ok(Tree::OneOf(choices)),
        }
    }

    fn sequence<'t>(parts: &mut Parts<'t>, leaf: Read<'_, 't, L>) -> Result<Self, String> {
        let inner = |parts: &mut Parts<'t>, close: &str| {
            let tree = Tree::one_of(parts, leaf)?;
            let closed = parts.next_if(|part| *part == close);
            closed.map_or_else(|| Err(format!("'{close}' is missing")), |_| Ok(tree))
        };
        let mut items = Vec::new();
        while let Some(part) = parts.next_if(|p| !["]", ")", "}", "|"].contains(p)) {
            items.push(match part {
                "[" => Tree::Optional(Box::new(inner(parts, "]")?)),
                "{" => match inner(parts, "}")? {
                    Tree::OneOf(all) => Tree::Many(all),
                    one => Tree::Many(vec![one]),
                },
                "(" => inner(parts, ")")?,
                part => Tree::Leaf(leaf(part)?),
            });
        }
        Ok(Tree::Seq(items))
    }

    /// The same tree with converted leaves.
    pub fn map<M>(&self, leaf: &dyn Fn(&L) -> Tree<M>) -> Tree<M> {
        let each = |all: &[Tree<L>]| all.iter().map(|it| it.map(leaf)).collect();
        match self {
            Tree::Leaf(it) => leaf(it),
            Tree::Seq(all) => Tree::Seq(each(all)),
            Tree::OneOf(all) => Tree::OneOf(each(all)),
            Tree::Optional(inner) => Tree::Optional(Box::new(inner.map(leaf))),
            Tree::Many(all) => Tree::Many(each(all)),
        }
    }
}

impl Pattern {
    /// Parses a pattern over fields. An error is one sentence.
    pub(crate) fn read(text: &str, fields: &[FieldDef]) -> Result<Pattern, String> {
        let wrong = |why: String| format!("pattern '{text}': {why}");
        let whole = filled(text, fields);
        let pattern = Tree::parse(&whole, &|part| one(part, fields)).map_err(wrong)?;
        pattern.check_words().map_err(wrong)?;
        Ok(pattern)
    }

    /// The direct subpatterns.
    fn inner(&self) -> &[Pattern] {
        match self {
            Pattern::Seq(all) | Pattern::OneOf(all) | Pattern::Many(all) => all,
            Pattern::Optional(inner) => std::slice::from_ref(inner),
            Pattern::Leaf(_) => &[],
        }
    }

    /// Visits the pattern and all subpatterns, in order.
    fn all<'p>(&'p self, tell: &mut dyn FnMut(&'p Pattern)) {
        tell(self);
        self.inner().iter().for_each(|it| it.all(tell));
    }

    /// All words, in order.
    fn words(&self) -> Vec<&Word> {
        let mut words = Vec::new();
        self.all(&mut |it| {
            if let Pattern::Leaf(Leaf::Word(word)) = it {
                words.push(word);
            }
        });
        words
    }

    /// Checks that each word has one meaning in the whole pattern.
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
    pub fn fields(&self) -> BTreeSet<usize> {
        let mut named = BTreeSet::new();
        self.all(&mut |it| match it {
            Pattern::Leaf(Leaf::Word(word)) => named.extend(word.gives.as_ref().map(|it| it.0)),
            Pattern::Leaf(Leaf::Field(at)) => _ = named.insert(*at),
            _ => {}
        });
        named
    }

    /// Whether the pattern contains a setting of a class.
    pub(crate) fn names_setting(&self, class: &str) -> bool {
        let mut found = false;
        self.all(&mut |it| {
            found |= matches!(it, Pattern::Leaf(Leaf::Setting(setting)) if setting == class)
        });
        found
    }

    /// Whether any number of options may appear here, and the same ones also later.
    fn is_in_later(&self, later: &[Pattern]) -> bool {
        let is_many = |pattern: &&Pattern| matches!(pattern, Pattern::Many(_));
        let mut later = later.iter().filter(is_many).map(Pattern::fields);
        let own = self.fields();
        is_many(&self) && !own.is_empty() && later.any(|later| own.is_subset(&later))
    }

    fn names(&self, field: usize) -> bool {
        self.fields().contains(&field)
    }

    /// The field that a word of the pattern sets, and the value.
    pub fn given_by(&self, text: &str) -> Option<&(usize, Value)> {
        let mut words = self.words().into_iter().filter(|word| word.text == text);
        words.find_map(|word| word.gives.as_ref())
    }

    /// The fields that words of the pattern set, and the values.
    pub fn given(&self) -> Vec<(usize, Value)> {
        let words = self.words().into_iter();
        words.filter_map(|word| word.gives.clone()).collect()
    }

    /// Whether a word of the pattern begins with a text. Words in `fixed` do not count.
    pub(crate) fn has_word(&self, text: &str, fixed: &BTreeSet<&str>) -> bool {
        let begins = |word: &&Word| word.text.starts_with(text) && !fixed.contains(&*word.text);
        self.words().iter().any(begins)
    }

    /// Whether the pattern has this word, and the word sets no field.
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
            Pattern::Leaf(Leaf::Word(word)) => Some(&*word.text),
            _ => None,
        })
    }

    /// Whether the pattern names a field besides the key.
    pub fn names_value(&self, fields: &[FieldDef]) -> bool {
        let is_value = |at: &usize| fields.get(*at).is_some_and(|f| !f.key);
        self.fields().iter().any(is_value)
    }

    /// The pattern in the notation for users; each field has the name of its slot.
    pub fn show(&self, fields: &[FieldDef]) -> String {
        let join = |all: &[Pattern], by: &str| {
            let all: Vec<String> = all.iter().map(|p| p.show(fields)).collect();
            all.join(by)
        };
        match self {
            Pattern::Leaf(Leaf::Word(word)) if word.tail.is_empty() => word.text.clone(),
            Pattern::Leaf(Leaf::Word(word)) => format!("{}[{}]", word.text, word.tail),
            Pattern::Leaf(Leaf::Field(at)) => fields.get(*at).map_or_else(String::new, slot_text),
            Pattern::Leaf(Leaf::Setting(class)) => format!("<{class}>"),
            Pattern::Seq(all) => join(all, " "),
            Pattern::OneOf(all) => format!("({})", join(all, " | ")),
            Pattern::Optional(inner) => format!("[{}]", inner.show(fields)),
            Pattern::Many(all) => format!("{{{}}}", join(all, " | ")),
        }
    }
}

/// Replaces `{fields}` by an option for each field that the pattern does not name.
fn filled(text: &str, fields: &[FieldDef]) -> String {
    let names = |field: &FieldDef| {
        let spelled = [format!("<{}>", field.name), format!("@{}=", field.name)];
        spelled.iter().any(|it| text.contains(it))
    };
    let rest = fields.iter().filter(|field| !field.key && !names(field));
    let options = rest.map(|field| format!("{} <{}>", field.dashed(), field.name));
    let options: Vec<String> = options.collect();
    text.replace("{fields}", &format!("{{{}}}", options.join(" | ")))
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

/// Splits a pattern into words and signs.
fn split(text: &str) -> Vec<&str> {
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

fn one(part: &str, fields: &[FieldDef]) -> Result<Leaf, String> {
    let find = |name: &str| {
        let found = fields.iter().position(|f| f.name == name);
        found.ok_or_else(|| format!("there is no field '{name}'"))
    };
    if let Some(name) = part.strip_prefix('<') {
        let name = name.strip_suffix('>').ok_or("'>' is missing")?;
        if let Some(class) = name.strip_prefix('+') {
            return Ok(Leaf::Setting(class.to_owned()));
        }
        return find(name).map(Leaf::Field);
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
    Ok(Leaf::Word(Word {
        text: text.to_owned(),
        tail: tail.to_owned(),
        gives,
        version,
    }))
}

/// The state of spelling an object by a pattern.
struct Speller<'i> {
    instance: &'i Instance,
    words: Vec<String>,
    spelled: BTreeSet<usize>,
}

/// The object as a command by this pattern; `None` when the pattern cannot express the whole object.
pub fn spell(pattern: &Pattern, instance: &Instance) -> Option<String> {
    let mut speller = Speller {
        instance,
        words: Vec::new(),
        spelled: BTreeSet::new(),
    };
    speller.say(pattern, false).then_some(())?;
    let fields = 0..instance.class().fields().len();
    let mut unsaid = fields.filter(|at| instance.slot(*at).is_some() && instance.is_set(*at));
    let complete = unsaid.all(|at| speller.spelled.contains(&at));
    complete.then(|| speller.words.join(" "))
}

impl Speller<'_> {
    /// Writes a pattern, completely or not at all. `contested`: a keyword could be at the position of a value.
    fn say(&mut self, pattern: &Pattern, contested: bool) -> bool {
        match pattern {
            Pattern::Leaf(Leaf::Word(word)) => {
                if word.version.is_some() && word.version != self.instance.ip_version() {
                    return false;
                }
                if let Some((at, value)) = &word.gives {
                    if self.instance.slot(*at) != Some(value) {
                        return false;
                    }
                    self.spelled.insert(*at);
                }
                self.words.push(word.text.clone());
                true
            }
            Pattern::Leaf(Leaf::Field(at)) => {
                let Some(value) = self.instance.slot(*at) else {
                    return false;
                };
                let joined = self.instance.class().fields()[*at].kind.is_joined();
                if matches!(value, Value::List(all) if !joined || all.is_empty()) {
                    return false;
                }
                let word = self.word(*at, value, contested);
                self.words.push(word);
                self.spelled.insert(*at);
                true
            }
            Pattern::Leaf(Leaf::Setting(_)) => false,
            Pattern::Seq(all) => self.attempt(|it| {
                let mut behind_word = false;
                // After a word that introduces a value, only a value can follow.
                all.iter().enumerate().all(|(at, p)| {
                    if p.is_in_later(&all[at + 1..]) {
                        return true;
                    }
                    let contested = contested && !behind_word;
                    behind_word = matches!(p, Pattern::Leaf(Leaf::Word(_)));
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
        let (words, spelled) = (self.words.len(), self.spelled.clone());
        let done = say(self);
        if !done {
            self.words.truncate(words);
            self.spelled = spelled;
        }
        done
    }

    /// Writes a pattern that expresses a further value that differs from its default.
    fn says_more(&mut self, pattern: &Pattern) -> bool {
        let before = self.spelled.clone();
        let done = self.say(pattern, true);
        let instance = self.instance;
        done && self
            .spelled
            .difference(&before)
            .any(|at| instance.is_set(*at) || instance.class().fields()[*at].is_essential())
    }

    /// Writes a pattern once for each element of the list that it names; false when it names no list.
    fn repeat(&mut self, pattern: &Pattern) -> bool {
        let named = pattern.fields();
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
        self.spelled.insert(at);
        true
    }

    /// Writes the next values of a list: one for the field, or all remaining ones if the field accepts any number.
    fn say_with(&mut self, pattern: &Pattern, list: usize, rest: &mut std::slice::Iter<'_, Value>) {
        match pattern {
            Pattern::Leaf(Leaf::Field(at)) if *at == list => {
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
            // Inside braces, braces and quotes are special characters.
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

/// A name at a position where a keyword could be: quoted unless no keyword can have its form.
fn apart(name: &str) -> String {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let digit = name.ends_with(|c: char| c.is_ascii_digit()) && !name.starts_with("ip");
    // No keyword contains these characters; three parts could be a MAC address.
    let signs = name.contains(['.', '=']) && name.split(['-', '.']).count() < 3;
    let unlike = letter && (digit || signs) && !name.contains(':') || name.starts_with('-');
    match quote(name) {
        quoted if unlike || quoted.starts_with('"') => quoted,
        plain => format!("\"{plain}\""),
    }
}
