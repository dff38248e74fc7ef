//! The object: a script.

use std::path::PathBuf;
use volley_sdk::prelude::*;

/// Arc of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum ScriptArc {
    /// Frames as they were received, in front of `ethernet-input`: feature `lua-input`.
    DeviceInput,
    /// IPv4 packets that ip4-input has checked: feature `lua-ip4`.
    Ip4Unicast,
}

/// Lua script: a function of the script gets the vectors of interfaces where the feature of its arc is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "lua_script", file = "[lua_script.*]", check = LuaScript::check)]
#[object(
    set = "set lua-script <name> {fields}",
    unset = "delete lua-script <name>"
)]
#[object(change = "reload lua-script <name> [file <file>]")]
#[object(group("reload", "Read files again."))]
#[object(example = "set lua-script router file /etc/volley/router.lua interfaces pg0")]
pub struct LuaScript {
    /// Name of the script.
    #[object(key, example = "router")]
    pub name: String,
    /// Absolute path of the file.
    #[object(example = "/etc/volley/router.lua")]
    pub file: PathBuf,
    /// Arc whose packets the script gets.
    #[object(default = ScriptArc::DeviceInput)]
    pub arc: ScriptArc,
    /// Interfaces whose packets the script gets; none: all interfaces that no other script of the arc names.
    #[object(needs = "interface", example = "pg0")]
    pub interfaces: Vec<String>,
    /// Memory of the script on each worker.
    #[object(default = 16384, range = 64..=1_048_576, unit = "KiB")]
    pub memory_kb: u32,
    /// Instructions of Lua that the script may execute for a vector.
    #[object(default = 100_000, range = 1000..=100_000_000)]
    pub instructions: u32,
    /// Packets of a vector that the function `packet` of the script may get.
    #[object(default = 64, range = 1..=1024)]
    pub queue: u16,
}

impl LuaScript {
    fn check(&self) -> Result<(), FieldError> {
        match self.file.is_absolute() {
            true => Ok(()),
            false => refuse("file", "must be absolute, such as /etc/volley/router.lua"),
        }
    }
}
