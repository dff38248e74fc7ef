//! Interface for the fuzz targets in `fuzz/`.

use crate::objects;
use crate::tokens::Tokens;

/// Whether `given` is one of the tokens of a file; an error says why the file is refused.
pub fn has_token(text: &str, given: &[u8]) -> Result<bool, String> {
    Tokens::parse(text, "file").map(|tokens| tokens.find(given).is_some())
}

/// Class and key of the object at this path; the values of the key as text.
pub fn object_path(path: &str) -> Option<Result<(String, Vec<String>), String>> {
    let uri = path.parse().ok()?;
    let key = objects::key_of(&uri).map_err(|problem| problem.message);
    let texts = |key: volley_object::ObjectKey| {
        let values = key.values().iter().map(ToString::to_string);
        (key.class().name().to_owned(), values.collect())
    };
    Some(key.map(texts))
}
