//! Commands of registered classes, queries and verbs.

use crate::action::Action;
use crate::grammar::{Id, Of, Piece};
use crate::own;
use crate::token::{Form, Token};
use volley_model::{InterfaceSpec, Request, SyntaxError};
use volley_object::pattern::Pattern;
use volley_object::{
    Change, Class, Effect, FieldDef, FieldError, Instance, Invocation, Kind, Part, TextError,
    Value, VerbClass, classes, quote,
};

fn gone(id: Id) -> SyntaxError {
    SyntaxError::new(1, format!("{} was removed meanwhile", id.class))
}

/// Builds the request of a command of a class.
pub(super) fn request(id: Id, pieces: &[Piece], end: usize) -> Result<Action, SyntaxError> {
    let all = classes();
    let class = id.class(&all).ok_or_else(|| gone(id))?;
    let pattern = id.pattern(class);
    let read = read(class, pattern, pieces)?;
    let whole = || class.instance(read.slots.clone());
    let keys = || read.slots.iter().take(class.keys().len()).cloned();
    let key = || class.key_of_slots(keys());
    let of_values = pattern.is_some_and(|p| p.names_value(class.fields()));
    let no_values = || read.slots[class.keys().len()..].iter().all(Option::is_none);
    let request = match id.of {
        Of::Object(Effect::Set) if class.is_interface() => whole().map(|kind| {
            let mut spec = InterfaceSpec::of_object(kind);
            read.settings.iter().for_each(|it| spec.create_with(it));
            Request::InterfaceCreate(spec)
        }),
        Of::Object(Effect::Set) => whole().map(Request::Set),
        Of::Object(Effect::Unset) if of_values => whole().map(Request::UnsetExact),
        Of::Object(Effect::Unset) => class.key_or_group(keys()).map(Request::without),
        Of::Object(Effect::Add) => whole().map(Request::Add),
        Of::Object(Effect::Take) if !no_values() => {
            Part::new(class, read.slots.clone()).map(Request::Take)
        }
        Of::Object(Effect::UnsetAny) => key().map(Request::UnsetAny),
        Of::Object(Effect::Change) => Change::new(class, read.slots.clone()).map(Request::Change),
        _ => key().map(Request::Unset),
    };
    let request = request.map_err(|error| read.placed(class, error, end))?;
    Ok(Action::Request(Box::new(request)))
}

/// Builds the query of a command.
pub(super) fn query(id: Id, pieces: &[Piece], end: usize) -> Result<Action, SyntaxError> {
    let all = classes();
    let query = all.query(id.class).ok_or_else(|| gone(id))?;
    let class = query.class();
    let read = read(class, id.pattern(class), pieces)?;
    let has = |word: &str| {
        let mut pieces = pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Word(text, _) if *text == word))
    };
    let view = query.view(has, &read.slots);
    let typed = class.fields().iter().map(|field| field.typed.clone());
    let slots = read.slots.iter().cloned().zip(typed);
    let asked = query.call(slots.map(|(given, typed)| given.or(typed)).collect());
    let asked = asked.map_err(|error| read.placed(class, error, end))?;
    Ok(Action::Query(asked, view))
}

/// Builds the request of a command of a verb.
pub(super) fn invocation(id: Id, pieces: &[Piece], end: usize) -> Result<Action, SyntaxError> {
    let all = classes();
    let verb = all.verb(id.class).ok_or_else(|| gone(id))?;
    let invoked = invoked(verb, id, pieces, end)?;
    Ok(Action::Request(Box::new(Request::Do(invoked))))
}

/// Builds the action of a command of the command line itself.
pub(super) fn own(id: Id, pieces: &[Piece], end: usize) -> Result<Action, SyntaxError> {
    let verb = own::named(id.class).ok_or_else(|| gone(id))?;
    own::action(&invoked(verb, id, pieces, end)?).ok_or_else(|| gone(id))
}

fn invoked(
    verb: &VerbClass,
    id: Id,
    pieces: &[Piece],
    end: usize,
) -> Result<Invocation, SyntaxError> {
    let class = verb.class();
    let read = read(class, id.pattern(class), pieces)?;
    let invoked = verb.call(read.slots.clone());
    invoked.map_err(|error| read.placed(class, error, end))
}

struct Read {
    slots: Vec<Option<Value>>,
    columns: Vec<Option<usize>>,
    /// Settings of an interface that is being created.
    settings: Vec<Instance>,
}

/// A setting of an interface that is being created.
fn setting(class: &str, token: &Token) -> Result<Instance, SyntaxError> {
    let placed = |why: String| SyntaxError::new(token.column, why);
    let classes = classes();
    let field = classes.get(class).and_then(|it| it.values().first());
    let value = field.map(|field| field.kind.read(&token.text));
    let value = value.unwrap_or_else(|| Ok(Value::text(&token.text)));
    let value = value.map_err(|why| placed(format!("{class} {why}")))?;
    // Any name will do: the request that creates the interface contains the setting.
    Instance::of_value(class, "a", value).map_err(|why| placed(why.to_string()))
}

impl Read {
    /// Places an error at the word of the field, else at the end of the line.
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
            Piece::Word(text, column) => match pattern.and_then(|pattern| pattern.given_by(text)) {
                Some((at, value)) => (*at, value.clone(), *column),
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

/// Places an error at the word of the value that is wrong, or at the value as a whole.
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

/// Whether a piece is a further word of a value of several words that begins with `first` and has this many more words.
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

/// A word of a value of several words. A name is quoted, so that it is not read as a keyword of the value.
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

/// Appends a word to a value whose first word is at column `first`, padded to the word's own column where possible.
fn add_word(text: &mut String, first: usize, field: &FieldDef, piece: &Piece) {
    let Piece::Slot(name, token) = piece else {
        return;
    };
    let before = token.column.saturating_sub(first);
    let width = before.saturating_sub(text.chars().count()).clamp(1, 4096);
    *text += &" ".repeat(width);
    *text += &part(field, name, token);
}
