//! `config ...`

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{ConfigAction, ConfigForm, ConfigSource, SyntaxError, parse_span};

pub(super) fn action(id: Id, args: &mut Args<'_>) -> Result<ConfigAction, SyntaxError> {
    Ok(match id {
        Id::ConfigCheck => ConfigAction::Check {
            source: ConfigSource::File(args.text()?.into()),
        },
        Id::ConfigShow => ConfigAction::Show {
            source: numbered(args)?.unwrap_or(ConfigSource::Running),
            form: ConfigForm::Toml,
        },
        Id::ConfigExport => {
            let forms = [
                ("commands", ConfigForm::Commands),
                ("json", ConfigForm::Json),
                ("toml", ConfigForm::Toml),
            ];
            let form = forms.iter().find(|(word, _)| args.has(word));
            ConfigAction::Show {
                source: ConfigSource::Running,
                form: form.map_or(ConfigForm::Toml, |(_, form)| *form),
            }
        }
        Id::ConfigDiff if args.has("commit") => ConfigAction::Diff {
            from: numbered(args)?.unwrap_or(ConfigSource::Committed),
            to: ConfigSource::Running,
        },
        Id::ConfigDiff => match args.maybe_text() {
            Some(file) => ConfigAction::Diff {
                from: ConfigSource::Running,
                to: ConfigSource::File(file.into()),
            },
            None => ConfigAction::Diff {
                from: ConfigSource::Committed,
                to: ConfigSource::Running,
            },
        },
        Id::ConfigCommit => commit(args)?,
        Id::ConfigConfirm => ConfigAction::Confirm,
        Id::ConfigRollback => ConfigAction::Rollback {
            number: args.number(u64::MAX)?,
        },
        _ => ConfigAction::History,
    })
}

fn numbered(args: &mut Args<'_>) -> Result<Option<ConfigSource>, SyntaxError> {
    if !args.has("commit") {
        return Ok(None);
    }
    args.number(u64::MAX).map(|n| Some(ConfigSource::Commit(n)))
}

fn commit(args: &mut Args<'_>) -> Result<ConfigAction, SyntaxError> {
    let (mut source, mut confirm_s, mut comment) = (ConfigSource::Running, None, None);
    // The words of the command itself.
    while ["config", "commit", "write", "memory", "save"]
        .into_iter()
        .any(|word| args.take(word))
    {}
    while let Some((word, column)) = args.option()? {
        match word {
            "file" => source = ConfigSource::File(args.text()?.into()),
            "confirm" => {
                let token = args.token()?;
                let span =
                    parse_span(&token.text).map_err(|e| SyntaxError::new(token.column, e))?;
                confirm_s = Some(span);
            }
            "comment" => comment = Some(args.text()?),
            _ => stray(word, column)?,
        }
    }
    Ok(ConfigAction::Commit {
        source,
        confirm_s,
        comment,
    })
}
