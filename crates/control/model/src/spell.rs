//! `Display` of requests: the command line that makes the same request again.

use crate::interface::{InterfaceSpec, Switch};
use crate::request::Request;
use crate::route::{Path, PathTarget};
use std::fmt::{self, Display, Formatter};
use volley_object::quote;

type Out<'a, 'b> = &'a mut Formatter<'b>;

/// ` word value` when there is a value.
fn opt(f: Out<'_, '_>, word: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |v| write!(f, " {word} {v}"))
}

/// A name where a keyword could stand as well: in quotes unless no keyword looks like it.
pub(crate) fn apart(name: &str) -> String {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let digit = name.ends_with(|c: char| c.is_ascii_digit());
    let unlike = letter
        && digit
        && !name.contains(':')
        && !name.starts_with("ip")
        && !name.starts_with("l2");
    if unlike {
        quote(name)
    } else {
        format!("\"{name}\"")
    }
}

impl Display for Switch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Switch::On => "on",
            Switch::Off => "off",
        })
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Request::InterfaceCreate(spec) => write!(f, "{spec}"),
            Request::InterfaceDelete { name } => write!(f, "delete interface {name}"),
            Request::InterfaceRename { name, new_name } => {
                write!(f, "set interface name {name} {new_name}")
            }
            Request::Do(invocation) => f.write_str(&invocation.command()),
            Request::Set(object) => f.write_str(&object.set_command()),
            Request::Unset(key) => f.write_str(&key.unset_command()),
            Request::Add(object) => f.write_str(&object.add_command()),
            Request::Take(part) => write!(f, "{part}"),
            Request::Bulk(bulk) => write!(f, "{bulk}"),
            Request::UnsetExact(object) => f.write_str(&object.unset_command()),
            Request::Change(change) => write!(f, "{change}"),
            Request::UnsetAny(key) => f.write_str(&key.unset_any_command()),
        }
    }
}

impl Display for InterfaceSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.set_command())?;
        let mut settings = self.settings().into_iter();
        settings.try_for_each(|(class, value)| write!(f, " {class} {value}"))
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "via {}", self.target)?;
        if self.onlink {
            f.write_str(" onlink")?;
        }
        opt(f, "weight", Some(self.weight).filter(|w| *w != 1))?;
        opt(f, "preference", Some(self.preference).filter(|p| *p != 0))
    }
}

impl Display for PathTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PathTarget::Via {
                addr,
                interface,
                table,
            } => {
                write!(f, "{addr}")?;
                interface
                    .as_deref()
                    .map_or(Ok(()), |i| write!(f, " {}", apart(i)))?;
                opt(f, "next-hop-table", *table)
            }
            PathTarget::Interface(name) => f.write_str(&apart(name)),
            PathTarget::Drop => f.write_str("drop"),
            PathTarget::Unreachable => f.write_str("unreachable"),
            PathTarget::Prohibit => f.write_str("prohibit"),
            PathTarget::Local => f.write_str("local"),
            PathTarget::LookupIn(table) => write!(f, "lookup-in-table {table}"),
        }
    }
}
