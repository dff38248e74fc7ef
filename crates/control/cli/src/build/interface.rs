//! Interfaces, their addresses, neighbours, L2 bindings and features.

use super::args::Args;
use crate::grammar::Id;
use volley_model::{
    AdminState, InterfaceKind, InterfaceSpec, Request, SubInterfaceSpec, SyntaxError, VlanTag,
};

pub(super) fn create(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let (mut mac, mut mtu) = (None, None);
    while let Some((word, column)) = args.option()? {
        match word {
            "mac" => mac = Some(args.read()?),
            "mtu" => mtu = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::InterfaceCreate(InterfaceSpec {
        name,
        kind: InterfaceKind::Pg,
        mac,
        mtu,
    }))
}

pub(super) fn create_sub(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (parent, column) = (args.text()?, args.column());
    let id = args.number32()?;
    let (mut outer, mut inner, mut mtu) = (None, None, None);
    while let Some((word, column)) = args.option()? {
        let kind = match word {
            "dot1q" => VlanTag::Dot1q,
            "dot1ad" => VlanTag::Dot1ad,
            "inner-dot1q" => {
                inner = Some((args.number(u64::from(u16::MAX))? as u16, column));
                continue;
            }
            "mtu" => {
                mtu = Some(args.number32()?);
                continue;
            }
            // It is so anyway.
            "exact-match" => continue,
            _ => {
                stray(word, column)?;
                continue;
            }
        };
        if outer.is_some() {
            let why = "there is one outer tag: dot1q or dot1ad";
            return Err(SyntaxError::new(column, why));
        }
        outer = Some((kind, args.number(u64::from(u16::MAX))? as u16));
    }
    if let (None, Some((_, column))) = (outer, inner) {
        let why = "inner-dot1q stands behind another tag: give dot1q or dot1ad too";
        return Err(SyntaxError::new(column, why));
    }
    let own = || u16::try_from(id).ok().filter(|id| (1..=4094).contains(id));
    let none = || {
        let why = format!("{id} is no VLAN: give the tag, such as 'dot1q 100'");
        SyntaxError::new(column, why)
    };
    let (tag, vlan) = match outer {
        Some(outer) => outer,
        None => (VlanTag::Dot1q, own().ok_or_else(none)?),
    };
    let spec = SubInterfaceSpec {
        parent,
        id,
        tag,
        vlan,
        inner: inner.map(|(vlan, _)| vlan),
    };
    Ok(Request::InterfaceCreate(InterfaceSpec {
        name: spec.name(),
        kind: InterfaceKind::SubInterface(spec),
        mac: None,
        mtu,
    }))
}

/// A word that the pattern has and the builder does not know: a fault of the table, reported.
pub(super) fn stray(word: &str, column: usize) -> Result<(), SyntaxError> {
    Err(SyntaxError::new(
        column,
        format!("'{word}' has no meaning here"),
    ))
}

pub(super) fn set(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::SetState => {
            let name = args.text()?;
            let state = if args.has("up") {
                AdminState::Up
            } else {
                AdminState::Down
            };
            Request::InterfaceState { name, state }
        }
        Id::SetName => Request::InterfaceRename {
            name: args.text()?,
            new_name: args.text()?,
        },
        _ => Request::InterfaceDelete { name: args.text()? },
    })
}
