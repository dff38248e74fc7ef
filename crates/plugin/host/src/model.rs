//! Objects of plugins.

use crate::show::ShowPlugins;
use std::path::PathBuf;
use volley_object::{Class, DefinitionError, FieldError, Object, Query, refuse};

/// Maximum length of a plugin's name in bytes.
const LONGEST: usize = 64;

/// Plugin: a shared library with nodes of the graph. A change of the path replaces the plugin while packets flow.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "plugin", file = "[[plugin]]", check = LoadedPlugin::check, machine)]
#[object(brings = LoadedPlugin::announce)]
#[object(group("plugin", "Load, replace and unload plugins."))]
#[object(set = "plugin load <path> name <name>")]
#[object(set = "plugin replace <name> <path>")]
#[object(unset = "plugin unload <name>")]
#[object(example = "plugin load /usr/lib/volley/plugins/libstamp.so name stamp")]
pub struct LoadedPlugin {
    /// Name.
    #[object(key, example = "stamp")]
    pub name: String,
    /// Absolute path of the file, which root or the daemon's user owns and no other user can change.
    #[object(example = "/usr/lib/volley/plugins/libstamp.so")]
    pub path: PathBuf,
}

impl LoadedPlugin {
    fn check(&self) -> Result<(), FieldError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if self.name.is_empty() || self.name.len() > LONGEST || !self.name.bytes().all(allowed) {
            return refuse("name", "must have 1 to 64 ASCII letters, digits, - _ .");
        }
        match self.path.is_absolute() {
            true => Ok(()),
            false => refuse(
                "path",
                "must be absolute, such as /usr/lib/volley/plugins/libstamp.so",
            ),
        }
    }
}

impl LoadedPlugin {
    /// Registers the classes of a plugin that is not loaded, so that its objects can be read. Those of a plugin that is loaded are
    /// registered.
    fn announce(&self) -> Result<(), String> {
        if !crate::objects::registered(&self.name).is_empty() {
            return Ok(());
        }
        let announced = crate::plugins::announce(&self.name, &self.path);
        announced.map_err(|why| format!("plugin {}: {why}", self.name))
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    // The query refers to plugins.
    let classes = vec![LoadedPlugin::class()?];
    ShowPlugins::query()?;
    Ok(classes)
}
