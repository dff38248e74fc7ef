//! Lamps: a class of objects, a query and a verb of a crate outside the workspace.
#![forbid(unsafe_code)]

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use volley_model::{Applied, ModelError};
use volley_object::{Choice, Object, ObjectKey, Query, Verb};
use volley_show::{GAUGE, Page, table};

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

/// Lamps that burn, all or one; detail: with their brightness.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "burning-lamps",
    show = "show lamps [<lamp>] [detail]",
    example = "show lamps desk"
)]
#[query(reply = BurningLamps, text = brief, detail = detailed, figures = figures)]
pub struct ShowLamps {
    /// Only this lamp.
    #[query(needs = "lamp")]
    pub lamp: Option<String>,
}

/// Flash lamps, all or one.
#[derive(Clone, Debug, PartialEq, Verb)]
#[verb(name = "lamp-flash", example = "flash lamp desk times 2")]
#[verb(command = "flash (lamps | lamp <lamp>) {times <times>}")]
pub struct Flash {
    /// Only this lamp.
    #[verb(needs = "lamp")]
    pub lamp: Option<String>,
    /// How often.
    #[verb(default = 1, range = 1..=9)]
    pub times: u32,
}

/// Lamps that burn.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct BurningLamps {
    /// By name.
    pub lamps: Vec<BurningLamp>,
}

/// One lamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BurningLamp {
    /// Name.
    pub name: String,
    /// Brightness in percent.
    pub brightness: u32,
}

fn brief(reply: &BurningLamps) -> String {
    let rows: Vec<_> = reply.lamps.iter().map(|it| vec![it.name.clone()]).collect();
    table(&["Lamp"], &rows)
}

fn detailed(reply: &BurningLamps) -> String {
    let row = |it: &BurningLamp| vec![it.name.clone(), it.brightness.to_string()];
    let rows: Vec<_> = reply.lamps.iter().map(row).collect();
    table(&["Lamp", ">Brightness"], &rows)
}

fn figures(reply: &BurningLamps, page: &mut Page) {
    page.rows(
        ("lamp_brightness", GAUGE, "Brightness."),
        &reply.lamps,
        |put, it| {
            put(&[("lamp", &it.name)], f64::from(it.brightness));
        },
    );
}

/// The lamps that burn, as the owner of the class stores them.
#[derive(Clone, Debug, Default)]
pub struct Lamps(Arc<Mutex<BTreeMap<String, Lamp>>>);

impl Lamps {
    /// A copy of all lamps.
    pub fn all(&self) -> BTreeMap<String, Lamp> {
        self.0.lock().unwrap().clone()
    }

    /// The owner of the query.
    pub fn answer(
        &self,
    ) -> impl FnMut(ShowLamps) -> Result<BurningLamps, ModelError> + Send + 'static {
        let all = self.0.clone();
        move |query| {
            let all = all.lock().unwrap();
            if let Some(name) = query.lamp.as_ref().filter(|name| !all.contains_key(*name)) {
                return Err(ModelError::invalid(
                    format!("lamp {name}"),
                    "it does not burn",
                ));
            }
            let shown = all
                .values()
                .filter(|it| query.lamp.as_ref().is_none_or(|n| *n == it.name));
            let lamp = |it: &Lamp| BurningLamp {
                name: it.name.clone(),
                brightness: it.brightness,
            };
            Ok(BurningLamps {
                lamps: shown.map(lamp).collect(),
            })
        }
    }

    /// The owner of the verb: it lists the lamps that flash.
    pub fn flash(&self) -> impl FnMut(Flash) -> Result<Applied, ModelError> + Send + 'static {
        let all = self.0.clone();
        move |flash| {
            let all = all.lock().unwrap();
            if let Some(name) = flash.lamp.as_ref().filter(|name| !all.contains_key(*name)) {
                return Err(ModelError::invalid(
                    format!("lamp {name}"),
                    "it does not burn",
                ));
            }
            let flashes = all
                .keys()
                .filter(|it| flash.lamp.as_ref().is_none_or(|n| n == *it));
            let done = Applied::changed(flashes.clone().count() as u64);
            Ok(flashes.fold(done, |done, it| {
                done.note(format!("{it} flashes {} times", flash.times))
            }))
        }
    }

    /// The owner of the class.
    pub fn owner(
        &self,
    ) -> impl FnMut(&ObjectKey, Option<Lamp>) -> Result<Applied, ModelError> + Send + 'static {
        let all = self.0.clone();
        move |key, lamp| {
            let name = key.values()[0].to_string();
            let mut all = all.lock().unwrap();
            match lamp {
                // A lamp that cannot be lit: the transaction is rolled back.
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
