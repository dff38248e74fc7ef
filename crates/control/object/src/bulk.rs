//! Requests for many objects of a bulk class.

use crate::FieldError;
use crate::class::Class;
use crate::field::FieldDef;
use crate::instance::{Instance, ObjectKey};
use crate::json::of_map;
use crate::kind::FieldType;
use crate::packed::{BulkKey, Group, Values};
use crate::packing::Packed;
use crate::refuse;
use crate::registry::{Classes, classes};
use crate::value::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Many objects of a class whose keys differ only in their first value: each object gets a set of values, or is removed. Values
/// that several objects share are written once. `Display` gives the number of objects: no command creates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulk {
    class: Class,
    rest: Box<[Value]>,
    sets: Vec<Values>,
    put: Vec<(Packed, u32)>,
    gone: Vec<Packed>,
}

impl Bulk {
    /// A request without objects, for a group.
    pub fn new(group: &Group) -> Bulk {
        Bulk {
            class: group.class().clone(),
            rest: group.values().into(),
            sets: Vec::new(),
            put: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// A request that sets one object; `None` when its class is not a bulk class.
    pub fn with(object: &Instance) -> Option<Bulk> {
        let key = BulkKey::of(&object.key())?;
        let mut bulk = Bulk::new(&key.group);
        let set = bulk.add_set(object.values());
        bulk.put(key.item, set);
        Some(bulk)
    }

    /// A request that removes one object; `None` when its class is not a bulk class.
    pub fn without(key: &ObjectKey) -> Option<Bulk> {
        let key = BulkKey::of(key)?;
        let mut bulk = Bulk::new(&key.group);
        bulk.remove(key.item);
        Some(bulk)
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// A value of the key after the first one, as its type; index 0 is the second value of the key.
    pub fn common<T: FieldType>(&self, at: usize) -> Option<T> {
        self.rest.get(at).and_then(T::from_value)
    }

    /// The group of the objects with an IP version.
    pub fn group(&self, version: u8) -> Group {
        Group::new(&self.class, version, &self.rest)
    }

    /// Adds a set of values and returns its index. The values are in their normal form.
    pub fn add_set(&mut self, values: Values) -> u32 {
        self.sets.push(values);
        self.sets.len() as u32 - 1
    }

    /// Sets the object with this first value of the key to the set of values with this index.
    pub fn put(&mut self, item: Packed, set: u32) {
        self.put.push((item, set));
    }

    /// Removes the object with this first value of the key.
    pub fn remove(&mut self, item: Packed) {
        self.gone.push(item);
    }

    /// The sets of values.
    pub fn sets(&self) -> &[Values] {
        &self.sets
    }

    /// The values of a field that is not part of the key, as its type, one for each set of values.
    pub fn field<T: FieldType>(&self, name: &str) -> Option<Vec<T>> {
        let at = self.class.values().iter().position(|f| f.name == name)?;
        let slot = |set: &Values| T::from_slot(set.0.get(at).and_then(Option::as_ref));
        self.sets.iter().map(slot).collect()
    }

    /// First values of the keys of the set objects, each with the index of its set.
    pub fn puts(&self) -> &[(Packed, u32)] {
        &self.put
    }

    /// First values of the keys of the removed objects.
    pub fn removed(&self) -> &[Packed] {
        &self.gone
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.put.len() + self.gone.len()
    }

    /// Whether the request has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks each set of values with the keys that use it, and brings the sets into normal form.
    fn checked(mut self) -> Result<Bulk, FieldError> {
        const VERSIONS: usize = 8;
        let mut checked = vec![[false; VERSIONS]; self.sets.len()];
        for (item, set) in &self.put {
            let Some(done) = checked.get_mut(*set as usize) else {
                let (why, has) = ("there is no set", self.sets.len());
                let key = item_text(&self.class, item);
                return refuse(
                    "put",
                    format!("has a fault: {why} {set} for {key}: `sets` has {has}"),
                );
            };
            let done = &mut done[usize::from(item.version()) % VERSIONS];
            if std::mem::replace(done, true) {
                continue;
            }
            let key = self.group(item.version()).key(*item);
            let slots = key.instance(&self.sets[*set as usize]).into_slots();
            let whole = self.class.instance(slots);
            let whole =
                whole.or_else(|error| refuse("sets", format!("have a fault: set {set}: {error}")));
            self.sets[*set as usize] = whole?.values();
        }
        Ok(self)
    }
}

fn item_text(class: &Class, item: &Packed) -> String {
    class
        .packing()
        .map_or_else(String::new, |it| (it.text)(item))
}

impl Display for Bulk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (put, gone, noun) = (self.put.len(), self.gone.len(), self.class.noun());
        write!(f, "set {put} and remove {gone} objects of class {noun}")?;
        let fields = self.class.keys().iter().skip(1).zip(&self.rest);
        fields
            .into_iter()
            .try_for_each(|(field, value)| write!(f, ", {} {value}", field.dashed()))
    }
}

/// The fields in a set of values.
fn set_fields(class: &Class) -> impl Iterator<Item = (usize, &FieldDef)> {
    let all = class.values().iter().enumerate();
    all.filter(|(_, field)| !field.repeats)
}

impl Serialize for Bulk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |item| item_text(&self.class, item);
        let set = |set: &Values| -> Json {
            let fields = set_fields(&self.class);
            let value = |(at, field): (usize, &FieldDef)| {
                Some((
                    field.name.to_owned(),
                    field.kind.to_json(set.0[at].as_ref()?),
                ))
            };
            fields.filter_map(value).collect()
        };
        let put = self.put.iter().map(|(item, set)| (text(item), set));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("class", self.class.name())?;
        for (field, value) in self.class.keys().iter().skip(1).zip(&self.rest) {
            map.serialize_entry(field.name, value)?;
        }
        map.serialize_entry("sets", &self.sets.iter().map(set).collect::<Vec<Json>>())?;
        map.serialize_entry("put", &put.collect::<Vec<_>>())?;
        map.serialize_entry("gone", &self.gone.iter().map(text).collect::<Vec<_>>())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Bulk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BulkReader::default().deserialize(deserializer)
    }
}

