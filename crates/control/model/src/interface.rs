//! Creation of interfaces, with their type and initial settings.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use volley_object::{
    FieldError, FieldType, Instance, Object, Value, interface_from_json, interface_schema,
    interface_to_json,
};
use volley_wire::MacAddr as Mac;

/// A new interface. It is created administratively down, in table 0, without addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Name of the interface, unique in the daemon.
    pub name: String,
    /// The type of the interface, such as its driver, and the settings of the type.
    #[serde(serialize_with = "of_class")]
    #[schemars(schema_with = "of_classes")]
    pub kind: Instance,
    /// MAC address; none = a locally administered one is made from the engine's seed and the name.
    #[serde(default)]
    pub mac: Option<Mac>,
    /// L3 MTU in bytes; none = the kind's default (9000).
    #[serde(default)]
    pub mtu: Option<u32>,
}

impl<'de> Deserialize<'de> for InterfaceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            name: String,
            kind: serde_json::Value,
            #[serde(default)]
            mac: Option<Mac>,
            #[serde(default)]
            mtu: Option<u32>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let kind = interface_from_json(&fields.name, &fields.kind);
        let kind = kind.map_err(D::Error::custom)?;
        Ok(InterfaceSpec {
            mac: fields.mac,
            mtu: fields.mtu,
            ..InterfaceSpec::of_object(kind)
        })
    }
}

/// Class of the MAC address of an interface.
const MAC: &str = "mac";
/// Class of the MTU of an interface.
const MTU: &str = "mtu";
/// Classes of the initial settings of an interface, each with one value.
const CREATED_WITH: [&str; 2] = [MAC, MTU];

impl InterfaceSpec {
    /// An interface of a type; the driver chooses MAC address and MTU.
    pub fn of<T: Object>(kind: &T) -> Result<InterfaceSpec, FieldError> {
        kind.instance().map(InterfaceSpec::of_object)
    }

    /// An interface of a type, given as an object.
    pub fn of_object(kind: Instance) -> InterfaceSpec {
        InterfaceSpec {
            name: kind.name().to_owned(),
            kind,
            mac: None,
            mtu: None,
        }
    }

    /// The settings of the type, if the interface has this type.
    pub fn kind_as<T: Object>(&self) -> Option<T> {
        T::of(&self.kind)
    }

    /// Whether interfaces are created and deleted with the settings of a class.
    pub fn is_created_with(class: &str) -> bool {
        CREATED_WITH.contains(&class)
    }

    /// The initial settings of the interface: class and value of each.
    pub fn settings(&self) -> Vec<(&'static str, Value)> {
        let mac = self.mac.map(|it| (MAC, it.to_value()));
        let mtu = self.mtu.map(|it| (MTU, it.to_value()));
        mac.into_iter().chain(mtu).collect()
    }

    /// Adds an initial setting; a setting of another class changes nothing.
    pub fn create_with(&mut self, setting: &Instance) {
        match setting.class().name() {
            MAC => self.mac = setting.field(1),
            MTU => self.mtu = setting.field(1),
            _ => {}
        }
    }
}

fn of_class<S: Serializer>(kind: &Instance, serializer: S) -> Result<S::Ok, S::Error> {
    interface_to_json(kind).serialize(serializer)
}

fn of_classes(_: &mut SchemaGenerator) -> Schema {
    interface_schema()
}
