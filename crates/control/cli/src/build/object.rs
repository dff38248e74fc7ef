//! Commands of registered classes, queries and verbs.

use super::Action;
use super::args::Args;
use crate::grammar::{Effect, ObjectCommand, Piece, QueryCommand, VerbCommand};
use crate::token::{Form, Token};
use volley_model::{InterfaceSpec, Request, SyntaxError};
use volley_object::pattern::Pattern;
use volley_object::{
    Change, Class, FieldDef, FieldError, Instance, Kind, Part, TextError, Value, classes, quote,
};

/// The request of a command.
pub(super) fn request(command: ObjectCommand, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let gone = || SyntaxError::new(1, format!("{} was removed meanwhile", command.class));
    let class = classes().get(command.class).cloned().ok_or_else(gone)?;
    let pattern = command.pattern(&class);
    let read = read(&class, pattern, args.all())?;
    let end = args.column();
    let whole = || class.instance(read.slots.clone());
    let key = || {
        let keys = read.slots.iter().take(class.keys().len());
        match command.effect {
            Effect::Unset(_) => class.key_or_group(keys.cloned()),
            _ => class.key_of_slots(keys.cloned()),
        }
    };
    match command.effect {
        Effect::Set(_) if class.is_interface() => whole().map(|kind| {
            let mut spec = InterfaceSpec::of_object(kind);
            read.settings.iter().for_each(|it| spec.create_with(it));
            Request::InterfaceCreate(spec)
        }),
        Effect::Unset(_) if class.is_interface() => key().map(|key| Request::InterfaceDelete {
            name: key
                .values()
                .first()
                .map(Value::to_string)
                .unwrap_or_default(),
        }),
        Effect::Set(_) => whole().map(Request::Set),
        Effect::Unset(_) if pattern.is_some_and(|p| p.names_value(class.fields())) => {
            whole().map(Request::UnsetExact)
        }
        Effect::Add(_) => whole().map(Request::Add),
        Effect::Take(_) => match read
            .slots
            .iter()
            .skip(class.keys().len())
            .all(Option::is_none)
        {
            true => key().map(Request::Unset),
            false => Part::new(&class, read.slots.clone()).map(Request::Take),
        },
        Effect::UnsetAny(_) => key().map(Request::UnsetAny),
        Effect::Change(_) => Change::new(&class, read.slots.clone()).map(Request::Change),
        Effect::Unset(_) | Effect::Default => key().map(Request::Unset),
    }
    .map_err(|error| read.placed(&class, error, end))
}

/// The query of a command.
pub(super) fn query(command: QueryCommand, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    let all = classes();
    let gone = || SyntaxError::new(1, format!("{} was removed meanwhile", command.query));
    let (query, pattern) = command.pattern(&all).ok_or_else(gone)?;
    let class = query.class();
    let pieces = args.all();
    let read = read(class, Some(pattern), pieces)?;
    let has = |word: &str| {
        let mut pieces = pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Word(text, _) if *text == word))
    };
    let view = query.view(has, &read.slots);
    let typed = class.fields().iter().map(|field| field.typed.clone());
    let slots = read.slots.iter().cloned().zip(typed);
    let asked = query.ask(slots.map(|(given, typed)| given.or(typed)).collect());
    let asked = asked.map_err(|error| read.placed(class, error, args.column()))?;
    Ok(Action::Query(asked, view))
}

/// The request of a command of a verb.
pub(super) fn invocation(
    command: VerbCommand,
    args: &mut Args<'_>,
) -> Result<Request, SyntaxError> {
    let all = classes();
    let gone = || SyntaxError::new(1, format!("{} was removed meanwhile", command.verb));
    let (verb, pattern) = command.pattern(&all).ok_or_else(gone)?;
    let read = read(verb.class(), Some(pattern), args.all())?;
    let invoked = verb.invoke(read.slots.clone());
    let invoked = invoked.map_err(|error| read.placed(verb.class(), error, args.column()))?;
    Ok(Request::Do(invoked))
}

struct Read {
    slots: Vec<Option<Value>>,
    columns: Vec<Option<usize>>,
    /// Settings that an interface is created with.
    settings: Vec<Instance>,
}

/// A setting that an interface is created with.
fn setting(class: &str, token: &Token) -> Result<Instance, SyntaxError> {
    let placed = |why: String| SyntaxError::new(token.column, why);
    let classes = classes();
    let field = classes.get(class).and_then(|it| it.values().first());
    let value = field.map(|field| field.kind.read(&token.text));
    let value = value.unwrap_or_else(|| Ok(Value::text(&token.text)));
    let value = value.map_err(|why| placed(format!("{class} {why}")))?;
    // Any interface: the setting goes into the request that creates it.
    Instance::of_value(class, "a", value).map_err(|why| placed(why.to_string()))
}

impl Read {
    /// An error where the field is, else at the end of the line.
    fn placed(&self, class: &Class, error: FieldError, end: usize) -> SyntaxError {
        let at = class.field(error.field).map(|(at, _)| at);
        let column = at.and_then(|at| self.columns.get(at).copied().flatten());
        SyntaxError::new(column.unwrap_or(end), error)
    }
}