/// Deserializes a bulk request: one that names its class, or one in the format of an earlier version.
#[derive(Default)]
pub struct BulkReader {
    class: Option<Class>,
    /// The name in earlier versions.
    formerly: Option<&'static str>,
}

impl BulkReader {
    /// A reader for the request of this name in earlier versions; `None` when there was no such request.
    pub fn formerly(name: &str) -> Option<BulkReader> {
        let all = classes();
        let named = |class: &&Class| class.def().bulk && former_name(class) == Some(name);
        let class = all.iter().find(named)?;
        Some(BulkReader {
            class: Some(class.clone()),
            formerly: former_name(class),
        })
    }
}

/// The name of the bulk request of a class in earlier versions.
fn former_name(class: &Class) -> Option<&'static str> {
    let words = class.def().formerly_bulk.split(' ').next();
    words.filter(|name| !name.is_empty())
}

impl<'de> DeserializeSeed<'de> for BulkReader {
    type Value = Bulk;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bulk, D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// The packed form of the first value of a key.
fn packed(class: &Class, text: &str) -> Result<Packed, String> {
    let field = &class.fields()[0];
    if let Some(item) = class.packing().and_then(|it| (it.pack)(text)) {
        return Ok(item);
    }
    let value = field.kind.read(text);
    let value = value.map_err(|why| format!("{} {why}", field.name))?;
    class
        .pack(&value)
        .ok_or_else(|| format!("{} has no packed form", field.name))
}

/// A text, borrowed where possible.
#[derive(Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Visitor<'de> for BulkReader {
    type Value = Bulk;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object with class, sets, put and gone")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bulk, A::Error> {
        let (mut sets, mut put, mut gone) = (Vec::<Json>::new(), Vec::new(), Vec::new());
        let mut keys = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "sets" => sets = map.next_value()?,
                "put" => put = map.next_value::<Vec<(Text<'de>, u32)>>()?,
                "gone" => gone = map.next_value::<Vec<Text<'de>>>()?,
                _ if self.is_left_out(&name) => _ = map.next_value::<IgnoredAny>()?,
                _ => _ = keys.insert(name, map.next_value()?),
            }
        }
        self.bulk(&keys, &sets, &put, &gone)
            .map_err(A::Error::custom)
    }
}

