//! The table of commands. Everything the command line knows is here or in the slots.

use super::objects::ObjectCommand;
use super::queries::{QueryCommand, VerbCommand};

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandDef {
    pub(crate) id: Id,
    pub(crate) pattern: &'static str,
    pub(crate) text: &'static str,
    pub(crate) example: &'static str,
}

macro_rules! commands {
    ($($id:ident: $pattern:expr, $text:literal, $example:literal;)*) => {
        /// Which command was read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Id {
            $($id,)*
            /// A command of a registered class.
            Object(ObjectCommand),
            /// A command of a registered query.
            Query(QueryCommand),
            /// A command of a registered verb.
            Verb(VerbCommand),
        }

        /// Every command that is no command of a registered class, query or verb, by its first word.
        pub(super) static COMMANDS: &[CommandDef] = &[
            $(CommandDef { id: Id::$id, pattern: $pattern, text: $text, example: $example }),*
        ];
    };
}

commands! {
    Help: "help [<command>]", "List commands, or those that begin so.", "help show";
    Quit: "(quit | exit)", "Leave the interactive command line.", "quit";
    History: "history", "List the lines typed.", "history";
    Exec: "exec <file> [undo]",
        "Run the commands of a file; the first error stops it. With undo they are one transaction: all of them or none.", "exec setup.vly";
    Watch: "watch [every <n>] [times <n>] <command>",
        "Run a command every second (or so many), until Ctrl-C (or so many times).", "watch every 2 show interfaces";

    ConfigCheck: "config check <file>", "Read a configuration file and tell every error with its place.", "config check volley.toml";
    ConfigShow: "config show [commit <n>]", "The running configuration as a file, or that of a commit.", "config show";
    ConfigDiff: "config diff [commit <n> | <file>]",
        "What is different: from the commit that holds (or another) to what runs, or from what runs to a file.", "config diff volley.toml";
    ConfigCommit: "(config commit | write [memory] | save) {file <file> | confirm <span> | comment <text>}",
        "Bring a file in force (none: what runs) and keep it; with confirm it is taken back unless `config confirm` comes in time.",
        "config commit file volley.toml confirm 5m comment \"new uplink\"";
    ConfigConfirm: "config confirm", "Keep the commit that waits.", "config confirm";
    ConfigRollback: "config rollback <n>", "Bring an earlier commit in force again, as a new one.", "config rollback 3";
    ConfigHistory: "config history", "The commits, newest first.", "config history";
    ConfigExport: "config export [toml | commands | json]", "The running configuration as a file, as commands or as requests in JSON.", "config export commands";

    DeleteInterface: "delete interface <interface>", "Delete an interface.", "delete interface pg0";
    SetName: "set interface name <interface> <name>", "Give an interface another name.", "set interface name pg0 uplink0";

}
