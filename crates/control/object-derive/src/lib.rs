//! `#[derive(Object)]` and `#[derive(Choice)]`: from a struct with doc comments to the definition of a class.
//!
//! The attributes are listed at `volley_object::Object` and `volley_object::Choice`.
#![forbid(unsafe_code)]

mod choice;
mod object;

use proc_macro::TokenStream;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Lit, Meta, parse_macro_input};

/// A class of configuration objects, from a struct.
#[proc_macro_derive(Object, attributes(object))]
pub fn object(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    object::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// A field with a fixed list of values, from an enum without data.
#[proc_macro_derive(Choice, attributes(object))]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// The doc comment as one paragraph.
fn doc(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    lines.join(" ").trim().to_owned()
}
