//! What the fuzz targets in `fuzz/` need of this crate.

use crate::objects;
use crate::tokens::Tokens;

/// The tokens of a file: whether `given` is one of them, or why the file is refused.
pub fn has_token(text: &str, given: &[u8]) -> Result<bool, String> {
    Tokens::parse(text, "file").map(|tokens| tokens.find(given).is_some())
}

/// Class and key of an object whose path this is; the values of the key as text.
pub fn object_path(path: &str) -> Option<Result<(String, Vec<String>), String>> {
    let uri = path.parse().ok()?;
    let key = objects::key_of(&uri).map_err(|problem| problem.message);
    let texts = |key: volley_object::ObjectKey| {
        let values = key.values().iter().map(ToString::to_string);
        (key.class().name().to_owned(), values.collect())
    };
    Some(key.map(texts))
}
