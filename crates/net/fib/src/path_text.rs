//! Text and field-table form of a path of a route: `via 192.0.2.1 pg0 weight 2`.

use crate::path::{Path, PathTarget, WEIGHT};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::OnceLock;
use volley_object::{
    FieldDef, FieldError, FieldType, Kind, Reference, TextError, TextTable, Value, syntax_field,
};

syntax_field!(
    Path,
    "a path of a route",
    Any,
    [
        "via 192.0.2.1 pg0",
        "via drop",
        "via 192.0.2.1 next-hop-table 7 weight 2",
        "via pg1 preference 3"
    ],
    "(via (<via> [<interface>] [next-hop-table <next_hop_table>] | <interface> | drop | unreachable | prohibit | local | \
     (lookup-in-table | ip4-lookup-in-table | ip6-lookup-in-table) <lookup_in>) | drop | unreachable | prohibit | local) \
     {onlink | weight <weight> | preference <preference>}",
    Some(&TABLE)
);

static TABLE: TextTable = TextTable {
    fields,
    text: |values| Ok(of_values(values)?.to_string()),
    values: |text| text.parse().map_or(Vec::new(), |path| values_of(&path)),
    begins: &["via", "drop", "unreachable", "prohibit", "local"],
};

/// Actions without next hop, by keyword.
const ACTIONS: [(&str, &str, PathTarget); 4] = [
    ("drop", "Drop the packets.", PathTarget::Drop),
    (
        "unreachable",
        "Drop the packets, and send ICMP destination unreachable.",
        PathTarget::Unreachable,
    ),
    (
        "prohibit",
        "Drop the packets, and send ICMP administratively prohibited.",
        PathTarget::Prohibit,
    ),
    (
        "local",
        "The packets are for this router.",
        PathTarget::Local,
    ),
];

fn fields() -> &'static [FieldDef] {
    static FIELDS: OnceLock<Vec<FieldDef>> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let field = |name, doc, kind, reference| FieldDef {
            name,
            doc,
            kind,
            reference,
            key: !["onlink", "weight", "preference"].contains(&name),
            optional: true,
            ..FieldDef::default()
        };
        let number = |min, max| Kind::Number {
            min,
            max,
            scaled: false,
        };
        let actions = ACTIONS.iter().map(|(name, doc, _)| (*name, *doc)).collect();
        let weights = number((*WEIGHT.start()).into(), (*WEIGHT.end()).into());
        let [table, interface] = ["table", "interface"].map(|class| Some(Reference::needs(class)));
        vec![
            field("via", "Next hop.", IpAddr::kind(), None),
            field(
                "interface",
                "Interface of the next hop; alone: destinations are on its link.",
                String::kind(),
                interface,
            ),
            field(
                "next_hop_table",
                "Table to look the next hop up in; without it, the table of the route.",
                u32::kind(),
                table,
            ),
            field(
                "action",
                "What becomes of the packets.",
                Kind::Choice(actions),
                None,
            ),
            field(
                "lookup_in",
                "Another table to look the destination up in.",
                u32::kind(),
                table,
            ),
            field(
                "onlink",
                "The next hop is on the link of its interface, though no address there says so.",
                bool::kind(),
                None,
            ),
            field(
                "weight",
                "Share of the traffic among paths of the same preference.",
                weights,
                None,
            ),
            field(
                "preference",
                "Of the usable paths those with the smallest preference forward.",
                u8::kind(),
                None,
            ),
        ]
    })
}

