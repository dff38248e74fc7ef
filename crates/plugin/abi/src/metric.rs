//! Figures of a plugin for the page of metrics.

use crate::guarded::guarded;

/// A figure that the router reads on the control thread for each page of metrics.
pub struct PluginMetric {
    /// Name, unique in the plugin.
    pub name: String,
    /// One sentence.
    pub text: String,
    read: Box<dyn Fn() -> Option<f64>>,
}

impl PluginMetric {
    pub(crate) fn new(name: &str, text: &str, read: impl Fn() -> f64 + 'static) -> Self {
        let read = move || guarded(|| Ok(read())).ok();
        PluginMetric {
            name: name.to_owned(),
            text: text.to_owned(),
            read: Box::new(read),
        }
    }

    /// The value, by the plugin's code; none where that panics.
    pub fn read(&self) -> Option<f64> {
        (self.read)()
    }
}
