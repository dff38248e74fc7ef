//! Every example of the pages, the READMEs and the package: configuration files are checked, commands are parsed.
//!
//! A block that is no whole example is marked in the page, after the language of its fence:
//!
//! | fence | what it is |
//! |---|---|
//! | `toml` | a whole configuration: it is parsed, and its objects are consistent |
//! | `toml,fragment` | a part of one: the same, but the interfaces that it names may be elsewhere |
//! | `text`, `console` or nothing | commands, perhaps with their output: every command is parsed |
//! | `text,output` | output of a program |
//! | `text,syntax` | the syntax of a command, with placeholders |
//! | `sh` | commands of other programs |

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Block {
    place: String,
    language: String,
    attribute: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every handwritten page: generated pages have a separate test.
fn pages() -> Vec<PathBuf> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap().flatten();
        entries.map(|e| e.path()).filter(|p| p.is_dir()).collect()
    };
    let root = root();
    let mut places = vec![root.clone(), root.join("docs"), root.join("packaging")];
    for above in ["apps", "clients", "tests"] {
        places.extend(folders(&root.join(above)));
    }
    for area in folders(&root.join("crates")) {
        places.extend(folders(&area));
    }
    let files = |place: &PathBuf| std::fs::read_dir(place).unwrap().flatten();
    let mut all: Vec<PathBuf> = places.iter().flat_map(files).map(|e| e.path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "md"));
    all.sort();
    assert!(all.len() > 40, "{}", all.len());
    all
}

fn blocks(place: &str, text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut inside = false;
    for (n, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(info) => {
                inside = true;
                let (language, attribute) =
                    info.trim().split_once(',').unwrap_or((info.trim(), ""));
                all.push(Block {
                    place: format!("{place}:{}", n + 1),
                    language: language.to_owned(),
                    attribute: attribute.to_owned(),
                    lines: Vec::new(),
                });
            }
            None if inside => all.last_mut().unwrap().lines.push(line.to_owned()),
            None => {}
        }
    }
    assert!(!inside, "{place}: the last block is not closed");
    all
}

fn all_blocks() -> Vec<Block> {
    let all = pages();
    let of_page = |path: &PathBuf| {
        let place = path.strip_prefix(root()).unwrap().display().to_string();
        blocks(&place, &std::fs::read_to_string(path).unwrap())
    };
    all.iter().flat_map(of_page).collect()
}

/// Why a configuration is refused: by its parser, or because its objects are inconsistent. A fragment may name interfaces that
/// it does not contain.
fn fault(text: &str, whole: bool) -> Option<String> {
    let config = match volley_config::parse(text) {
        Ok(config) => config,
        Err(error) => {
            let all = error.to_string();
            let missing = |line: &&str| !whole && line.contains(": there is no interface ");
            let faults: Vec<&str> = all.lines().filter(|line| !missing(line)).collect();
            return (!faults.is_empty()).then(|| faults.join("\n"));
        }
    };
    let requests: Vec<_> = config
        .requests
        .into_iter()
        .filter(volley_model::Request::is_configuration)
        .collect();
    let state = volley_control::Core::state_of(&requests);
    state.err().map(|error| error.to_string())
}

/// Registers the classes of objects, as the program does.
fn define() {
    volley_daemon::objects::register().unwrap();
}

