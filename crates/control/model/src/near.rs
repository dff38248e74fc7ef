//! "Did you mean": finds the name most similar to a mistyped one.

/// Number of characters that are compared: a hostile name may be long.
const COUNTED: usize = 64;

/// The name most similar to `typed`: at most two letters are changed, inserted, omitted or transposed, and fewer than the name
/// has.
pub fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let typed: String = typed.chars().take(COUNTED).collect();
    let distances = names.map(|name| (strsim::osa_distance(&typed, name), name));
    let (distance, name) = distances.min()?;
    (distance <= 2 && distance < name.chars().count()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn mistyped_names_are_found() {
        let names = ["interfaces", "errors", "runtime", "ip", "log"];
        let near = |typed: &str| nearest(typed, names.into_iter());
        assert_eq!(near("interafces"), Some("interfaces"));
        assert_eq!(near("eror"), Some("errors"));
        assert_eq!(near("lgo"), Some("log"));
        assert_eq!(near("xyz"), None);
        assert_eq!(near(&"log".repeat(1_000_000)), None);
        assert_eq!(nearest("log", [].into_iter()), None);
    }
}
