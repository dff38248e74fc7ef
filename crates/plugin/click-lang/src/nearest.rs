//! The names that are most similar to a wrong one.

/// Names that are suggested at most.
const MOST: usize = 3;
/// Longer names are not compared.
const LONGEST: usize = 64;

/// The names that are most similar to `name`, the most similar first.
pub fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.chars().count() > LONGEST {
        return Vec::new();
    }
    let limit = (name.chars().count() / 3).max(1);
    let typed = name.to_lowercase();
    let rate = |it: &'a str| {
        let candidate = it.to_lowercase();
        let starts = it.len() > 2 && candidate.starts_with(&typed);
        let d = strsim::osa_distance(&typed, &candidate);
        (d <= limit || (starts && !name.is_empty())).then_some((d, it))
    };
    let mut found: Vec<(usize, &str)> = all.into_iter().filter_map(rate).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, it)| it).take(MOST).collect()
}

/// The end of a sentence about a wrong name: `: did you mean ...?`, or `otherwise`.
pub fn hint<'a>(name: &str, all: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    match nearest(name, all).as_slice() {
        [] => format!(": {otherwise}"),
        [one] => format!(": did you mean {one}?"),
        [first @ .., last] => format!(": did you mean {} or {last}?", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_first() {
        let all = ["Counter", "Queue", "Unqueue", "Tee", "CheckIPHeader"];
        assert_eq!(nearest("Countr", all), ["Counter"]);
        assert_eq!(nearest("queue", all), ["Queue"]);
        assert_eq!(nearest("checkip", all), ["CheckIPHeader"]);
        assert!(nearest("Elephant", all).is_empty());
        assert_eq!(hint("Te", all, "x"), ": did you mean Tee?");
    }
}