#[test]
fn every_configuration_of_the_pages_is_one() {
    define();
    let (mut seen, mut faults) = (0, Vec::new());
    for block in all_blocks().iter().filter(|b| b.language == "toml") {
        seen += 1;
        assert!(
            matches!(block.attribute.as_str(), "" | "fragment"),
            "{}",
            block.place
        );
        let text = block.lines.join("\n");
        let whole = block.attribute.is_empty();
        faults.extend(fault(&text, whole).map(|why| format!("{}: {why}", block.place)));
    }
    assert!(seen > 8, "{seen}");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A commented-out line of configuration: the head of a table, or a key with its value.
fn is_commented_out(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("# ") else {
        return false;
    };
    let key = rest.split_once(" = ").map_or("", |(key, _)| key);
    let name = |c: char| c.is_ascii_lowercase() || c == '_';
    rest.starts_with('[') || (!key.is_empty() && key.chars().all(name))
}

#[test]
fn the_package_s_file_is_a_configuration_as_it_is_and_with_its_examples() {
    let path = root().join("packaging/volley.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(fault(&text, true), None);
    let mut examples = 0;
    let uncommented = text.lines().map(|line| match is_commented_out(line) {
        true => {
            examples += 1;
            &line[2..]
        }
        false => line,
    });
    let text: String = uncommented.map(|line| format!("{line}\n")).collect();
    assert!(examples > 3, "{text}");
    assert_eq!(fault(&text, true), None, "{text}");
}

#[test]
fn every_example_file_is_a_configuration() {
    let folder = root().join("crates/control/config/examples");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(fault(&text, true), None, "{}", file.path().display());
        seen += 1;
    }
    assert!(seen > 0);
}

/// A command without the page's remark, which follows three blanks.
fn without_remark(line: &str) -> &str {
    let mut quoted = false;
    let mut blanks = 0;
    for (at, c) in line.char_indices() {
        quoted ^= c == '"';
        blanks = if c == ' ' && !quoted { blanks + 1 } else { 0 };
        if blanks == 3 {
            return line[..at].trim_end();
        }
    }
    line.trim_end()
}

/// Words of a shell command without their quotes.
fn words(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            (' ', None) => all.push(String::new()),
            _ => all.last_mut().unwrap().push(c),
        }
    }
    all.retain(|word| !word.is_empty());
    all
}

/// A line of a page.
#[derive(Debug, PartialEq)]
enum Line {
    /// A command of `volley ctl`.
    Ctl(String),
    /// Arguments of the program.
    Program(Vec<String>),
}

/// First words of the commands of `volley ctl`.
fn first_words() -> Vec<String> {
    let reference = volley_cli::reference();
    let heads = reference.lines().filter_map(|l| l.strip_prefix("### `"));
    let first = |head: &str| head.split([' ', '`']).next().unwrap().to_owned();
    heads
        .map(first)
        .filter(|w| w.chars().all(|c| c.is_alphanumeric() || c == '-'))
        .collect()
}

fn commands(block: &Block, first_words: &[String]) -> Vec<(usize, Line)> {
    const PROMPTS: [&str; 3] = ["$ ", "volley# ", "volley> "];
    let prompt = |line: &str| PROMPTS.into_iter().find(|p| line.starts_with(p));
    let prompted = block.lines.iter().any(|line| prompt(line).is_some());
    let mut found = Vec::new();
    for (n, line) in block.lines.iter().enumerate() {
        let sign = prompt(line);
        if prompted && sign.is_none() {
            continue;
        }
        let line = line.strip_prefix(sign.unwrap_or("")).unwrap();
        let line = without_remark(line.strip_prefix("sudo ").unwrap_or(line));
        let line = line.strip_suffix('&').unwrap_or(line).trim();
        let first = line.split(' ').next().unwrap();
        if sign.is_some_and(|s| s.starts_with("volley")) {
            found.push((n, Line::Ctl(line.to_owned())));
        } else if let Some(rest) = line.strip_prefix("volley ctl") {
            let mut rest = words(rest);
            rest.truncate(rest.iter().take_while(|w| *w != "<" && *w != ">").count());
            while rest.first().is_some_and(|w| w.starts_with("--")) {
                let option = rest.remove(0);
                if option == "--socket" {
                    rest.remove(0);
                }
            }
            found.push((n, Line::Ctl(rest.join(" "))));
        } else if let Some(rest) = line.strip_prefix("volley ") {
            found.push((n, Line::Program(words(rest))));
        } else if sign.is_none() && first_words.iter().any(|w| w == first) {
            found.push((n, Line::Ctl(line.to_owned())));
        }
    }
    found
}

