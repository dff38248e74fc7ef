//! Files named in commands: a name is resolved by the client, whatever folder and mount namespace the daemon has.
//!
//! The client reads a configuration file and sends its text. The daemon reads and writes all other files: a relative name is
//! made absolute and shown.

use super::error::ClientError;
use crate::Action;
use crate::grammar::{Piece, run};
use crate::token::Form;
use crate::{parse_line, pipe};
use volley_model::{ConfigSource, Request, quote};
use volley_object::{Kind, Shape};

/// Maximum size of a file of commands, in bytes.
pub(super) const MAX_BATCH: u64 = 64 << 20;

/// Reads a text file, or standard input for the names `-` and `/dev/stdin`.
pub(super) fn read(file: &str) -> Result<String, ClientError> {
    let bad = |why: String| ClientError::Batch {
        place: file.to_string(),
        why,
    };
    let text = match file {
        "-" | "/dev/stdin" => volley_file::read_stdin(MAX_BATCH),
        file => volley_file::read_text(file.as_ref(), MAX_BATCH),
    };
    text.map_err(|e| bad(e.to_string()))
}

/// A line in the form that is sent to the daemon.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OwnFiles {
    /// The line with absolute file names.
    pub(super) line: String,
    /// The text of the configuration file.
    pub(super) text: Option<String>,
    /// A note for the user, shown after the answer.
    pub(super) note: String,
}

impl OwnFiles {
    /// Finds names of files in a line. A line that cannot be parsed is sent unchanged: the daemon reports the error.
    pub(super) fn of(line: &str) -> Result<OwnFiles, ClientError> {
        let mut own = OwnFiles {
            line: line.to_owned(),
            ..OwnFiles::default()
        };
        match parse_line(line).map(|c| (c.action, c.pipes.is_empty())) {
            Ok((Action::Config(mut action), _)) => {
                if let Some(ConfigSource::File(file)) = action.file_mut() {
                    own.text = Some(read(&file.display().to_string())?);
                }
            }
            Ok((Action::Request(request), plain)) => {
                // The slot of a part of a value is named after the field and the part.
                let is_file = |slot: &str| slot.rsplit(' ').next() == Some("file");
                own.make_absolute(plain, |slot| is_file(slot) || names_file(&request, slot))?;
            }
            _ => {}
        }
        Ok(own)
    }

    fn make_absolute(
        &mut self,
        with_note: bool,
        is_file: impl Fn(&str) -> bool,
    ) -> Result<(), ClientError> {
        let Ok((_, pieces)) = pipe::split(&self.line).and_then(|(command, _)| run(&command)) else {
            return Ok(());
        };
        let mut chars: Vec<char> = self.line.chars().collect();
        // From last to first, so that the columns of earlier words stay valid.
        for piece in pieces.iter().rev() {
            let Piece::Slot(slot, token) = piece else {
                continue;
            };
            // An abstract socket has no folder.
            if !is_file(slot) || token.form == Form::Block || token.text.starts_with(['/', '@']) {
                continue;
            }
            let bad = |e: std::io::Error| ClientError::Batch {
                place: token.text.clone(),
                why: e.to_string(),
            };
            let whole = std::path::absolute(&token.text).map_err(bad)?;
            let whole = whole.display().to_string();
            if with_note {
                self.note = format!("file: {whole}\n{}", self.note);
            }
            chars.splice(token.column - 1..token.end - 1, quote(&whole).chars());
        }
        self.line = chars.into_iter().collect();
        Ok(())
    }
}

/// Whether a slot is a field of an object or a parameter of a verb that takes a file name.
fn names_file(request: &Request, slot: &str) -> bool {
    let object = match request {
        Request::Set(object) => object,
        Request::Do(invocation) => invocation.parameters(),
        Request::InterfaceCreate(spec) => &spec.kind,
        _ => return false,
    };
    let field = object.class().field(slot);
    let kind = field.map(|(_, field)| field.kind.element());
    matches!(kind, Some(Kind::Text(text)) if text.shape == Shape::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thing with a file.
    #[derive(volley_object::Object)]
    #[object(
        class = "test_socket",
        set = "create test socket <id> filename <filename>"
    )]
    struct Socket {
        /// Number.
        #[object(key)]
        id: u32,
        /// Path.
        filename: std::path::PathBuf,
    }

    #[test]
    fn files_of_objects_become_absolute() {
        <Socket as volley_object::Object>::class().unwrap();
        let own = OwnFiles::of("create test socket 1 filename m.sock").unwrap();
        let wanted = format!("create test socket 1 filename {}", here("m.sock"));
        assert_eq!(own.line, wanted);
        assert_eq!(own.note, format!("file: {}\n", here("m.sock")));
        let line = "create test socket 1 filename @m";
        assert_eq!(OwnFiles::of(line).unwrap().line, line);
    }

    /// Two files.
    #[derive(volley_object::Object)]
    #[object(
        class = "test_files",
        interface = "test-files",
        set = "create test files <name> {rx <rx> | tx <tx> | forever@forever=on}"
    )]
    struct Files {
        /// Name.
        #[object(key)]
        name: String,
        /// Path.
        rx: Option<std::path::PathBuf>,
        /// Path.
        tx: Option<std::path::PathBuf>,
        /// Begin again at the end.
        #[object(default = false)]
        forever: bool,
    }

    /// Record a test.
    #[derive(volley_object::Verb)]
    #[verb(name = "test-record", command = "record test into <sink>")]
    struct Record {
        /// Path.
        sink: std::path::PathBuf,
    }

    fn here(name: &str) -> String {
        std::path::absolute(name).unwrap().display().to_string()
    }

    #[test]
    fn relative_names_become_absolute_where_they_stand() {
        <Files as volley_object::Object>::class().unwrap();
        let own = |line: &str| OwnFiles::of(line).unwrap();
        let line = "create test files a rx a tx \"b c\" forever | count";
        let (a, b) = (here("a"), quote(&here("b c")));
        let absolute = own(line);
        let wanted = format!("create test files a rx {a} tx {b} forever | count");
        assert_eq!((absolute.line, absolute.note), (wanted, String::new()));
        <Record as volley_object::Verb>::verb().unwrap();
        let record = own("record test into x.pcap");
        assert_eq!(record.line, format!("record test into {}", here("x.pcap")));
        assert_eq!(record.note, format!("file: {}\n", here("x.pcap")));
        let stays = [
            "record test into /tmp/x.pcap",
            "show interfaces",
            "bogus x.pcap",
        ];
        for line in stays {
            let same = OwnFiles {
                line: line.into(),
                ..OwnFiles::default()
            };
            assert_eq!(own(line), same);
        }
    }
}
