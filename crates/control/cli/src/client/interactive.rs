//! The interactive command line: history in a file; the daemon provides completion and `?` help.

use super::connection::Connection;
use super::error::ClientError;
use super::run::by_client;
use super::screen::{Screen, put};
use crate::script::open;
use crate::server::{Answer, Ask, Op};
use crate::{Action, Builtin, parse_line};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Editor, Event, EventContext, EventHandler, Helper,
    KeyEvent, RepeatCount,
};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The prompt `volley@HOST# ` names the router that is configured.
fn prompt() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    match name.as_str() {
        "" | "(none)" => "volley# ".to_owned(),
        name => format!("volley@{name}# "),
    }
}

/// Reads lines from the terminal until `quit` or end of input. History is kept in `history` when given.
pub fn interactive(
    socket: &Path,
    history: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let connection = Rc::new(RefCell::new(Connection::open(socket)?));
    let asked = Arc::new(AtomicBool::new(false));
    let mut editor = editor(Rc::clone(&connection), Arc::clone(&asked))?;
    if let Some(path) = history {
        // If the history cannot be read, an empty one is used.
        let _ = editor.load_history(path);
    }
    let mut shell = Shell {
        socket: socket.to_path_buf(),
        connection,
        screen: Screen::of_stdout(),
        prompt: prompt(),
        out,
    };
    let mut begun = String::new();
    loop {
        let line = match editor.readline_with_initial(&shell.prompt, (&begun, "")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                begun.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(ClientError::Terminal(e.to_string())),
        };
        if asked.swap(false, Ordering::Relaxed) {
            shell.help(&line)?;
            begun = line;
            continue;
        }
        begun.clear();
        let _ = editor.add_history_entry(line.as_str());
        if shell.run(&line, editor.history())? == Next::Leave {
            break;
        }
    }
    if let Some(path) = history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

type Ed = Editor<Asks, FileHistory>;

fn editor(connection: Rc<RefCell<Connection>>, asked: Arc<AtomicBool>) -> Result<Ed, ClientError> {
    let config = rustyline::Config::builder()
        .completion_type(rustyline::CompletionType::List)
        .auto_add_history(false)
        .build();
    let mut editor: Ed =
        Editor::with_config(config).map_err(|e| ClientError::Terminal(e.to_string()))?;
    let helper = Asks {
        connection,
        asked: Arc::clone(&asked),
    };
    editor.set_helper(Some(helper));
    let question = EventHandler::Conditional(Box::new(Question { asked }));
    editor.bind_sequence(KeyEvent::from('?'), question);
    Ok(editor)
}

#[derive(PartialEq, Eq)]
enum Next {
    Read,
    Leave,
}

struct Shell<'a> {
    socket: PathBuf,
    connection: Rc<RefCell<Connection>>,
    screen: Screen,
    prompt: String,
    out: &'a mut dyn Write,
}

impl Shell<'_> {
    fn say(&mut self, text: &str) -> Result<(), ClientError> {
        put(text.as_bytes(), self.out)
    }

    fn report(&mut self, done: Result<(), ClientError>) -> Result<(), ClientError> {
        match done {
            Ok(()) => Ok(()),
            Err(e) => self.say(&format!("{}\n", self.screen.error(&e.to_string()))),
        }
    }

    fn help(&mut self, line: &str) -> Result<(), ClientError> {
        let ask = Ask::new(Op::Help, line);
        let answer = self.connection.borrow_mut().ask(&ask);
        let text = answer.map_or_else(|e| format!("{e}\n"), |a| a.text);
        self.say(&text)
    }

    fn run(&mut self, line: &str, history: &FileHistory) -> Result<Next, ClientError> {
        let command = parse_line(line);
        if let Ok(command) = &command {
            let mut connection = self.connection.borrow_mut();
            let (command, screen) = ((line, command), self.screen);
            let done = by_client(&mut connection, command, false, screen, self.out);
            drop(connection);
            if let Some(done) = done {
                self.report(done)?;
                return Ok(Next::Read);
            }
        }
        match command.map(|c| c.action) {
            Ok(Action::Nothing) => {}
            Ok(Action::Builtin(Builtin::Quit)) => return Ok(Next::Leave),
            Ok(Action::Builtin(Builtin::History)) => {
                let lines: String = history.iter().map(|l| format!("{l}\n")).collect();
                self.say(&lines)?;
            }
            _ => self.ask(line)?,
        }
        Ok(Next::Read)
    }

    /// Runs a line on the daemon. A broken connection is opened again for the next line, not for this one: the daemon may have
    /// carried this line out already.
    fn ask(&mut self, line: &str) -> Result<(), ClientError> {
        let answer = self.connection.borrow_mut().exec(line, false);
        match answer {
            Ok(Answer { text, .. }) => self.screen.show(&text, self.out),
            Err(e @ ClientError::Refused { column, .. }) => {
                let before = self.prompt.chars().count();
                let mark =
                    column.map_or_else(String::new, |c| format!("{:>1$}\n", '^', before + c));
                self.say(&format!("{mark}{}\n", self.screen.error(&e.to_string())))
            }
            Err(e) => {
                if let Ok(fresh) = Connection::open(&self.socket) {
                    *self.connection.borrow_mut() = fresh;
                }
                self.say(&format!("{e}\n"))
            }
        }
    }
}

/// Key handler for `?` outside quotes: returns the line unchanged, marked as a request for help.
struct Question {
    asked: Arc<AtomicBool>,
}

impl ConditionalEventHandler for Question {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext<'_>) -> Option<Cmd> {
        let quotes = cx.line().chars().filter(|c| *c == '"').count();
        if quotes % 2 == 1 {
            return Some(Cmd::Insert(1, "?".to_string()));
        }
        self.asked.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// Requests completions from the daemon.
struct Asks {
    connection: Rc<RefCell<Connection>>,
    asked: Arc<AtomicBool>,
}

impl Completer for Asks {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or(line);
        let ask = Ask::new(Op::Complete, before);
        let Ok(answer) = self.connection.borrow_mut().ask(&ask) else {
            return Ok((at, Vec::new()));
        };
        let start = answer.start.unwrap_or(0);
        let start = before
            .char_indices()
            .nth(start)
            .map_or(before.len(), |(i, _)| i);
        let pair = |c: crate::Candidate| Pair {
            replacement: format!("{} ", c.text),
            display: c.show,
        };
        Ok((start, answer.candidates.into_iter().map(pair).collect()))
    }
}

impl rustyline::hint::Hinter for Asks {
    type Hint = String;
}

impl rustyline::highlight::Highlighter for Asks {}

impl rustyline::validate::Validator for Asks {
    /// A line with an open brace continues in the next line, unless it is a request for help.
    fn validate(
        &self,
        cx: &mut rustyline::validate::ValidationContext<'_>,
    ) -> rustyline::Result<rustyline::validate::ValidationResult> {
        use rustyline::validate::ValidationResult::{Incomplete, Valid};
        let question = self.asked.load(Ordering::Relaxed);
        Ok(if open(cx.input()) && !question {
            Incomplete
        } else {
            Valid(None)
        })
    }
}

impl Helper for Asks {}
