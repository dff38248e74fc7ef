//! Work with many objects: a helper thread has the desired state meanwhile, so that the control thread answers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::task::spawn_blocking;
use volley_control::{State, Value};
use volley_model::{ModelError, Request};

/// Objects that the control thread works with itself: the work with more takes longer than a slice of its time.
pub(super) const FEW: usize = 4096;
/// Objects whose events are sent between two looks at the clock.
pub(super) const EVENTS: usize = 256;
/// How long the control thread waits for the names of objects from a helper thread that has begun.
const WAIT: Duration = Duration::from_millis(50);

/// Number of objects in requests.
pub(super) fn objects(requests: &[Request]) -> usize {
    let of = |request: &Request| match request {
        Request::Bulk(bulk) => bulk.len(),
        Request::Set(object) | Request::Add(object) | Request::UnsetExact(object) => {
            object.repeats() as usize
        }
        Request::Take(part) => part.values().repeats() as usize,
        _ => 1,
    };
    requests.iter().map(of).fold(0, usize::saturating_add)
}

/// Does work on a helper thread.
pub(super) async fn on_helper<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ModelError> {
    let lost = |error| ModelError::invalid("the helper thread", error);
    spawn_blocking(work).await.map_err(lost)
}

/// Names of objects, by class.
type ByClass = BTreeMap<String, Vec<String>>;

/// The names of the objects of a state that a helper thread has. The thread sends them before its work.
pub(super) struct Lent {
    sent: Receiver<ByClass>,
    names: Option<ByClass>,
}

impl Lent {
    /// Where the helper thread sends the names, and where they arrive.
    pub(super) fn new() -> (Sender<ByClass>, Lent) {
        let (send, sent) = channel();
        (send, Lent { sent, names: None })
    }

    /// The names of a class.
    pub(super) fn of(&mut self, class: &str) -> Vec<String> {
        if self.names.is_none() {
            self.names = self.sent.recv_timeout(WAIT).ok();
        }
        let names = self.names.as_ref().and_then(|all| all.get(class));
        names.cloned().unwrap_or_default()
    }
}

/// The first values of the keys of all objects that are not of a bulk class.
pub(super) fn names_of(state: &State) -> ByClass {
    let mut all = ByClass::new();
    let objects = state.without_bulk().filter_map(|(_, value)| match value {
        Value::Object(object) => Some(object),
        Value::Common(_) => None,
    });
    for object in objects {
        if let Some(name) = object.key().values().first() {
            let class = object.class().name().to_owned();
            all.entry(class).or_default().push(name.to_string());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_helper_has_sent_are_kept_and_one_that_does_not_send_is_not_waited_for() {
        let (send, mut lent) = Lent::new();
        let names = ByClass::from([("table".to_owned(), vec!["7".to_owned()])]);
        send.send(names).unwrap();
        drop(send);
        for _ in 0..2 {
            assert_eq!(lent.of("table"), ["7"]);
            assert!(lent.of("user").is_empty());
        }
        let (_send, mut lent) = Lent::new();
        let start = std::time::Instant::now();
        assert!(lent.of("table").is_empty());
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