impl BulkReader {
    fn bulk(
        self,
        keys: &Map<String, Json>,
        sets: &[Json],
        put: &[(Text<'_>, u32)],
        gone: &[Text<'_>],
    ) -> Result<Bulk, String> {
        let class = match &self.class {
            Some(class) => class.clone(),
            None => of_bulk(&classes(), keys)?,
        };
        let fields = class.keys().get(1..).unwrap_or_default();
        let rest = fields
            .iter()
            .zip(class.slots_of(Some("class"), keys, fields)?);
        let rest = rest.map(|(field, slot)| field.value_of(slot));
        let sets = sets.iter().map(|set| self.set(&class, set));
        let put = put
            .iter()
            .map(|(text, set)| Ok((packed(&class, &text.0)?, *set)));
        let gone = gone.iter().map(|text| packed(&class, &text.0));
        let bulk = Bulk {
            rest: rest
                .collect::<Result<_, FieldError>>()
                .map_err(|error| error.to_string())?,
            sets: sets.collect::<Result<_, String>>()?,
            put: put.collect::<Result<_, String>>()?,
            gone: gone.collect::<Result<_, String>>()?,
            class: class.clone(),
        };
        bulk.checked().map_err(|error| error.to_string())
    }

    /// Whether a field of an earlier version has no meaning today.
    fn is_left_out(&self, name: &str) -> bool {
        let class = self.class.as_ref().filter(|_| self.formerly.is_some());
        let words = class.map_or("", |class| class.def().formerly_bulk);
        words
            .split(' ')
            .skip(1)
            .any(|word| word.strip_suffix('=') == Some(name))
    }

    /// A set of values, which is checked later with the keys that use it.
    fn set(&self, class: &Class, json: &Json) -> Result<Values, String> {
        let upgraded = match (self.formerly, class.def().upgrade) {
            (Some(name), Some(upgrade)) => upgrade(name, json),
            _ => None,
        };
        let map = upgraded.as_ref().unwrap_or(json).as_object();
        let map = map.ok_or("a set must be an object with the values of fields")?;
        let fields: Vec<FieldDef> = set_fields(class).map(|(_, field)| field.clone()).collect();
        let mut given = class.slots_of(Some("class"), map, &fields)?.into_iter();
        let slot = |field: &FieldDef| match field.repeats {
            true => field.default.clone(),
            false => given.next().flatten().or_else(|| field.default.clone()),
        };
        Ok(Values(class.values().iter().map(slot).collect()))
    }
}

fn of_bulk(all: &Classes, map: &Map<String, Json>) -> Result<Class, String> {
    let class = of_map(all, map)?;
    match class.def().bulk {
        true => Ok(class),
        false => Err(format!(
            "objects of {} are set one by one: use `set`",
            class.noun()
        )),
    }
}

impl JsonSchema for Bulk {
    fn schema_name() -> Cow<'static, str> {
        "Bulk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = classes();
        let schema = |class: &Class| {
            let fields = class.keys().get(1..).unwrap_or_default();
            let mut schema = class.schema_of(fields, Some("class"));
            let set: Vec<FieldDef> = set_fields(class).map(|(_, field)| field.clone()).collect();
            let (set, key) = (class.schema_of(&set, None), class.fields()[0].schema());
            let number = serde_json::json!({ "type": "integer", "minimum": 0 });
            let lists = [
                ("sets", "Values that objects have; set 0 is the first.", set),
                (
                    "put",
                    "Keys of objects, each with the number of the set that the object has from now on.",
                    serde_json::json!({ "type": "array", "prefixItems": [key, number] }),
                ),
                ("gone", "Keys of objects that are removed.", key.clone()),
            ];
            for (name, doc, items) in lists {
                let list =
                    serde_json::json!({ "type": "array", "description": doc, "items": items });
                schema["properties"][name] = list;
            }
            schema
        };
        let bulk = all.iter().filter(|class| class.def().bulk);
        let all: Vec<Json> = bulk.map(schema).collect();
        json_schema!({ "oneOf": all })
    }
}
