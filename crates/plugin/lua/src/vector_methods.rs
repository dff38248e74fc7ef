//! The methods of vectors. In `packet` the vector has one packet, so that sets and rows may be left out.

use crate::api::{Known, RouteTable, interface, mac, raise};
use crate::batch::Batch;
use crate::fields::{self, Place, mac_number};
use crate::masks::ALL;
use crate::replies;
use crate::sets::BATCH;
use crate::tables::address;
use crate::verdict::{Verdict, reason};
use mlua::{Either, Error, Lua, UserData, UserDataMethods, UserDataRefMut, Value};
use std::net::{Ipv4Addr, Ipv6Addr};
use volley_sdk::wire::MacAddr;
use volley_sdk::wire::field::FieldKind;

/// A mask, and another argument, either of which may be missing.
type Leading<T> = (Option<Either<u32, T>>, Option<T>);

fn split<T>((first, second): Leading<T>) -> (u32, Option<T>) {
    match (first, second) {
        (Some(Either::Left(mask)), second) => (mask, second),
        (Some(Either::Right(only)), None) => (BATCH, Some(only)),
        (_, second) => (BATCH, second),
    }
}

/// The index of an interface.
fn index(lua: &Lua, name: &str) -> mlua::Result<u32> {
    let known = lua.app_data_ref::<Known>();
    let known = known.ok_or_else(|| Error::runtime("the interfaces are not known"))?;
    Ok(interface(&known.0, name)?.index)
}

/// A field's value for Lua: a number, or the text of an address.
fn to_lua(lua: &Lua, place: Place, value: u128) -> mlua::Result<Value> {
    let text = match place.field.kind {
        FieldKind::Mac => {
            let [_, _, mac @ ..] = (value as u64).to_be_bytes();
            MacAddr(mac).to_string()
        }
        FieldKind::Ip4 => Ipv4Addr::from_bits(value as u32).to_string(),
        FieldKind::Ip6 => Ipv6Addr::from_bits(value).to_string(),
        FieldKind::Number | FieldKind::Bytes => return Ok(Value::Number(value as f64)),
    };
    Ok(Value::String(lua.create_string(&text)?))
}

/// A field's value from Lua.
fn from_lua(place: Place, value: &Value) -> mlua::Result<u128> {
    let name = place.field.name;
    let wrong = || Error::runtime(format!("the value of `{name}` is not valid"));
    let number = match (value, place.field.kind) {
        (Value::Integer(number), _) => u128::try_from(*number).map_err(|_| wrong())?,
        (Value::Number(number), _) => {
            let is_whole = *number >= 0.0 && number.fract() == 0.0 && *number < 2_f64.powi(53);
            is_whole.then_some(*number as u128).ok_or_else(wrong)?
        }
        (Value::String(text), FieldKind::Mac) => mac_number(mac(&text.to_str()?)?),
        (Value::String(text), FieldKind::Ip4) => {
            u128::from(address(&text.to_str()?).map_err(raise)?)
        }
        (Value::String(text), FieldKind::Ip6) => {
            let parsed: Result<Ipv6Addr, _> = text.to_str()?.parse();
            parsed.map_err(|_| wrong())?.to_bits()
        }
        _ => return Err(wrong()),
    };
    match place.fits(number) {
        true => Ok(number),
        false => Err(Error::runtime(format!(
            "{number} does not fit into the {} bits of `{name}`",
            place.field.bits
        ))),
    }
}

impl UserData for Batch {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        masks(methods);
        scatter(methods);
        vectors(methods);
        packets(methods);
        verdicts(methods);
        replies(methods);
    }
}

