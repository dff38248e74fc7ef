//! The time until no worker can use what a change has replaced.

use super::Domain;

/// A grace period: it begins when all workers have applied a change, and is over when each of them has been quiescent since. Then
/// nothing that only the replaced values refer to is in use, such as the code of a plugin.
#[derive(Debug, Default)]
pub struct GracePeriod {
    /// Issued when the period began.
    ticket: Option<u64>,
}

impl GracePeriod {
    /// Whether it is over. `is_applied`: whether all workers have applied the change; it is not asked again after it was true.
    pub fn is_over(&mut self, domain: &Domain, is_applied: impl FnOnce() -> bool) -> bool {
        if self.ticket.is_none() && is_applied() {
            self.ticket = Some(domain.epoch());
        }
        self.ticket.is_some_and(|ticket| domain.passed(ticket))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_begins_when_the_change_is_applied_and_waits_for_every_reader() {
        let domain = Domain::new();
        let (mut a, mut b) = (domain.register(), domain.register());
        let mut grace = GracePeriod::default();
        for reader in [&mut a, &mut b] {
            reader.quiescent();
        }
        assert!(!grace.is_over(&domain, || false));
        assert!(!grace.is_over(&domain, || true));
        a.quiescent();
        assert!(!grace.is_over(&domain, || unreachable!()));
        b.quiescent();
        assert!(grace.is_over(&domain, || unreachable!()));
    }
}
