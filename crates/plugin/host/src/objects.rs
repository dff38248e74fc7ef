//! The classes of objects that plugins bring: their registration, their objects, and their way from one version of a plugin to
//! the next one.

use crate::error::PluginError;
use crate::model::LoadedPlugin;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use volley_object::{
    Class, ClassDef, DefinitionError, Instance, Object, ObjectKey, classes, exchange, put_back,
};
use volley_plugin_abi::{PluginClass, describe, described};

/// The definitions of classes that a plugin brings.
pub(crate) fn definitions(
    plugin: &str,
    classes: &[PluginClass],
) -> Result<Vec<ClassDef>, DefinitionError> {
    let one = |class: &PluginClass| {
        let json = serde_json::from_str(class.definition());
        let json = json.map_err(|why| DefinitionError::new(plugin, why.to_string()))?;
        described(&json, (LoadedPlugin::CLASS, plugin))
    };
    classes.iter().map(one).collect()
}

/// The registered classes that a plugin brings.
pub(crate) fn registered(plugin: &str) -> Vec<Class> {
    let all = classes();
    let brought = |class: &&Class| {
        let by = class.def().brought;
        by.is_some_and(|by| by.class == LoadedPlugin::CLASS && by.name == plugin)
    };
    all.iter().filter(brought).cloned().collect()
}

/// Makes these the registered classes of a plugin. Classes that do not differ stay. Returns what undoes it.
pub(crate) fn register(plugin: &str, new: Vec<ClassDef>) -> Result<Registered, DefinitionError> {
    let stays = |class: &Class, def: &ClassDef| {
        class.name() == def.name && describe(class.def()).ok() == describe(def).ok()
    };
    let mut gone = registered(plugin);
    gone.retain(|class| !new.iter().any(|def| stays(class, def)));
    let mut added = new;
    let there = registered(plugin);
    added.retain(|def| !there.iter().any(|class| stays(class, def)));
    let names: Vec<&str> = gone.iter().map(Class::name).collect();
    let added = match names.is_empty() && added.is_empty() {
        true => Vec::new(),
        false => exchange(&names, added)?,
    };
    Ok(Registered { gone, added })
}

/// Plugins whose classes were registered to read a configuration, and when.
static ANNOUNCED: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// How long classes stay registered without their plugin: a configuration that was read has become the router's, or is refused.
const STAY: Duration = Duration::from_secs(60);

/// Registers the classes of a plugin that is not loaded.
pub(crate) fn announced(plugin: &str, new: Vec<ClassDef>) -> Result<(), DefinitionError> {
    register(plugin, new)?;
    let mut all = ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(plugin.to_owned(), Instant::now());
    Ok(())
}

/// Removes the classes of plugins that were announced and not loaded.
pub(crate) fn forget(is_loaded: impl Fn(&str) -> bool) {
    let mut all = ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|plugin, since| {
        if is_loaded(plugin) {
            return false;
        }
        let is_old = since.elapsed() > STAY;
        if is_old {
            // Nothing refers to classes without objects but classes of other plugins, which need this one.
            let _ = register(plugin, Vec::new());
        }
        !is_old
    });
}

/// A change of the registered classes.
pub(crate) struct Registered {
    gone: Vec<Class>,
    added: Vec<Class>,
}

impl Registered {
    /// Registers the classes of before.
    pub(crate) fn undo(self) {
        let added: Vec<&str> = self.added.iter().map(Class::name).collect();
        if !(added.is_empty() && self.gone.is_empty()) {
            // Classes that were registered do not contradict each other.
            let _ = put_back(&added, self.gone);
        }
    }
}

/// A class of a loaded plugin and its objects.
struct Carrier {
    class: PluginClass,
    objects: BTreeMap<ObjectKey, Instance>,
}

/// The classes of one version of a plugin. Its code is called by their functions: they are dropped before it is unmapped.
#[derive(Default)]
pub(crate) struct Carriers(BTreeMap<&'static str, Carrier>);

impl Carriers {
    /// The classes, without objects.
    pub(crate) fn new(defs: &[ClassDef], classes: Vec<PluginClass>) -> Carriers {
        let carrier = |(def, class): (&ClassDef, PluginClass)| {
            let objects = BTreeMap::new();
            (def.name, Carrier { class, objects })
        };
        Carriers(defs.iter().zip(classes).map(carrier).collect())
    }

    /// Whether a class of this name is among them.
    pub(crate) fn has(&self, class: &str) -> bool {
        self.0.contains_key(class)
    }

    /// Carries out a change of an object: an error changes nothing.
    pub(crate) fn apply(&mut self, key: &ObjectKey, now: Option<&Instance>) -> Result<(), String> {
        let Some(carrier) = self.0.get_mut(key.class().name()) else {
            return Err("no plugin that is loaded carries it out".to_owned());
        };
        carrier.class.apply(key, now)?;
        match now {
            Some(now) => carrier.objects.insert(key.clone(), now.clone()),
            None => carrier.objects.remove(key),
        };
        Ok(())
    }

    /// Brings the objects of another version into the classes of this one, which are registered. An error when one does not fit.
    pub(crate) fn carry_over(&mut self, old: &Carriers) -> Result<(), PluginError> {
        let all = classes();
        for (name, carrier) in &old.0 {
            let (Some(first), false) = (carrier.objects.keys().next(), self.has(name)) else {
                continue;
            };
            return Err(PluginError::Object(format!(
                "the new version has no class {name}: delete {first} and all other objects of the class first"
            )));
        }
        // Objects to which others refer come first.
        let objects = old.0.values().flat_map(|carrier| carrier.objects.values());
        let mut objects: Vec<&Instance> = objects.collect();
        objects.sort_by_cached_key(|object| object.key());
        for object in objects {
            let class = all.get(object.class().name());
            let class = class.ok_or_else(|| PluginError::Object("its class is gone".to_owned()))?;
            let carried = object.carried_over(class).map_err(PluginError::Object)?;
            let key = carried.key();
            self.apply(&key, Some(&carried)).map_err(|why| {
                PluginError::Object(format!("the new version refuses {key}: {why}"))
            })?;
        }
        Ok(())
    }
}