/// Sets of packets.
fn masks<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method("len", |_, this, ()| this.len().map_err(raise));
    methods.add_method("all", |_, _, ()| Ok(ALL));
    methods.add_method_mut("none", |_, this, ()| this.sets.masks.add().map_err(raise));
    methods.add_method_mut("rest", |_, this, ()| this.rest().map_err(raise));
    methods.add_method_mut("both", |_, this, (a, b): (u32, u32)| {
        this.sets.masks.both(a, b, |a, b| a & b).map_err(raise)
    });
    methods.add_method_mut("either", |_, this, (a, b): (u32, u32)| {
        this.sets.masks.both(a, b, |a, b| a | b).map_err(raise)
    });
    methods.add_method_mut("minus", |_, this, (a, b): (u32, u32)| {
        this.sets.masks.both(a, b, |a, b| a & !b).map_err(raise)
    });
    methods.add_method("count", |_, this, mask: u32| {
        this.sets.count(mask).map_err(raise)
    });
    methods.add_method("next_row", |_, this, (mask, row): (u32, Option<u32>)| {
        this.next_row(mask, row.unwrap_or(0)).map_err(raise)
    });
}

/// Arrays, and packets that drop out of the batch.
fn scatter<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method_mut("split", |_, this, set: u32| {
        this.sets.split(set).map_err(raise)
    });
    methods.add_method_mut("drop_out", |_, this, set: u32| {
        this.sets.drop_out(set).map_err(raise)
    });
    methods.add_method_mut("compact", |_, this, ()| {
        this.sets.compact();
        Ok(())
    });
}

/// Whole vectors.
fn vectors<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method_mut("ethertype", |_, this, (kind, mask): (u16, Option<u32>)| {
        this.ether_type(mask.unwrap_or(BATCH), kind).map_err(raise)
    });
    methods.add_method_mut("to_me", |_, this, mask: Option<u32>| {
        this.for_me(mask.unwrap_or(BATCH)).map_err(raise)
    });
    methods.add_method_mut(
        "match",
        |_, this, (name, value, mask): (String, Value, Option<u32>)| {
            let place = fields::find(&name).map_err(raise)?;
            let value = from_lua(place, &value)?;
            let mask = mask.unwrap_or(BATCH);
            this.matching(mask, place, value).map_err(raise)
        },
    );
    methods.add_method_mut(
        "between",
        |_, this, (name, low, high, set): (String, Value, Value, Option<u32>)| {
            let place = fields::find(&name).map_err(raise)?;
            let range = (from_lua(place, &low)?, from_lua(place, &high)?);
            let set = set.unwrap_or(BATCH);
            this.between(set, place, range).map_err(raise)
        },
    );
    methods.add_method_mut(
        "put",
        |_, this, (name, value, set): (String, Value, Option<u32>)| {
            let place = fields::find(&name).map_err(raise)?;
            let value = from_lua(place, &value)?;
            let set = set.unwrap_or(BATCH);
            this.write_all(set, place, value).map_err(raise)
        },
    );
    methods.add_method_mut("check_ip4", |_, this, mask: Option<u32>| {
        this.check_ip4(mask.unwrap_or(BATCH)).map_err(raise)
    });
    methods.add_method_mut(
        "lookup",
        |_, this, (mut table, mask): (UserDataRefMut<RouteTable>, Option<u32>)| {
            let mask = mask.unwrap_or(BATCH);
            let done = table.read(|view, hops, _| this.lookup(mask, view, hops));
            done.map_err(raise)
        },
    );
    methods.add_method_mut("apply", |_, this, mask: Option<u32>| {
        this.apply(mask.unwrap_or(BATCH)).map_err(raise)
    });
}

