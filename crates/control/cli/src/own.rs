//! Commands of the command line itself, defined as verbs outside the registry.

use crate::action::{Action, Builtin};
use std::convert::Infallible;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;
use volley_model::{ConfigAction, ConfigForm, ConfigSource, Request, parse_span};
use volley_object::{Invocation, Verb, VerbClass, syntax_field, text_field};

type Act = Box<dyn Fn(&Invocation) -> Option<Action> + Send + Sync>;

static ALL: LazyLock<Vec<(VerbClass, Act)>> = LazyLock::new(|| {
    let all = [
        of(|it: Help| Action::Builtin(Builtin::Help(it.command.unwrap_or_default().0))),
        of(|_: Quit| Action::Builtin(Builtin::Quit)),
        of(|_: History| Action::Builtin(Builtin::History)),
        of(|it: Exec| Action::Builtin(Builtin::Exec(it))),
        of(|it: Watch| Action::Builtin(Builtin::Watch(it))),
        of(|it: ConfigCheck| {
            config(ConfigAction::Check {
                source: file(it.file),
            })
        }),
        of(|it: ConfigShow| {
            let source = it
                .commit
                .map_or(ConfigSource::Running, ConfigSource::Commit);
            let form = ConfigForm::Toml;
            config(ConfigAction::Show { source, form })
        }),
        of(|it: ConfigDiff| {
            let commit = |number: Option<u64>| number.map(ConfigSource::Commit);
            let from = commit(it.commit).unwrap_or(ConfigSource::Committed);
            let to = commit(it.to).unwrap_or(ConfigSource::Running);
            config(match it.file.map(file) {
                None => ConfigAction::Diff { from, to },
                Some(file) => ConfigAction::Diff { from: to, to: file },
            })
        }),
        of(|it: ConfigCommit| {
            config(ConfigAction::Commit {
                source: it.file.map_or(ConfigSource::Running, file),
                confirm_s: it.confirm.map(|span| span.0),
                comment: it.comment,
            })
        }),
        of(|_: ConfigConfirm| config(ConfigAction::Confirm {})),
        of(|it: ConfigRollback| config(ConfigAction::Rollback { number: it.commit })),
        of(|_: ConfigHistory| config(ConfigAction::History {})),
        of(|ConfigExport { form }| {
            let source = ConfigSource::Running;
            config(ConfigAction::Show { source, form })
        }),
        of(|it: DeleteInterface| {
            let name = it.interface;
            request(Request::InterfaceDelete { name })
        }),
        of(|it: RenameInterface| {
            let (name, new_name) = (it.interface, it.name);
            request(Request::InterfaceRename { name, new_name })
        }),
    ];
    // A definition that contradicts itself yields no command: a test counts the commands.
    all.into_iter().flatten().collect()
});

fn of<T: Verb + 'static>(act: fn(T) -> Action) -> Option<(VerbClass, Act)> {
    let class = VerbClass::new(T::definition()).ok()?;
    Some((class, Box::new(move |it| it.get().map(act))))
}

fn config(action: ConfigAction) -> Action {
    Action::Config(action)
}

fn request(request: Request) -> Action {
    Action::Request(Box::new(request))
}

fn file(file: PathBuf) -> ConfigSource {
    ConfigSource::File(file)
}

/// All verbs of the command line.
pub(crate) fn all() -> impl Iterator<Item = &'static VerbClass> {
    ALL.iter().map(|(class, _)| class)
}

/// The verb with this name.
pub(crate) fn named(name: &str) -> Option<&'static VerbClass> {
    all().find(|class| class.name() == name)
}

/// The action of a command.
pub(crate) fn action(invocation: &Invocation) -> Option<Action> {
    ALL.iter().find_map(|(_, act)| act(invocation))
}

/// A command: the rest of the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(pub String);

