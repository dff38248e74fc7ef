//! Tokens to statements.

use crate::arguments::split;
use crate::ast::{
    Body, Chain, ClassName, ClassUse, Compound, Config, Formal, Group, Item, Link, Overload,
    Program, Statement, What,
};
use crate::error::{ClickError, Source};
use crate::lexer::{Kind, Token, tokens};
use std::rc::Rc;

/// Compound elements inside each other.
const DEEPEST: usize = 64;
/// The highest port number.
const HIGHEST_PORT: usize = 1023;
/// The variable that takes all further arguments.
pub(crate) const REST: &str = "__REST__";

/// Parse a configuration.
pub fn parse(source: &Source) -> Result<Program, ClickError> {
    let mut parser = Parser {
        source,
        tokens: tokens(source)?,
        next: 0,
        depth: 0,
    };
    let body = parser.body()?;
    match parser.peek().kind {
        Kind::End => Ok(Program {
            body: Rc::new(body),
        }),
        _ => Err(parser.unexpected("an element or a statement")),
    }
}

struct Parser<'a> {
    source: &'a Source,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
}

/// Words that begin statements.
const KEYWORDS: [&str; 7] = [
    "elementclass",
    "define",
    "require",
    "provide",
    "library",
    "export",
    "connectiontunnel",
];

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token<'a> {
        // The last token is the end, and there is one always.
        let last = self.tokens.len() - 1;
        self.tokens[(self.next + ahead).min(last)]
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_if(&mut self, kind: Kind) -> Option<Token<'a>> {
        (self.peek().kind == kind).then(|| self.take())
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Result<Token<'a>, ClickError> {
        match self.take_if(kind) {
            Some(token) => Ok(token),
            None => Err(self.unexpected(what)),
        }
    }

    fn unexpected(&self, what: &str) -> ClickError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            Kind::Config => "a parenthesis".to_owned(),
            Kind::Variable => format!("'${}'", token.text),
            _ => format!("'{}'", token.text),
        };
        let text = format!("{found} is not expected here: write {what}");
        self.source.error(token.at, text)
    }

    fn config(&mut self) -> Option<Config> {
        self.take_if(Kind::Config).map(|token| Config {
            text: token.text.to_owned(),
            at: token.at,
        })
    }

    fn body(&mut self) -> Result<Body, ClickError> {
        let mut body = Body::default();
        loop {
            let token = self.peek();
            match token.kind {
                Kind::Semicolon => {
                    self.take();
                    continue;
                }
                Kind::End | Kind::CloseBody | Kind::BarBar => return Ok(body),
                Kind::Word if KEYWORDS.contains(&token.text) => self.keyword(&mut body)?,
                _ => {
                    let chain = self.chain()?;
                    body.statements.push(Statement::Chain(chain));
                }
            }
        }
    }

    fn keyword(&mut self, body: &mut Body) -> Result<(), ClickError> {
        let word = self.take();
        match word.text {
            "elementclass" => {
                let name = self.expect(Kind::Word, "the name of the class")?;
                let definition = self.class("a class or { elements }")?;
                body.statements.push(Statement::Class {
                    name: name.text.to_owned(),
                    definition,
                    at: name.at,
                });
            }
            "define" => {
                let list = self.expect(Kind::Config, "($name value)")?;
                for text in split(list.text) {
                    let statement = self.definition(&text, list.at)?;
                    body.statements.push(statement);
                }
            }
            "require" | "provide" => {
                self.expect(Kind::Config, "(names)")?;
            }
            other => {
                let text = format!("the statement {other} is not supported: remove it");
                return Err(self.source.error(word.at, text));
            }
        }
        Ok(())
    }

    /// `$name value`
    fn definition(&self, text: &str, at: usize) -> Result<Statement, ClickError> {
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match name.strip_prefix('$').filter(|name| !name.is_empty()) {
            Some(name) => Ok(Statement::Define {
                name: name.to_owned(),
                value: Config {
                    text: value.trim().to_owned(),
                    at,
                },
            }),
            None => Err(self.source.error(
                at,
                format!("'{text}' defines no variable: write $name value"),
            )),
        }
    }

    fn chain(&mut self) -> Result<Chain, ClickError> {
        let mut chain = Chain::default();
        // An arrow without an element on one side leads from the input or to the output of the compound element.
        match self.is_arrow() {
            true => chain.groups.push(vec![self.implied("input")]),
            false => chain.groups.push(self.group()?),
        }
        while self.is_arrow() {
            let arrow = self.take();
            chain.links.push(Link {
                pairs: arrow.kind == Kind::PairArrow,
                at: arrow.at,
            });
            let ends = [Kind::Semicolon, Kind::CloseBody, Kind::BarBar, Kind::End];
            match ends.contains(&self.peek().kind) {
                true => chain.groups.push(vec![self.implied("output")]),
                false => {
                    let group = self.group()?;
                    chain.groups.push(group);
                }
            }
        }
        // Semicolons are optional: a statement also ends in front of what begins the next one.
        let ends = [
            Kind::Semicolon,
            Kind::CloseBody,
            Kind::BarBar,
            Kind::End,
            Kind::Word,
            Kind::OpenBody,
        ];
        if ends.contains(&self.peek().kind) {
            return Ok(chain);
        }
        Err(self.unexpected("-> and an element, or ;"))
    }

    fn is_arrow(&self) -> bool {
        matches!(self.peek().kind, Kind::Arrow | Kind::PairArrow)
    }

    fn implied(&self, name: &str) -> Item {
        Item {
            at: self.peek().at,
            what: What::Name(name.to_owned()),
            inputs: None,
            outputs: None,
        }
    }

    /// Elements with commas between them. A class behind the last one is the class of all that have none.
    fn group(&mut self) -> Result<Group, ClickError> {
        let mut group = Group::new();
        loop {
            let inputs = self.ports()?;
            let at = self.peek().at;
            let what = self.element()?;
            let outputs = self.ports()?;
            group.push(Item {
                at,
                what,
                inputs,
                outputs,
            });
            if let Some(Item {
                what: What::Declaration(_, class),
                ..
            }) = group.last()
            {
                let class = class.clone();
                give_class(&mut group, &class);
            }
            if self.take_if(Kind::Comma).is_none() {
                return Ok(group);
            }
        }
    }

    fn element(&mut self) -> Result<What, ClickError> {
        let is_name = self.peek().kind == Kind::Word;
        if is_name && self.peek_at(1).kind == Kind::Colons {
            let name = self.take();
            self.take();
            self.check_name(name)?;
            let class = self.class("a class")?;
            return Ok(What::Declaration(name.text.to_owned(), class));
        }
        if is_name && self.peek_at(1).kind != Kind::Config {
            let name = self.take();
            self.check_name(name)?;
            return Ok(What::Name(name.text.to_owned()));
        }
        self.class("an element").map(What::Anonymous)
    }

    fn check_name(&self, name: Token<'_>) -> Result<(), ClickError> {
        if name.text.bytes().all(|b| b.is_ascii_digit()) {
            let text = format!(
                "'{}' cannot be the name of an element: names contain a letter",
                name.text
            );
            return Err(self.source.error(name.at, text));
        }
        Ok(())
    }

    /// A class, by name or by its body, with a configuration.
    fn class(&mut self, what: &str) -> Result<ClassUse, ClickError> {
        let at = self.peek().at;
        let class = match self.peek().kind {
            Kind::Word => {
                let name = self.take();
                self.check_name(name)?;
                ClassName::Named(name.text.to_owned())
            }
            Kind::OpenBody => ClassName::Compound(Rc::new(self.compound()?)),
            _ => return Err(self.unexpected(what)),
        };
        let config = self.config();
        Ok(ClassUse { class, config, at })
    }

    fn compound(&mut self) -> Result<Compound, ClickError> {
        let open = self.expect(Kind::OpenBody, "{")?;
        self.depth += 1;
        if self.depth > DEEPEST {
            let text = format!(
                "compound elements are nested more than {DEEPEST} deep: name the inner ones by elementclass"
            );
            return Err(self.source.error(open.at, text));
        }
        let mut compound = Compound::default();
        loop {
            if self.take_if(Kind::Ellipsis).is_some() {
                compound.extends = true;
            } else {
                let formals = self.formals()?;
                let body = Rc::new(self.body()?);
                compound.overloads.push(Overload { formals, body });
            }
            if self.take_if(Kind::BarBar).is_none() {
                break;
            }
        }
        self.expect(Kind::CloseBody, "; or }")?;
        self.depth -= 1;
        Ok(compound)
    }

    /// `$a, KEY $b |`
    fn formals(&mut self) -> Result<Vec<Formal>, ClickError> {
        let mut all: Vec<Formal> = Vec::new();
        let with_keyword =
            |it: &Self| it.peek().kind == Kind::Word && it.peek_at(1).kind == Kind::Variable;
        if self.take_if(Kind::Bar).is_some() {
            return Ok(all);
        }
        if self.peek().kind != Kind::Variable && !with_keyword(self) {
            return Ok(all);
        }
        loop {
            let keyword = self.take_if(Kind::Word).map(|word| word.text.to_owned());
            let name = self.expect(Kind::Variable, "a parameter such as $name")?;
            if all.iter().any(|it| it.name == name.text) {
                let text = format!("the parameter ${} is there twice: rename one", name.text);
                return Err(self.source.error(name.at, text));
            }
            all.push(Formal {
                keyword,
                name: name.text.to_owned(),
            });
            if self.take_if(Kind::Comma).is_none() {
                break;
            }
        }
        self.expect(Kind::Bar, ", or | behind the parameters")?;
        Ok(all)
    }

    /// `[0, 2]`
    fn ports(&mut self) -> Result<Option<Vec<usize>>, ClickError> {
        if self.take_if(Kind::OpenPorts).is_none() {
            return Ok(None);
        }
        let mut all = Vec::new();
        loop {
            let token = self.expect(Kind::Word, "a port number")?;
            match token.text.parse::<usize>() {
                Ok(port) if port <= HIGHEST_PORT => all.push(port),
                _ => {
                    let text = format!(
                        "'{}' is no port: ports are numbers from 0 to {HIGHEST_PORT}",
                        token.text
                    );
                    return Err(self.source.error(token.at, text));
                }
            }
            if self.take_if(Kind::Comma).is_none() {
                break;
            }
        }
        self.expect(Kind::ClosePorts, "]")?;
        Ok(Some(all))
    }
}

/// Give the names of a group without a class the class of its last declaration.
fn give_class(group: &mut Group, class: &ClassUse) {
    for item in group.iter_mut() {
        if let What::Name(name) = &item.what {
            item.what = What::Declaration(name.clone(), class.clone());
        }
    }
}