/// Values of the fields, without defaults.
fn values_of(path: &Path) -> Vec<Option<Value>> {
    let number = |number: u32| Value::Number(number.into());
    let (mut via, mut interface, mut next_hop_table) = (None, None, None);
    let (mut action, mut lookup_in) = (None, None);
    match &path.target {
        PathTarget::Via {
            addr,
            interface: on,
            table,
        } => {
            via = Some(Value::text(addr.to_string()));
            interface = on.as_ref().map(Value::text);
            next_hop_table = table.map(number);
        }
        PathTarget::Interface(name) => interface = Some(Value::text(name)),
        PathTarget::LookupIn(table) => lookup_in = Some(number(*table)),
        other => action = Some(Value::text(other.to_string())),
    }
    vec![
        via,
        interface,
        next_hop_table,
        action,
        lookup_in,
        path.onlink.then_some(Value::Bool(true)),
        (path.weight != 1).then(|| number(path.weight)),
        (path.preference != 0).then(|| number(path.preference.into())),
    ]
}

fn of_values(values: &[Option<Value>]) -> Result<Path, FieldError> {
    let value = |at: usize| values.get(at).and_then(Option::as_ref);
    let refuse = |why: &str| FieldError {
        field: "path",
        why: why.to_owned(),
    };
    let addr = value(0).and_then(IpAddr::from_value);
    let interface = value(1).and_then(String::from_value);
    let table = value(2).and_then(u32::from_value);
    let action = value(3).and_then(Value::as_text);
    let lookup_in = value(4).and_then(u32::from_value);
    let target = match (addr, interface, table, action, lookup_in) {
        (Some(addr), interface, table, None, None) => PathTarget::Via {
            addr,
            interface,
            table,
        },
        (None, Some(interface), None, None, None) => PathTarget::Interface(interface),
        (None, None, None, Some(word), None) => action_of(word)
            .ok_or_else(|| refuse("must lead to one of drop, unreachable, prohibit, local"))?,
        (None, None, None, None, Some(table)) => PathTarget::LookupIn(table),
        (None, None, None, None, None) => {
            return Err(refuse(
                "leads nowhere: give one of via, interface, action, lookup_in",
            ));
        }
        (None, _, Some(_), _, _) => {
            return Err(refuse("has a next_hop_table without a next hop: give via"));
        }
        _ => {
            let why = "leads to several places: give one of via, interface, action, lookup_in (via may have an interface)";
            return Err(refuse(why));
        }
    };
    let path = Path {
        onlink: value(5).and_then(bool::from_value).unwrap_or_default(),
        weight: value(6).and_then(u32::from_value).unwrap_or(1),
        preference: value(7).and_then(u8::from_value).unwrap_or(0),
        ..Path::to(target)
    };
    let sound = path.validate(None);
    sound.map_err(|error| refuse(&error.to_string()))?;
    Ok(path)
}

fn action_of(word: &str) -> Option<PathTarget> {
    let found = ACTIONS.iter().find(|(name, _, _)| *name == word);
    found.map(|(_, _, target)| target.clone())
}

/// A word of a path, its column from 1, and whether it is quoted (then it is a name).
struct Part {
    text: String,
    column: usize,
    quoted: bool,
}

fn parts(text: &str) -> Result<Vec<Part>, TextError> {
    let mut all = Vec::new();
    let mut chars = text.chars().enumerate().peekable();
    while let Some((at, first)) = chars.next() {
        if first.is_whitespace() {
            continue;
        }
        let (column, quoted) = (at + 1, first == '"');
        let mut word = String::new();
        let mut closed = !quoted;
        if !quoted {
            word.push(first);
        }
        while let Some((_, c)) = chars.next_if(|(_, c)| quoted || !c.is_whitespace()) {
            match c {
                '"' if quoted => {
                    closed = true;
                    break;
                }
                '\\' if quoted => word.extend(chars.next().map(|(_, c)| c)),
                other => word.push(other),
            }
        }
        if !closed {
            let why = "the quote is not closed".to_owned();
            let column = Some(column);
            return Err(TextError { column, why });
        }
        all.push(Part {
            text: word,
            column,
            quoted,
        });
    }
    Ok(all)
}

type Parts = std::iter::Peekable<std::vec::IntoIter<Part>>;

fn wrong(part: &Part, why: impl Into<String>) -> TextError {
    TextError {
        column: Some(part.column),
        why: why.into(),
    }
}

