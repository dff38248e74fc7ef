//! Random objects for property tests: each field has few values, so that objects collide.

use crate::class::Class;
use crate::instance::{Instance, ObjectKey};
use crate::kind::Kind;
use crate::value::Value;
use proptest::prelude::*;
use std::sync::Arc;

fn slots(class: &Class, owners: &[&str]) -> impl Strategy<Value = Vec<Option<Value>>> + use<> {
    let mut all: Vec<BoxedStrategy<Option<Value>>> = Vec::new();
    for field in class.fields() {
        if field.repeats {
            all.push(Just(None).boxed());
            continue;
        }
        let names: Vec<Value> = owners.iter().map(Value::text).collect();
        let is_list = matches!(field.kind, Kind::List(_));
        let mut values = match field.reference {
            Some(reference) if reference.class == "interface" && is_list => {
                let alone = names
                    .iter()
                    .map(|name| Value::List(Arc::from([name.clone()])));
                let together = Value::List(names.iter().cloned().collect());
                alone.chain([together]).collect()
            }
            Some(reference) if reference.class == "interface" && !names.is_empty() => names,
            Some(_) if !field.example.is_empty() => {
                field.kind.read(field.example).into_iter().collect()
            }
            _ => field.kind.samples(),
        };
        if let (Kind::List(inner), None) = (&field.kind, field.reference) {
            // Elements that cannot be combined, such as addresses of both IP versions, become lists of one element.
            let example = Some(field.example).filter(|example| !example.is_empty());
            let example = example.and_then(|example| inner.read(example).ok());
            let alone = inner.samples().into_iter().chain(example);
            values.extend(alone.map(|value| Value::List(Arc::from([value]))));
        }
        let mut values: Vec<Option<Value>> = values.into_iter().map(Some).collect();
        if !field.required() {
            values.extend([None, None]);
        }
        all.push(proptest::sample::select(values).boxed());
    }
    all
}

/// Objects of a class; references to interfaces name one of `interfaces`. The rules between fields hold.
pub fn instances(class: &Class, interfaces: &[&str]) -> impl Strategy<Value = Instance> + use<> {
    let class = class.clone();
    slots(&class, interfaces).prop_filter_map("a rule between fields", move |slots| {
        class.instance(slots).ok()
    })
}

/// Keys of a class.
pub fn keys(class: &Class, interfaces: &[&str]) -> impl Strategy<Value = ObjectKey> + use<> {
    instances(class, interfaces).prop_map(|instance| instance.key())
}