fn read(class: &Class, pattern: Option<&Pattern>, pieces: &[Piece]) -> Result<Read, SyntaxError> {
    let fields = class.fields();
    let mut read = Read {
        slots: vec![None; fields.len()],
        columns: vec![None; fields.len()],
        settings: Vec::new(),
    };
    let mut pieces = pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        let (at, value, column) = match piece {
            Piece::Word(text, column) => match pattern.and_then(|pattern| given(pattern, text)) {
                Some((at, value)) => (at, value, *column),
                None => continue,
            },
            Piece::Slot(name, token) => {
                let whole = name.split_once(' ').map_or(*name, |(field, _)| field);
                let Some((at, field)) = class.field(whole) else {
                    if class.is_interface() && InterfaceSpec::is_created_with(name) {
                        let setting = setting(name, token)?;
                        let known = |it: &Instance| it.class() == setting.class();
                        if read.settings.iter().any(known) {
                            let why = format!("'{name}' is given twice");
                            return Err(SyntaxError::new(token.column, why));
                        }
                        read.settings.push(setting);
                    }
                    continue;
                };
                let mut text = match field.kind.parts() {
                    "" => token.text.clone(),
                    _ => part(field, name, token),
                };
                let mut count = 0;
                while let Some(next) = pieces.next_if(|next| continues(field, (piece, count), next))
                {
                    add_word(&mut text, token.column, field, next);
                    count += 1;
                }
                let value = field.kind.read_placed(&text);
                let value = value.map_err(|error| placed(field, token, error))?;
                (at, value, token.column)
            }
        };
        let slot = &mut read.slots[at];
        *slot = match (slot.take(), value) {
            (None, value) => Some(value),
            (Some(Value::List(before)), Value::List(more)) => Some(Value::List(
                before.iter().chain(more.iter()).cloned().collect(),
            )),
            (Some(_), _) => {
                let name = fields[at].dashed();
                return Err(SyntaxError::new(column, format!("'{name}' is given twice")));
            }
        };
        read.columns[at] = Some(column);
    }
    Ok(read)
}

/// An error in a value where it is, or of a value as a whole.
fn placed(field: &FieldDef, token: &Token, error: TextError) -> SyntaxError {
    let first = match token.form {
        Form::Plain => token.column,
        Form::Quoted | Form::Block => token.column + 1,
    };
    match error.column {
        Some(column) => SyntaxError::new(first + column - 1, error.why),
        None => SyntaxError::new(token.column, format!("{} {error}", field.dashed())),
    }
}

/// Whether a piece is a further word of the value of several words that `first` begins and that has so many words more.
fn continues(field: &FieldDef, (first, more): (&Piece, usize), next: &Piece) -> bool {
    let (Piece::Slot(first, _), Piece::Slot(name, _)) = (first, next) else {
        return false;
    };
    let parts = [first, name].map(|name| name.split_once(' ').map(|(field, _)| field));
    let is_part = parts[0].is_some() && parts[0] == parts[1];
    let Some(table) = field.kind.table() else {
        return name != first && is_part;
    };
    let word = |name: &str| keyword(name).and_then(|it| table.begins.iter().position(|b| *b == it));
    let is_behind_first = more == 0 && word(first) == Some(0) && word(name) != Some(0);
    is_part && (word(name).is_none() || is_behind_first)
}

/// The keyword that a piece of this name is in a value of several words.
fn keyword(name: &str) -> Option<&str> {
    name.split_once('\'')?.1.strip_suffix('\'')
}

/// A word of a value of several words. A name is in quotes, so that it is no keyword of the value.
fn part(field: &FieldDef, name: &str, token: &Token) -> String {
    let inner = name.split_once(' ').map_or("", |(_, part)| part);
    let table = field.kind.table().map(|table| (table.fields)());
    let mut fields = table.into_iter().flatten();
    let is_name = |kind: &Kind| matches!(kind, Kind::Text(text) if text.shape.is_any());
    match (keyword(name), quote(&token.text)) {
        (None, text)
            if !text.starts_with('"') && fields.any(|f| f.name == inner && is_name(&f.kind)) =>
        {
            format!("\"{text}\"")
        }
        (_, text) => text,
    }
}

/// Adds a word of a value whose first word has the column `first`, where possible at its own column.
fn add_word(text: &mut String, first: usize, field: &FieldDef, piece: &Piece) {
    let Piece::Slot(name, token) = piece else {
        return;
    };
    let before = token.column.saturating_sub(first);
    let width = before.saturating_sub(text.chars().count()).clamp(1, 4096);
    *text += &" ".repeat(width);
    *text += &part(field, name, token);
}

/// The field that a word of a pattern gives a value.
fn given(pattern: &Pattern, text: &str) -> Option<(usize, Value)> {
    match pattern {
        Pattern::Word(word) if word.text == text => word.gives.clone(),
        Pattern::Word(_) | Pattern::Field(_) | Pattern::Setting(_) => None,
        Pattern::Seq(all) | Pattern::OneOf(all) | Pattern::Many(all) => {
            all.iter().find_map(|p| given(p, text))
        }
        Pattern::Optional(inner) => given(inner, text),
    }
}
