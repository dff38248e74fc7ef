//! The part of Lua's library that scripts have. What is missing could run without a limit, catch the error of a limit, load other
//! code, or use files.

use mlua::{Lua, LuaOptions, StdLib, Table};

/// Functions and libraries of a script.
const GLOBALS: [&str; 23] = [
    "_G",
    "_VERSION",
    "assert",
    "bit",
    "error",
    "getmetatable",
    "ipairs",
    "math",
    "next",
    "pairs",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "volley",
    "rawlen",
];

/// Functions of `string`: patterns are missing, because the time that a match takes has no limit.
const STRING: [&str; 9] = [
    "byte", "char", "format", "len", "lower", "rep", "reverse", "sub", "upper",
];

/// Functions of `table`.
const TABLE: [&str; 4] = ["concat", "insert", "maxn", "remove"];

/// A state with the libraries of a script. The compiler of LuaJIT is off: it does not count instructions.
pub(crate) fn state() -> mlua::Result<Lua> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::BIT;
    let lua = Lua::new_with(libraries, LuaOptions::new())?;
    let globals = lua.globals();
    keep(&globals, &GLOBALS)?;
    keep(&globals.get::<Table>("string")?, &STRING)?;
    keep(&globals.get::<Table>("table")?, &TABLE)?;
    Ok(lua)
}

/// Remove everything else from a table.
fn keep(table: &Table, names: &[&str]) -> mlua::Result<()> {
    let keys = table.pairs::<String, mlua::Value>();
    let keys = keys.map(|pair| pair.map(|(key, _)| key));
    let keys = keys.collect::<mlua::Result<Vec<String>>>()?;
    let gone = |key: &&String| !names.contains(&key.as_str());
    keys.iter()
        .filter(gone)
        .try_for_each(|key| table.raw_set(key.as_str(), mlua::Nil))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_escape_the_limits_is_missing() {
        let lua = state().unwrap();
        let missing = [
            "pcall",
            "xpcall",
            "load",
            "loadstring",
            "dofile",
            "require",
            "coroutine",
            "collectgarbage",
            "newproxy",
            "io",
            "os",
            "debug",
            "ffi",
            "jit",
            "package",
            "getfenv",
            "setfenv",
            "print",
            "string.find",
            "string.gsub",
            "string.dump",
            "(\"\").match",
            "table.sort",
        ];
        for name in missing {
            let there: bool = lua.load(format!("return {name} ~= nil")).eval().unwrap();
            assert!(!there, "{name}");
        }
    }
}
