//! Values for the lifetime of the process: classes are added and removed, but few of their texts differ.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The value for the lifetime of the process; equal values are stored once.
pub fn kept<T: Ord + Send + Sync + 'static>(value: T) -> &'static T {
    static ALL: Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let own = all.entry(TypeId::of::<T>());
    let own = own.or_insert_with(|| Box::new(BTreeSet::<&'static T>::new()));
    let own = own.downcast_mut::<BTreeSet<&'static T>>();
    let found = own.as_ref().and_then(|own| own.get(&value).copied());
    found.unwrap_or_else(|| {
        let value: &'static T = Box::leak(Box::new(value));
        own.into_iter().for_each(|own| _ = own.insert(value));
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once() {
        let (one, two) = (kept("a".to_owned()), kept("a".to_owned()));
        assert!(std::ptr::eq(one, two));
        assert_eq!(kept(vec![one, kept("b".to_owned())]), &["a", "b"]);
    }
}