/// The number after a word.
fn number<T: FromStr>(parts: &mut Parts, word: &Part) -> Result<T, TextError> {
    let behind = parts.next();
    let part = behind.as_ref().unwrap_or(word);
    let read = behind.as_ref().and_then(|it| it.text.parse().ok());
    read.ok_or_else(|| wrong(part, format!("expected a number behind '{}'", word.text)))
}

/// The target that begins with this word.
fn target(first: &Part, parts: &mut Parts) -> Result<PathTarget, TextError> {
    let word = first.text.as_str();
    if first.quoted {
        return Ok(PathTarget::Interface(word.to_owned()));
    }
    if let Some(action) = action_of(word) {
        return Ok(action);
    }
    if word.ends_with("lookup-in-table") {
        return number(parts, first).map(PathTarget::LookupIn);
    }
    let Ok(addr) = word.parse::<IpAddr>() else {
        return Ok(PathTarget::Interface(word.to_owned()));
    };
    let options = ["next-hop-table", "onlink", "weight", "preference"];
    let is_name = |it: &Part| it.quoted || !options.contains(&it.text.as_str());
    let interface = parts.next_if(is_name).map(|part| part.text);
    let is_table = |it: &Part| !it.quoted && it.text == "next-hop-table";
    let word = parts.next_if(is_table);
    let table = word.map(|word| number(parts, &word)).transpose()?;
    Ok(PathTarget::Via {
        addr,
        interface,
        table,
    })
}

impl FromStr for Path {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Path, TextError> {
        let mut parts: Parts = parts(text)?.into_iter().peekable();
        let nowhere = || {
            let why = "must be a path of a route such as 'via 192.0.2.1' or 'via drop'";
            TextError::from(why.to_owned())
        };
        let first = parts.next().ok_or_else(nowhere)?;
        let mut path = Path::to(match (first.quoted, first.text.as_str()) {
            (false, "via") => {
                let next = parts.next();
                let next = next.ok_or_else(|| wrong(&first, "nothing is behind 'via'"))?;
                target(&next, &mut parts)?
            }
            (false, word) => action_of(word).ok_or_else(nowhere)?,
            (true, _) => return Err(nowhere()),
        });
        while let Some(part) = parts.next() {
            match (part.quoted, part.text.as_str()) {
                (false, "onlink") => path.onlink = true,
                (false, "weight") => path.weight = number(&mut parts, &part)?,
                (false, "preference") => path.preference = number(&mut parts, &part)?,
                (_, word) => {
                    let shown = word.escape_debug();
                    let why = format!("expected onlink, weight or preference, not '{shown}'");
                    return Err(wrong(&part, why));
                }
            }
        }
        let sound = path.validate(None);
        sound.map_err(|error| TextError::from(error.to_string()))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for text in [
            "via 192.0.2.1",
            "via 192.0.2.1 pg0 onlink weight 3 preference 7",
            "via 2001:db8::1 next-hop-table 7",
            "via \"lan\"",
            "via \"192.0.2.1\"",
            "via 192.0.2.1 \"drop\"",
            "via drop weight 2",
            "via lookup-in-table 3",
        ] {
            let path: Path = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(of_values(&values_of(&path)).unwrap(), path, "{text}");
        }
        assert_eq!("drop".parse::<Path>().unwrap().to_string(), "via drop");
    }

    #[test]
    fn a_wrong_path_is_refused_where_it_is_wrong() {
        for (text, column, why) in [
            ("", None, "must be a path"),
            ("via", Some(1), "nothing is behind"),
            ("pg0", None, "must be a path"),
            ("via 192.0.2.1 weight x", Some(22), "expected a number"),
            ("via 192.0.2.1 pg0 pg1", Some(19), "not 'pg1'"),
            ("via 192.0.2.1 weight 0", None, "it must be 1 to 255"),
            ("via \"pg0", Some(5), "not closed"),
        ] {
            let error = text.parse::<Path>().unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.why.contains(why), "{text}: {}", error.why);
        }
    }
}
