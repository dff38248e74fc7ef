//! All commands as one automaton, and the parsing of a line by it.

use super::commands::CommandDef;
use super::objects;
use super::pattern::{Eats, Pattern, Word, leads};
use super::slots::{Fit, Takes};
use super::words;
use crate::token::{Form, Token, tokens};
use std::sync::{Arc, Mutex, PoisonError};
use volley_model::SyntaxError;
use volley_object::{Shape, shown};

#[derive(Debug, Default)]
struct State {
    free: Vec<usize>,
    eats: Option<(Eats, usize)>,
    accepts: Option<usize>,
}

/// The automaton: its states; state 0 is the start.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    states: Vec<State>,
}

/// All commands that exist now, and the automaton built from them.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    pub(crate) commands: Vec<CommandDef>,
    automaton: Automaton,
    /// The first words of commands, and the index of each command.
    leads: Vec<(Vec<Word>, usize)>,
    generation: u64,
}

impl Grammar {
    /// The grammar of the commands of the command line itself, and of the currently registered classes, queries and verbs.
    pub(crate) fn now() -> Arc<Grammar> {
        static LAST: Mutex<Option<Arc<Grammar>>> = Mutex::new(None);
        let classes = volley_object::classes();
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(grammar) if grammar.generation == classes.generation() => grammar.clone(),
            _ => last.insert(Arc::new(Grammar::of(&classes))).clone(),
        }
    }

    fn of(classes: &volley_object::Classes) -> Grammar {
        let mut grammar = Grammar {
            generation: classes.generation(),
            ..Grammar::default()
        };
        let start = grammar.automaton.state();
        for (command, pattern) in objects::commands(classes) {
            let automaton = &mut grammar.automaton;
            let end = automaton.add(&pattern, start);
            let last = automaton.state();
            automaton.states[end].free.push(last);
            let place = grammar.commands.len();
            automaton.states[last].accepts = Some(place);
            let leads = leads(&pattern).0.into_iter();
            let leads = leads.map(|words| (words, place));
            grammar.leads.extend(leads);
            grammar.commands.push(command);
        }
        grammar
    }
}

impl Grammar {
    /// The commands whose first words begin with these.
    pub(super) fn led_by(&self, words: &[&str]) -> Vec<&CommandDef> {
        let begins = |lead: &[Word]| {
            let mut lead = lead.iter();
            words
                .iter()
                .all(|w| lead.next().is_some_and(|l| l.text == *w))
        };
        let found = self.leads.iter().filter(|(lead, _)| begins(lead));
        let mut places: Vec<usize> = found.map(|(_, place)| *place).collect();
        places.sort_unstable();
        places.dedup();
        places
            .iter()
            .filter_map(|at| self.commands.get(*at))
            .collect()
    }
}

impl Automaton {
    fn state(&mut self) -> usize {
        self.states.push(State::default());
        self.states.len() - 1
    }

    /// Adds a pattern behind a state; returns the state behind the pattern.
    fn add(&mut self, pattern: &Pattern, from: usize) -> usize {
        match pattern {
            Pattern::Leaf(eats) => self.eat(*eats, from),
            Pattern::Seq(items) => items.iter().fold(from, |at, item| self.add(item, at)),
            Pattern::OneOf(choices) => {
                let end = self.state();
                for choice in choices {
                    let last = self.add(choice, from);
                    self.states[last].free.push(end);
                }
                end
            }
            Pattern::Optional(inner) => {
                let end = self.state();
                let last = self.add(inner, from);
                self.states[last].free.push(end);
                self.states[from].free.push(end);
                end
            }
            Pattern::Many(choices) => {
                let hub = self.state();
                self.states[from].free.push(hub);
                for choice in choices {
                    let last = self.add(choice, hub);
                    self.states[last].free.push(hub);
                }
                // The following pattern must not be joined to the hub itself: an inner pattern could begin there.
                let end = self.state();
                self.states[hub].free.push(end);
                end
            }
        }
    }

    fn eat(&mut self, eats: Eats, from: usize) -> usize {
        let (step, next) = (self.state(), self.state());
        self.states[from].free.push(step);
        self.states[step].eats = Some((eats, next));
        next
    }

    /// All states that are reached from these without consuming a word.
    fn closure(&self, threads: &[Thread]) -> Vec<Thread> {
        let mut seen = vec![false; self.states.len()];
        let mut stack: Vec<Thread> = threads.iter().rev().copied().collect();
        let mut all = Vec::new();
        while let Some(thread) = stack.pop() {
            if !std::mem::replace(&mut seen[thread.state], true) {
                all.push(thread);
                let behind = self.states[thread.state].free.iter().rev();
                stack.extend(behind.map(|state| Thread {
                    state: *state,
                    ..thread
                }));
            }
        }
        all
    }
}

