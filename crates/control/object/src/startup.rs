//! Objects that are read when the daemon starts, and do not change while it runs.

use crate::class::Class;
use crate::instance::Instance;
use crate::object::Object;
use crate::registry::classes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

/// Objects of classes that are read at start, see [`crate::ClassDef::startup`]: at most one of each class. For a class without
/// an object, all fields have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup(Vec<Instance>);

impl Startup {
    /// The object of a class.
    pub fn get<T: Object + Default>(&self) -> T {
        let mut all = self.0.iter();
        all.find_map(T::of).unwrap_or_default()
    }

    /// Adds an object, or replaces the object of the same class.
    pub fn set(&mut self, object: Instance) {
        self.0.retain(|other| other.class() != object.class());
        self.0.push(object);
    }

    /// The classes whose objects differ.
    pub fn differing(&self, other: &Startup) -> Vec<Class> {
        let usual = |class: &Class| class.instance(Vec::new()).ok();
        let of = |all: &Startup, class: &Class| {
            let object = all.0.iter().find(|it| it.class() == class);
            object.cloned().or_else(|| usual(class))
        };
        let classes = classes();
        let all = classes.startup();
        let differs = |class: &&Class| of(self, class) != of(other, class);
        all.filter(differs).cloned().collect()
    }
}

/// A class, and the fields of its object in JSON.
type Fields = (Class, Map<String, Json>);

/// The objects in a map of earlier versions. It had the fields of several classes in one map, and those of the others in a map
/// under the name of the class; some fields were nested one map deeper.
fn of_earlier(all: &Map<String, Json>) -> Vec<Fields> {
    let object = |class: &Class| {
        let own = all.get(class.name()).and_then(Json::as_object);
        let own = own.unwrap_or(all);
        let inside = |name: &str| own.values().find_map(|it| it.as_object()?.get(name));
        let field = |name: &str| own.get(name).or_else(|| inside(name)).cloned();
        let fields = class.fields().iter();
        let fields = fields.filter_map(|it| Some((it.name.to_owned(), field(it.name)?)));
        (class.clone(), fields.collect())
    };
    classes().startup().map(object).collect()
}

/// The objects in a list of the current format: each has the name of its class.
fn of_list(all: Vec<Map<String, Json>>) -> Result<Vec<Fields>, String> {
    let classes = classes();
    let object = |map: Map<String, Json>| {
        let name = map.get("class").and_then(Json::as_str).unwrap_or_default();
        let class = classes.startup().find(|class| class.name() == name);
        let known: Vec<&str> = classes.startup().map(Class::name).collect();
        let unknown = || crate::json::unknown(("class", " that is read at start"), name, &known);
        Ok((class.cloned().ok_or_else(unknown)?, map))
    };
    all.into_iter().map(object).collect()
}

impl Serialize for Startup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Startup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Today(Vec<Map<String, Json>>),
            Earlier(Map<String, Json>),
        }
        let all = match Form::deserialize(deserializer)? {
            Form::Today(all) => of_list(all).map_err(D::Error::custom)?,
            Form::Earlier(all) => of_earlier(&all),
        };
        let mut startup = Startup::default();
        for (class, map) in all {
            startup.set(class.from_json(&map).map_err(D::Error::custom)?);
        }
        Ok(startup)
    }
}
