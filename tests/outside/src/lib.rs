//! Lamps: a class of objects of a crate outside the workspace.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use volley_model::{Applied, ModelError};
use volley_object::{Choice, Object, ObjectKey};

/// Colour of a lamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Color {
    /// Light of the sun.
    White,
    /// Light of a warning.
    Red,
}

/// Lamp: it shows that an interface is up.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "lamp", file = "[lamp.*]")]
#[object(set = "set lamp <name> {fields}", unset = "delete lamp <name>")]
#[object(example = "set lamp desk interface pg0 brightness 70")]
pub struct Lamp {
    /// Name of the lamp.
    #[object(key, example = "desk")]
    pub name: String,
    /// Interface whose state the lamp shows.
    #[object(needs = "interface")]
    pub interface: String,
    /// Brightness.
    #[object(default = 50, range = 1..=100, unit = "percent")]
    pub brightness: u32,
    /// Colour.
    #[object(default = Color::White)]
    pub color: Color,
}

/// The lamps that burn, as their owner sees them.
#[derive(Clone, Debug, Default)]
pub struct Lamps(Arc<Mutex<BTreeMap<String, Lamp>>>);

impl Lamps {
    /// A copy of all lamps.
    pub fn all(&self) -> BTreeMap<String, Lamp> {
        self.0.lock().unwrap().clone()
    }

    /// What the owner of the class does.
    pub fn owner(
        &self,
    ) -> impl FnMut(&ObjectKey, Option<Lamp>) -> Result<Applied, ModelError> + Send + 'static {
        let all = self.0.clone();
        move |key, lamp| {
            let name = key.values()[0].to_string();
            let mut all = all.lock().unwrap();
            match lamp {
                // A lamp that fails when it is lit: the transaction is undone.
                Some(lamp) if lamp.brightness == 99 => Err(ModelError::invalid(
                    format!("lamp {}", lamp.name),
                    "it is broken",
                )),
                Some(lamp) => {
                    all.insert(name, lamp);
                    Ok(Applied::one())
                }
                None => {
                    all.remove(&name);
                    Ok(Applied::one())
                }
            }
        }
    }
}
