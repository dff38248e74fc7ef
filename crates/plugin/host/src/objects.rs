//! The classes of objects and the verbs that plugins bring: their registration, their objects, and their way from one version of a
//! plugin to the next one.

use crate::error::PluginError;
use crate::model::LoadedPlugin;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use volley_object::{
    Brought, Class, ClassDef, DefinitionError, Instance, Invocation, Object, ObjectKey, VerbDef,
    classes, define, exchange, put_back, undefine,
};
use volley_plugin_abi::{
    PluginClass, PluginVerb, describe, describe_verb, described, described_verb,
};

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

/// The definitions of verbs that a plugin brings.
pub(crate) fn verb_definitions(
    plugin: &str,
    verbs: &[PluginVerb],
) -> Result<Vec<VerbDef>, DefinitionError> {
    let one = |verb: &PluginVerb| {
        let json = serde_json::from_str(verb.definition());
        let json = json.map_err(|why| DefinitionError::new(plugin, why.to_string()))?;
        described_verb(&json, (LoadedPlugin::CLASS, plugin))
    };
    verbs.iter().map(one).collect()
}

fn is_by(brought: Option<Brought>, plugin: &str) -> bool {
    brought.is_some_and(|by| by.class == LoadedPlugin::CLASS && by.name == plugin)
}

/// The registered classes that a plugin brings.
pub(crate) fn registered(plugin: &str) -> Vec<Class> {
    let all = classes();
    let all = all.iter().filter(|it| is_by(it.def().brought, plugin));
    all.cloned().collect()
}

/// The definitions of the registered verbs that a plugin brings.
fn registered_verbs(plugin: &str) -> Vec<VerbDef> {
    let all = classes();
    let verbs = all.verbs().map(|verb| verb.def().clone());
    verbs.filter(|it| is_by(it.class.brought, plugin)).collect()
}

/// Makes these the registered classes and verbs of a plugin. Those that do not differ stay. Returns what undoes it.
pub(crate) fn register_all(
    plugin: &str,
    classes: Vec<ClassDef>,
    verbs: Vec<VerbDef>,
) -> Result<RegisteredAll, DefinitionError> {
    let old = registered_verbs(plugin);
    let same = |a: &VerbDef, b: &VerbDef| describe_verb(a).ok() == describe_verb(b).ok();
    let gone = old
        .iter()
        .filter(|it| !verbs.iter().any(|new| same(it, new)));
    let gone: Vec<VerbDef> = gone.cloned().collect();
    let added = verbs.into_iter();
    let added: Vec<VerbDef> = added
        .filter(|it| !old.iter().any(|was| same(it, was)))
        .collect();
    // A verb may refer to a class.
    for verb in &gone {
        undefine::<VerbDef>(verb.class.name)?;
    }
    let mut done = RegisteredAll {
        classes: Registered::default(),
        gone,
        added: Vec::new(),
    };
    match register(plugin, classes) {
        Ok(registered) => done.classes = registered,
        Err(error) => {
            done.undo();
            return Err(error);
        }
    }
    for verb in added {
        let name = verb.class.name;
        if let Err(error) = define(verb) {
            done.undo();
            return Err(error);
        }
        done.added.push(name);
    }
    Ok(done)
}

/// A change of the registered classes and verbs.
pub(crate) struct RegisteredAll {
    classes: Registered,
    gone: Vec<VerbDef>,
    added: Vec<&'static str>,
}

impl RegisteredAll {
    /// Registers the classes and verbs of before.
    pub(crate) fn undo(self) {
        // Definitions that were registered do not contradict each other.
        for verb in self.added {
            let _ = undefine::<VerbDef>(verb);
        }
        self.classes.undo();
        for verb in self.gone {
            let _ = define(verb);
        }
    }
}

/// The verbs of one version of a plugin. Its code is called by their functions: they are dropped before it is unmapped.
#[derive(Default)]
pub(crate) struct Performers(BTreeMap<&'static str, PluginVerb>);

impl Performers {
    pub(crate) fn new(defs: &[VerbDef], verbs: Vec<PluginVerb>) -> Performers {
        let names = defs.iter().map(|def| def.class.name);
        Performers(names.zip(verbs).collect())
    }

    /// Performs a verb.
    pub(crate) fn perform(&mut self, invocation: &Invocation) -> Result<(), String> {
        match self.0.get_mut(invocation.name()) {
            Some(verb) => verb.perform(invocation.parameters()),
            None => Err("no plugin that is loaded performs it".to_owned()),
        }
    }
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
#[derive(Default)]
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
