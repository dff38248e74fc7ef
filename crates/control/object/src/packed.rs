//! Compact keys for classes with very many objects.

use crate::class::Class;
use crate::instance::{Instance, ObjectKey};
use crate::packing::{PACKED, Packed, Packing};
use crate::value::Value;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The common part of keys of a bulk class: the class, the IP version, and the values after the first one. Cheap to clone.
#[derive(Clone)]
pub struct Group(Arc<Shared>);

struct Shared {
    class: Class,
    version: u8,
    values: Box<[Value]>,
    unsaved: bool,
    hash: u64,
}

/// The key of an object of a bulk class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BulkKey {
    /// The part in common with other keys.
    pub group: Group,
    /// The first value of the key.
    pub item: Packed,
    room: Room,
}

/// One byte with few valid values: an enum that contains such keys stores its discriminant in the unused values (a niche).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
enum Room {
    Free = 0,
}

/// The values of the fields besides the key, which many objects share. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values(pub(crate) Arc<[Option<Value>]>);

impl Class {
    /// How the first value of a key of a bulk class is packed.
    pub(crate) fn packing(&self) -> Option<&'static Packing> {
        self.fields().first()?.kind.packing()
    }

    /// The packed form of the first value of a key.
    pub fn pack(&self, value: &Value) -> Option<Packed> {
        (self.packing()?.pack)(value.as_text()?)
    }

    /// The value a number of steps after another one.
    pub fn step(&self, item: &Packed, steps: u64) -> Option<Packed> {
        (self.packing()?.step)(item, steps)
    }
}

impl Group {
    /// The group of keys of this class with these values behind the first one.
    pub fn new(class: &Class, version: u8, values: &[Value]) -> Group {
        // Consecutive keys usually belong to one group.
        thread_local! {
            static LAST: RefCell<Option<Group>> = const { RefCell::new(None) };
        }
        let same = |it: &&Group| {
            it.0.version == version && it.0.class.is(class) && *it.0.values == *values
        };
        if let Some(found) = LAST.with_borrow(|last| last.as_ref().filter(same).cloned()) {
            return found;
        }
        let group = Group::made(class, version, values);
        LAST.set(Some(group.clone()));
        group
    }

    fn made(class: &Class, version: u8, values: &[Value]) -> Group {
        let mut hasher = DefaultHasher::new();
        (class.name(), version, values).hash(&mut hasher);
        let fields = class.keys().iter().skip(1).zip(values);
        let unsaved = |(field, value): (&crate::FieldDef, &Value)| {
            field.unsaved.is_some() && field.unsaved.as_ref() == Some(value)
        };
        Group(Arc::new(Shared {
            class: class.clone(),
            version,
            values: values.into(),
            unsaved: fields.into_iter().any(unsaved),
            hash: hasher.finish(),
        }))
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.0.class
    }

    /// The IP version; 0 if the keys have none.
    pub fn version(&self) -> u8 {
        self.0.version
    }

    /// The key values after the first one.
    pub fn values(&self) -> &[Value] {
        &self.0.values
    }

    /// Whether the objects are not a part of a saved configuration, see [`crate::FieldDef::unsaved`].
    pub fn is_unsaved(&self) -> bool {
        self.0.unsaved
    }

    /// The key with this first value.
    pub fn key(&self, item: Packed) -> BulkKey {
        let (group, room) = (self.clone(), Room::Free);
        BulkKey { group, item, room }
    }
}

impl BulkKey {
    /// The packed key; `None` when its class is not a bulk class.
    pub fn of(key: &ObjectKey) -> Option<BulkKey> {
        let (first, rest) = key.values().split_first()?;
        let class = key.class();
        if !class.def().bulk {
            return None;
        }
        let item = class.pack(first)?;
        Some(Group::new(class, item.version(), rest).key(item))
    }

    /// A lower bound of the keys of a class.
    pub fn least_of(class: &Class) -> BulkKey {
        Group::made(class, 0, &[]).key(Packed([0; PACKED]))
    }

    /// The class.
    pub fn class(&self) -> &Class {
        self.group.class()
    }

    /// The key with unpacked values.
    pub fn object_key(&self) -> ObjectKey {
        let first = self.class().packing().map(|it| (it.text)(&self.item));
        let first = Value::text(first.unwrap_or_default());
        let values = std::iter::once(first).chain(self.group.values().iter().cloned());
        ObjectKey::new(self.class().clone(), values.collect())
    }

    /// The object with this key and these values.
    pub fn instance(&self, values: &Values) -> Instance {
        let key = self.object_key();
        let keys = key.values().iter().cloned().map(Some);
        let slots = keys.chain(values.0.iter().cloned()).collect();
        Instance::new(self.class().clone(), slots)
    }
}

impl Instance {
    /// The values of the fields besides the key, without the number of repeated keys.
    pub fn values(&self) -> Values {
        let fields = self.class().fields().iter().enumerate();
        let values = fields.skip(self.class().keys().len());
        Values(
            values
                .map(|(at, field)| match field.repeats {
                    true => field.default.clone(),
                    false => self.slot(at).cloned(),
                })
                .collect(),
        )
    }

    /// Number of consecutive keys in the request, see [`crate::FieldDef::repeats`].
    pub fn repeats(&self) -> u64 {
        let mut fields = self.class().fields().iter();
        let at = fields.position(|field| field.repeats);
        at.and_then(|at| self.field(at)).unwrap_or(1)
    }

    /// The object for this many consecutive keys.
    pub fn repeated(&self, count: u64) -> Instance {
        let mut fields = self.class().fields().iter();
        match fields.position(|field| field.repeats) {
            Some(at) => self.with(at, Some(Value::Number(count))),
            None => self.clone(),
        }
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.hash == other.0.hash && self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Group {}

impl PartialOrd for Group {
    fn partial_cmp(&self, other: &Group) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Group {
    fn cmp(&self, other: &Group) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let (a, b) = (&*self.0, &*other.0);
        let class = a.class.cmp(&b.class);
        class
            .then_with(|| a.values.cmp(&b.values))
            .then(a.version.cmp(&b.version))
    }
}

impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.class(), self.values())
    }
}

impl Display for BulkKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.object_key().fmt(f)
    }
}
