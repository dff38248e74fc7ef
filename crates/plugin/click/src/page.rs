//! The table of elements for the documentation, from their declarations.

use crate::elements::GROUPS;
use crate::spec::{Argument, Need, Spec};
use std::fmt::Write;

/// The page of all elements.
pub fn page() -> String {
    let mut page = String::from(
        "# Elements\n\nMade by `cargo xtask docs --update` from `crates/plugin/click`. These are the element classes of graphs in \
         Click's language ([click.md](../click.md)); `volley doc click` prints this page.\n",
    );
    for (group, specs) in GROUPS {
        // Writing to a string does not fail.
        let _ = write!(page, "\n## {group}\n");
        specs.iter().for_each(|spec| element(&mut page, spec));
    }
    page
}

fn element(page: &mut String, spec: &Spec) {
    let usual: Vec<&str> = spec
        .arguments
        .iter()
        .filter(|it| it.need != Need::Keyword)
        .map(|it| it.name)
        .collect();
    let _ = write!(
        page,
        "\n### {}({})\n\n{} Ports {}, {}.\n",
        spec.name,
        usual.join(", "),
        spec.text,
        spec.ports,
        spec.modes
    );
    if !spec.arguments.is_empty() {
        page.push('\n');
    }
    for argument in spec.arguments {
        let _ = writeln!(page, "- {}: {}", argument.name, described(argument));
    }
    for handler in spec.handlers {
        let access = match handler.kind.access() {
            (true, true) => "read, write",
            (true, false) => "read",
            _ => "write",
        };
        let first = spec.arguments.is_empty() && std::ptr::eq(handler, &spec.handlers[0]);
        let _ = writeln!(
            page,
            "{}- handler `{}` ({access}): {}",
            if first { "\n" } else { "" },
            handler.name,
            handler.text
        );
    }
}

fn described(argument: &Argument) -> String {
    let need = match argument.need {
        Need::Required => ", required",
        Need::Optional => "",
        Need::Keyword => ", by name only",
        Need::Rest => ", any number",
    };
    format!("{} ({}{need})", argument.text, argument.kind.describe())
}
