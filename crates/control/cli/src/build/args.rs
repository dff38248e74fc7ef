//! The pieces of a command, taken one after the other.
//!
//! The pattern has already made sure of their order, so a missing piece is a fault of the table; it is still reported as
//! an error and not a panic.

use crate::grammar::Piece;
use crate::token::Token;
use volley_model::SyntaxError;

pub(crate) struct Args<'a> {
    pieces: &'a [Piece],
    at: usize,
    end: usize,
    seen: Vec<&'static str>,
}

impl<'a> Args<'a> {
    /// All pieces; `end` is the column behind the line.
    pub(crate) fn new(pieces: &'a [Piece], end: usize) -> Args<'a> {
        Args {
            pieces,
            at: 0,
            end,
            seen: Vec::new(),
        }
    }

    pub(crate) fn peek(&self) -> Option<&'a Piece> {
        self.pieces.get(self.at)
    }

    /// Where the next piece stands.
    pub(crate) fn column(&self) -> usize {
        match self.peek() {
            Some(Piece::Word(_, column)) => *column,
            Some(Piece::Slot(_, token)) => token.column,
            None => self.end,
        }
    }

    /// The next piece when it is a word.
    pub(crate) fn word(&mut self) -> Option<(&'static str, usize)> {
        match self.peek() {
            Some(Piece::Word(word, column)) => {
                self.at += 1;
                Some((word, *column))
            }
            _ => None,
        }
    }

    /// The next word, the first word of an option: an option may be given once.
    pub(crate) fn option(&mut self) -> Result<Option<(&'static str, usize)>, SyntaxError> {
        let Some((word, column)) = self.word() else {
            return Ok(None);
        };
        if self.seen.contains(&word) {
            return Err(SyntaxError::new(column, format!("'{word}' is given twice")));
        }
        self.seen.push(word);
        Ok(Some((word, column)))
    }

    /// True, and the word taken, when the next piece is this word.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Some(Piece::Word(w, _)) if *w == word);
        self.at += usize::from(here);
        here
    }

    /// True when one of the words still to come is this one.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.pieces[self.at..]
            .iter()
            .any(|p| matches!(p, Piece::Word(w, _) if *w == word))
    }

    /// Skips words up to the next slot.
    pub(crate) fn slot(&mut self) -> Option<&'a Token> {
        while let Some(piece) = self.peek() {
            self.at += 1;
            if let Piece::Slot(_, token) = piece {
                return Some(token);
            }
        }
        None
    }

    pub(crate) fn token(&mut self) -> Result<&'a Token, SyntaxError> {
        let end = self.end;
        self.slot()
            .ok_or_else(|| SyntaxError::new(end, "a value is missing"))
    }

    pub(crate) fn text(&mut self) -> Result<String, SyntaxError> {
        self.token().map(|t| t.text.clone())
    }

    pub(crate) fn maybe_text(&mut self) -> Option<String> {
        self.slot().map(|t| t.text.clone())
    }

    /// The next slot's text, or nothing.
    pub(crate) fn rest(&mut self) -> Result<String, SyntaxError> {
        Ok(self.maybe_text().unwrap_or_default())
    }

    /// The next slot, a number of at most `max`.
    pub(crate) fn number(&mut self, max: u64) -> Result<u64, SyntaxError> {
        let token = self.token()?;
        let digits = token.text.bytes().all(|b| b.is_ascii_digit());
        let number = token.text.parse().ok().filter(|n| digits && *n <= max);
        let bad = || {
            SyntaxError::new(
                token.column,
                format!("'{}' is not a number from 0 to {max}", token.text),
            )
        };
        number.ok_or_else(bad)
    }

    /// All pieces that are left.
    pub(crate) fn all(&mut self) -> &'a [Piece] {
        let rest = &self.pieces[self.at..];
        self.at = self.pieces.len();
        rest
    }
}