/// Fields and bytes of single packets.
fn packets<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method_mut("get", |lua, this, arguments: (Value, Option<Value>)| {
        let (row, name) = row_and_name(arguments)?;
        let place = fields::find(&name).map_err(raise)?;
        let value = this.read(row, place).map_err(raise)?;
        value.map_or(Ok(Value::Nil), |value| to_lua(lua, place, value))
    });
    methods.add_method_mut(
        "set",
        |_, this, (first, second, third): (Value, Value, Option<Value>)| {
            let (row, name, value) = match third {
                Some(value) => {
                    let (row, name) = row_and_name((first, Some(second)))?;
                    (row, name, value)
                }
                None => (None, row_and_name((first, None))?.1, second),
            };
            let place = fields::find(&name).map_err(raise)?;
            let value = from_lua(place, &value)?;
            this.write(row, place, value).map_err(raise)
        },
    );
    methods.add_method_mut("byte", |_, this, (at, row): (u32, Option<u32>)| {
        this.byte(row, at).map_err(raise)
    });
    methods.add_method_mut(
        "set_byte",
        |_, this, (at, byte, row): (u32, u8, Option<u32>)| {
            this.set_byte(row, at, byte).map_err(raise)
        },
    );
    methods.add_method_mut("length", |_, this, row: Option<u32>| {
        this.length(row).map_err(raise)
    });
    methods.add_method_mut("interface", |lua, this, row: Option<u32>| {
        let rx = this.rx(row).map_err(raise)?;
        let known = lua.app_data_ref::<Known>();
        let found = known.and_then(|all| {
            let found = all.0.iter().find(|it| it.index == rx);
            found.map(|it| it.name.clone())
        });
        Ok(found)
    });
}

/// The arguments `[row,] name`.
fn row_and_name(arguments: (Value, Option<Value>)) -> mlua::Result<(Option<u32>, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.to_str()?.to_owned()),
        _ => Err(Error::runtime("name a field, such as \"ip4.ttl\"")),
    };
    match arguments {
        (name, None) => Ok((None, text(&name)?)),
        (row, Some(name)) => {
            let number = row.as_u32();
            let row = number.ok_or_else(|| Error::runtime("a packet is named by its number"))?;
            Ok((Some(row), text(&name)?))
        }
    }
}

/// What becomes of packets.
fn verdicts<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method_mut("send", |lua, this, arguments: Leading<String>| {
        let (mask, name) = split(arguments);
        let interface = name.map(|name| index(lua, &name)).transpose()?;
        this.send(mask, interface).map_err(raise)
    });
    methods.add_method_mut("forward", |_, this, mask: Option<u32>| {
        this.forward(mask.unwrap_or(BATCH)).map_err(raise)
    });
    methods.add_method_mut("drop", |_, this, arguments: Leading<String>| {
        let (mask, name) = split(arguments);
        let name = name.ok_or_else(|| Error::runtime("name the reason of the drop"))?;
        let verdict = Verdict::Drop(reason(&name).map_err(raise)?);
        this.decide(mask, verdict).map_err(raise)
    });
    methods.add_method_mut("next", |_, this, mask: Option<u32>| {
        this.decide(mask.unwrap_or(BATCH), Verdict::Next)
            .map_err(raise)
    });
    methods.add_method_mut("slow", |_, this, mask: Option<u32>| {
        this.decide(mask.unwrap_or(BATCH), Verdict::Slow)
            .map_err(raise)
    });
}

/// Packets that become replies. They are sent on the interface that received them unless `send` names another one.
fn replies<M: UserDataMethods<Batch>>(methods: &mut M) {
    methods.add_method_mut("arp_reply", |_, this, owner: String| {
        let owner = mac(&owner)?;
        this.reply(|packet| replies::arp_reply(packet, owner))
            .map_err(raise)
    });
    methods.add_method_mut(
        "arp_request",
        |_, this, (source, sender, target): (String, String, String)| {
            let source = mac(&source)?;
            let sender = Ipv4Addr::from_bits(address(&sender).map_err(raise)?);
            let target = Ipv4Addr::from_bits(address(&target).map_err(raise)?);
            this.reply(|packet| replies::arp_request(packet, source, (sender, target)))
                .map_err(raise)
        },
    );
    methods.add_method_mut("echo_reply", |_, this, ()| {
        this.reply(replies::echo_reply).map_err(raise)
    });
    methods.add_method_mut(
        "icmp_error",
        |_, this, (kind, code, source, rest): (u8, u8, String, Option<u32>)| {
            let source = Ipv4Addr::from_bits(address(&source).map_err(raise)?);
            let message = (kind, code, rest.unwrap_or(0));
            this.reply(|packet| replies::icmp_error(packet, message, source))
                .map_err(raise)
        },
    );
}