impl FromStr for Line {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Line, Infallible> {
        Ok(Line(text.to_owned()))
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_field!(Line, "a command", Rest, ["show interfaces"]);

/// Seconds within which a commit is confirmed.
struct Span(u64);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        parse_span(text).map(Span)
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

syntax_field!(Span, "a time", Any, ["5m", "90s", "2h"], "");

/// List commands, or those that begin so.
#[derive(Verb)]
#[verb(name = "help", command = "help [<command>]", example = "help show")]
struct Help {
    /// Words that the commands begin with.
    command: Option<Line>,
}

/// Leave the interactive command line.
#[derive(Verb)]
#[verb(name = "quit", command = "(quit | exit)", example = "quit")]
struct Quit;

/// List the lines typed.
#[derive(Verb)]
#[verb(name = "history", command = "history", example = "history")]
struct History;

/// Run the commands of a file; the first error stops it. With undo they are one transaction: all of them or none.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "exec", command = "exec <file> [undo@undo=on]")]
#[verb(example = "exec setup.vly")]
pub struct Exec {
    /// File of commands.
    pub file: String,
    /// Run the commands as one transaction: all of them or none.
    #[verb(default = false)]
    pub undo: bool,
}

/// Run a command every second (or so many), until Ctrl-C (or so many times).
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "watch", example = "watch every 2 show interfaces")]
#[verb(command = "watch [every <every>] [times <times>] <command>")]
pub struct Watch {
    /// Seconds between two runs.
    #[verb(default = 1, range = 1u32..=86_400)]
    pub every: u32,
    /// How often to run the command.
    #[verb(range = 1u32..=86_400)]
    pub times: Option<u32>,
    /// Command that shows something.
    pub command: Line,
}

/// Read a configuration file and report every error with its position.
#[derive(Verb)]
#[verb(name = "config-check", command = "config check <file>")]
#[verb(example = "config check volley.toml")]
struct ConfigCheck {
    /// Configuration file.
    file: PathBuf,
}

/// The running configuration as a file, or that of a commit.
#[derive(Verb)]
#[verb(name = "config-show", command = "config show [commit <commit>]")]
#[verb(example = "config show")]
struct ConfigShow {
    /// Number of a commit.
    commit: Option<u64>,
}

/// Compare: the active commit (or another) with the running configuration, two commits, or the running configuration with a file.
#[derive(Verb)]
#[verb(name = "config-diff", example = "config diff volley.toml")]
#[verb(command = "config diff [commit <commit> | <commit> <to> | <file>]")]
struct ConfigDiff {
    /// Number of a commit.
    commit: Option<u64>,
    /// Number of the commit to compare with.
    to: Option<u64>,
    /// Configuration file.
    file: Option<PathBuf>,
}

/// Apply a configuration file (none: keep the running configuration) and commit it; with confirm, the commit is rolled back
/// unless `config confirm` is entered in time.
#[derive(Verb)]
#[verb(name = "config-commit")]
#[verb(command = "(config commit | write [memory] | save) {fields}")]
#[verb(example = "config commit file volley.toml confirm 5m comment \"new uplink\"")]
struct ConfigCommit {
    /// Configuration file to apply first.
    file: Option<PathBuf>,
    /// Time after which the commit is rolled back, unless `config confirm` comes.
    confirm: Option<Span>,
    /// Comment that the history keeps.
    comment: Option<String>,
}

/// Confirm the waiting commit.
#[derive(Verb)]
#[verb(name = "config-confirm", command = "config confirm")]
#[verb(example = "config confirm")]
struct ConfigConfirm;

/// Apply an earlier commit again, as a new commit.
#[derive(Verb)]
#[verb(name = "config-rollback", command = "config rollback <commit>")]
#[verb(example = "config rollback 3")]
struct ConfigRollback {
    /// Number of the commit.
    commit: u64,
}

/// The commits, newest first.
#[derive(Verb)]
#[verb(name = "config-history", command = "config history")]
#[verb(example = "config history")]
struct ConfigHistory;

/// The running configuration as a file, as commands or as requests in JSON.
#[derive(Verb)]
#[verb(name = "config-export", example = "config export commands")]
#[verb(command = "config export [toml@form=toml | commands@form=commands | json@form=json]")]
struct ConfigExport {
    /// Form of the text.
    #[verb(default = ConfigForm::Toml)]
    form: ConfigForm,
}

/// Delete an interface.
#[derive(Verb)]
#[verb(name = "delete-interface", command = "delete interface <interface>")]
#[verb(example = "delete interface pg0")]
struct DeleteInterface {
    /// Interface.
    #[verb(needs = "interface")]
    interface: String,
}

/// Give an interface another name.
#[derive(Verb)]
#[verb(name = "rename-interface", example = "set interface name pg0 uplink0")]
#[verb(command = "set interface name <interface> <name>")]
struct RenameInterface {
    /// Interface.
    #[verb(needs = "interface")]
    interface: String,
    /// New name.
    name: String,
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_definition_is_a_command() {
        assert_eq!(super::all().count(), 15);
    }
}