/// One path through the automaton: its state, and the last piece that it consumed.
#[derive(Clone, Copy, Debug)]
struct Thread {
    state: usize,
    last: Option<usize>,
}

/// One consumed word.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A word of the pattern, with its column.
    Word(&'static str, usize),
    /// The value of a slot.
    Slot(&'static str, Token),
}

/// The state of parsing one line.
pub(super) struct Walk {
    grammar: Arc<Grammar>,
    threads: Vec<Thread>,
    eaten: Vec<(Piece, Option<usize>)>,
}

impl Walk {
    pub(super) fn new() -> Walk {
        let grammar = Grammar::now();
        let start = Thread {
            state: 0,
            last: None,
        };
        Walk {
            threads: grammar.automaton.closure(&[start]),
            grammar,
            eaten: Vec::new(),
        }
    }

    /// What the next word may match.
    pub(super) fn expected(&self) -> impl Iterator<Item = Eats> + '_ {
        let eats = |t: &Thread| self.grammar.automaton.states[t.state].eats.map(|(e, _)| e);
        self.threads.iter().filter_map(eats)
    }

    /// The command that is complete at this point.
    pub(super) fn accepted(&self) -> Option<(CommandDef, Vec<Piece>)> {
        let states = &self.grammar.automaton.states;
        let accepts = |t: &Thread| states[t.state].accepts.map(|i| (i, t.last));
        let (index, last) = self.threads.iter().find_map(accepts)?;
        let pieces = self.eaten_until(last).into_iter().cloned().collect();
        let command = self.grammar.commands.get(index)?;
        Some((*command, pieces))
    }

    /// The consumed pieces up to one of them, in the order of the line.
    fn eaten_until(&self, mut last: Option<usize>) -> Vec<&Piece> {
        let mut pieces = Vec::new();
        while let Some((piece, before)) = last.and_then(|i| self.eaten.get(i)) {
            pieces.push(piece);
            last = *before;
        }
        pieces.reverse();
        pieces
    }

    /// The consumed words of the pattern, in the pattern's spelling; and whether slots were consumed, too.
    pub(super) fn words(&self) -> (Vec<&'static str>, bool) {
        let pieces = self.eaten_until(self.threads.first().and_then(|t| t.last));
        let word = |piece: &&Piece| match piece {
            Piece::Word(word, _) => Some(*word),
            Piece::Slot(..) => None,
        };
        let words: Vec<&str> = pieces.iter().filter_map(word).collect();
        let slots = words.len() < pieces.len();
        (words, slots)
    }

    /// Consumes a word; an error when the word matches nothing or is ambiguous.
    pub(super) fn eat(&mut self, token: &Token) -> Result<(), SyntaxError> {
        let fits: Vec<(Fit, Eats, Thread)> = self.fits(token);
        let Some(best) = fits.iter().map(|(fit, _, _)| *fit).max() else {
            return Err(self.unexpected(token));
        };
        let chosen: Vec<_> = fits
            .into_iter()
            .filter(|(fit, _, _)| *fit == best)
            .collect();
        if best == Fit::Beginning {
            unambiguous(token, chosen.iter().map(|(_, eats, _)| *eats))?;
        }
        let mut next = Vec::with_capacity(chosen.len());
        for (_, eats, thread) in chosen {
            let piece = match eats {
                // A word that is a part of a value cannot be abbreviated.
                Eats::Word(word) if !word.of.is_empty() => {
                    let text = word.text.to_owned();
                    Piece::Slot(
                        word.of,
                        Token {
                            text,
                            ..token.clone()
                        },
                    )
                }
                Eats::Word(word) => Piece::Word(word.text, token.column),
                Eats::Slot(slot) => Piece::Slot(slot.name, token.clone()),
            };
            self.eaten.push((piece, thread.last));
            let last = Some(self.eaten.len() - 1);
            next.push(Thread { last, ..thread });
        }
        self.threads = self.grammar.automaton.closure(&next);
        Ok(())
    }

    fn fits(&self, token: &Token) -> Vec<(Fit, Eats, Thread)> {
        let mut fits = Vec::new();
        for thread in &self.threads {
            if let Some((eats, state)) = self.grammar.automaton.states[thread.state].eats {
                let fit = match eats {
                    Eats::Word(_) if token.form != Form::Plain => None,
                    Eats::Word(word) if word.is(&token.text) => Some(Fit::Exact),
                    Eats::Word(word) if word.begins(&token.text) => Some(Fit::Beginning),
                    Eats::Word(_) => None,
                    Eats::Slot(slot) => slot.fit(token),
                };
                let thread = Thread { state, ..*thread };
                fits.extend(fit.map(|fit| (fit, eats, thread)));
            }
        }
        fits
    }

    /// True when the rest of the line belongs to the next slot.
    fn wants_rest(&self, token: &Token) -> bool {
        let rest = |(fit, eats, _): &(Fit, Eats, Thread)| {
            *fit == Fit::Any && matches!(eats, Eats::Slot(s) if s.takes == Takes::Text(Shape::Rest))
        };
        let fits = self.fits(token);
        token.form == Form::Plain && !fits.is_empty() && fits.iter().all(rest)
    }

    fn wants_block(&self) -> bool {
        self.expected()
            .any(|e| matches!(e, Eats::Slot(s) if s.takes == Takes::Text(Shape::Block)))
    }

    fn unexpected(&self, token: &Token) -> SyntaxError {
        let (shown, wanted) = (shown(&token.text), self.wanted());
        let expected: Vec<Word> = self.expected().filter_map(Eats::word).collect();
        let nearly = volley_model::nearest(&token.text, expected.iter().map(|word| word.text));
        let meant = nearly.map_or_else(String::new, |word| format!("did you mean '{word}'? "));
        let message = format!("'{shown}' is not understood here: {meant}expected {wanted}");
        SyntaxError::new(token.column, message)
    }

    /// What the next word may be, as text for an error.
    pub(super) fn wanted(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for eats in self.expected() {
            let text = match eats {
                Eats::Word(word) => word.text.to_string(),
                Eats::Slot(slot) => format!("<{}> ({})", slot.name, slot.text),
            };
            if !all.contains(&text) {
                all.push(text);
            }
        }
        if self.accepted().is_some() {
            all.push("the end of the line".to_string());
        }
        match all.pop() {
            Some(last) if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            last => last.unwrap_or_default(),
        }
    }
}