/// Why the program refuses these arguments. With `--help` at the end it parses them without an effect.
fn not_taken(arguments: &[String]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_volley"))
        .args(arguments)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(error)
}

#[test]
fn every_command_of_the_pages_is_one() {
    define();
    let (mut ctl, mut program, mut faults) = (0, 0, Vec::new());
    let first_words = first_words();
    assert!(first_words.len() > 30);
    for block in all_blocks() {
        let shown = matches!(block.language.as_str(), "" | "text" | "console");
        let marked = matches!(block.attribute.as_str(), "output" | "syntax");
        if !shown || marked {
            continue;
        }
        for (n, line) in commands(&block, &first_words) {
            let why = match &line {
                Line::Ctl(line) => {
                    ctl += 1;
                    volley_cli::parse_line(line).err().map(|e| e.to_string())
                }
                Line::Program(words) => {
                    program += 1;
                    not_taken(words)
                }
            };
            let place = format!("{} line {}", block.place, n + 1);
            faults.extend(why.map(|why| format!("{place}: {line:?}: {why}")));
        }
    }
    assert!(ctl > 100 && program > 15, "{ctl} {program}");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Bodies of requests over HTTP.
#[test]
fn every_request_of_the_pages_is_one() {
    let mut seen = 0;
    for block in all_blocks() {
        let text = block.lines.join(" ");
        let parts: Vec<&str> = text.split("--data '").collect();
        for pair in parts.windows(2) {
            let (before, body) = (pair[0], pair[1].split('\'').next().unwrap());
            let path = before.trim_end().rsplit(' ').next().unwrap();
            if let Some((_, verb)) = path.split_once("/v1/do/") {
                let parameters = serde_json::from_str(body).unwrap();
                let classes = volley_object::classes();
                let verb = classes.verb(verb).expect(verb);
                assert_eq!(
                    verb.invoke_with(&parameters).err(),
                    None,
                    "{}: {body}",
                    block.place
                );
                seen += 1;
                continue;
            }
            let request = serde_json::from_str::<volley_model::Request>(body);
            assert!(request.is_ok(), "{}: {body}: {request:?}", block.place);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn lines_are_read_as_the_pages_mean_them() {
    let text = "```text,note\n$ sudo volley config check a.toml    # every error\nno command\n$ volley ctl --socket s \"show   drops\" &\n```\n";
    let block = &blocks("p", text)[0];
    assert_eq!(
        (block.language.as_str(), block.attribute.as_str()),
        ("text", "note")
    );
    let check = ["config", "check", "a.toml"].map(str::to_owned).to_vec();
    assert_eq!(
        commands(block, &[]),
        [
            (0, Line::Program(check)),
            (2, Line::Ctl("show   drops".into()))
        ]
    );
    let bare = &blocks("p", "```text\nset x      remark\nother\n```\n")[0];
    assert_eq!(
        commands(bare, &["set".into()]),
        [(0, Line::Ctl("set x".into()))]
    );
    assert!(is_commented_out("# workers = 2") && is_commented_out("# [[interface]]"));
    assert!(!is_commented_out("# All keys are here: a = b") && !is_commented_out("workers = 2"));
    assert!(not_taken(&["config".into(), "chek".into()]).is_some());
    assert!(
        fault(
            "[[interface]]\nname = \"a\"\nkind = \"host-interface\"\nhost = { name = \"a\" }\n",
            true
        )
        .is_some()
    );
    define();
    let alone =
        "[[neighbor]]\ninterface = \"pg9\"\naddress = \"192.0.2.1\"\nmac = \"02:fe:00:00:00:01\"\n";
    assert!(fault(alone, true).is_some() && fault(alone, false).is_none());
    let wrong = alone.replace("mac =", "mack =");
    assert!(fault(&wrong, false).is_some_and(|why| why.contains("mack")));
}
