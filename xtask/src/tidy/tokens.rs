//! A flat list of a file's tokens, without test code. It includes the tokens of macros, which a syntax tree does not
//! parse. Comments and strings are not identifiers, so they cause no false positives.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A token and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Text of the token.
    pub text: String,
    /// Line of the token, from 1.
    pub line: usize,
}

/// All tokens of a text; none if it is not Rust.
pub fn all(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse::<TokenStream>() {
        flatten(stream, &mut tokens);
    }
    tokens
}

/// All tokens except those of items under `#[cfg(test)]` or `#[test]`.
pub fn outside_tests(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse::<TokenStream>() {
        flatten(without_tests(stream), &mut tokens);
    }
    tokens
}

/// A file's syntax without the items under `#[cfg(test)]` or `#[test]`; `None` if it is not Rust.
pub fn syntax_outside_tests(text: &str) -> Option<syn::File> {
    let stream = text.parse::<TokenStream>().ok()?;
    syn::parse2(without_tests(stream)).ok()
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                out.push(Token {
                    text: open.to_owned(),
                    line,
                });
                flatten(group.stream(), out);
                out.push(Token {
                    text: close.to_owned(),
                    line: group.span_close().start().line,
                });
            }
            other => out.push(Token {
                text: other.to_string(),
                line,
            }),
        }
    }
}

/// Removes each item with a test attribute, including the attributes and doc comments before it: up to its closing brace,
/// or its semicolon if it has no braces.
fn without_tests(stream: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut skipping = false;
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if skipping {
            let end = match &tree {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            skipping = !end;
            continue;
        }
        if is_hash(&tree) && trees.peek().is_some_and(is_test_attribute) {
            trees.next();
            drop_attributes(&mut kept);
            skipping = true;
            continue;
        }
        kept.push(match tree {
            TokenTree::Group(group) => {
                let mut inner =
                    proc_macro2::Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        });
    }
    kept.into_iter().collect()
}

/// Removes the attributes at the end, which belong to the item that follows.
fn drop_attributes(kept: &mut Vec<TokenTree>) {
    while let [.., hash, TokenTree::Group(group)] = kept.as_slice() {
        if !is_hash(hash) || group.delimiter() != Delimiter::Bracket {
            return;
        }
        kept.truncate(kept.len() - 2);
    }
}

fn is_hash(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == '#')
}

fn is_test_attribute(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else {
        return false;
    };
    let text: String = group.stream().to_string().split_whitespace().collect();
    text == "test"
        || text == "cfg(test)"
        || (text.starts_with("cfg(all(") && text.contains("test") && !text.contains("not(test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tokens: &[Token]) -> Vec<&str> {
        tokens.iter().map(|token| token.text.as_str()).collect()
    }

    #[test]
    fn tokens_have_lines_and_no_comments() {
        let tokens = all("fn a() {}\n// unsafe\nlet s = \"unsafe\"; m!{ unsafe }\n");
        let found: Vec<_> = tokens
            .iter()
            .filter(|token| token.text == "unsafe")
            .collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn tests_are_left_out_and_nothing_else() {
        let text = "fn a() { b.c() }\n#[cfg(test)] mod tests { fn x() { d.unwrap() } }\n#[test] fn t() { e }\n#[cfg(test)] use g;\nfn f() {}";
        assert_eq!(
            texts(&outside_tests(text)).join(" "),
            "fn a ( ) { b . c ( ) } fn f ( ) { }"
        );
        let documented = "impl A { fn a() {} /// Checks.\n#[must_use] #[cfg(test)] fn b() {} }";
        assert_eq!(
            texts(&outside_tests(documented)).join(" "),
            "impl A { fn a ( ) { } }"
        );
        assert!(syntax_outside_tests(documented).is_some());
        let nested = "mod m { #[cfg(all(test, not(loom)))] mod tests { unwrap } fn k() {} } #[cfg(not(test))] fn l() {}";
        let left = texts(&outside_tests(nested)).join(" ");
        assert!(!left.contains("unwrap") && left.contains("k") && left.contains("fn l"));
    }
}