fn unambiguous(token: &Token, choices: impl Iterator<Item = Eats>) -> Result<(), SyntaxError> {
    let mut words: Vec<&str> = Vec::new();
    for eats in choices {
        match eats {
            Eats::Word(word) if !words.contains(&word.text) => words.push(word.text),
            _ => {}
        }
    }
    if words.len() <= 1 {
        return Ok(());
    }
    let message = format!(
        "'{}' is ambiguous: it could be {}",
        token.text,
        words.join(", ")
    );
    Err(SyntaxError::new(token.column, message))
}

/// Maximum depth of nested braces that only group.
const MAX_DEPTH: usize = 4;

/// Maximum number of words in a line: the control thread parses lines, and one line must not delay its other work.
const MAX_WORDS: usize = 16_384;

/// Parses as many words as match; braces that no pattern expects only group.
pub(super) fn walk(
    line: &str,
    base: usize,
    walk_so_far: &mut Walk,
    depth: usize,
) -> Result<(), SyntaxError> {
    for token in tokens(line, base)? {
        if walk_so_far.eaten.len() >= MAX_WORDS {
            let message = format!("the line has more than {MAX_WORDS} words");
            return Err(SyntaxError::new(token.column, message));
        }
        if token.form == Form::Block && !walk_so_far.wants_block() && depth < MAX_DEPTH {
            walk(&token.text, token.column + 1, walk_so_far, depth + 1)?;
        } else if walk_so_far.wants_rest(&token) {
            let skip = token.column - base;
            let text: String = line.chars().skip(skip).collect();
            let text = text.trim_end().to_string();
            let end = token.column + text.chars().count();
            return walk_so_far.eat(&Token { text, end, ..token });
        } else {
            walk_so_far.eat(&token)?;
        }
    }
    Ok(())
}

/// Parses a whole command: its definition and the consumed pieces.
pub(crate) fn run(line: &str) -> Result<(CommandDef, Vec<Piece>), SyntaxError> {
    let mut way = Walk::new();
    walk(line, 1, &mut way, 0).map_err(|error| match words::elsewhere(line) {
        Some(text) => SyntaxError::new(1, text),
        None => error,
    })?;
    let end = line.trim_end().chars().count() + 1;
    let incomplete = || {
        SyntaxError::new(
            end,
            format!("the command is not complete: expected {}", way.wanted()),
        )
    };
    way.accepted().ok_or_else(incomplete)
}
