//! `#[derive(Object)]`, `#[derive(Choice)]`, `#[derive(Query)]` and `#[derive(Verb)]`: derive the definition of a class, a
//! query or a verb from a struct with doc comments.
//!
//! The attributes are listed at `volley_object::Object`, `volley_object::Choice`, `volley_object::Query` and
//! `volley_object::Verb`. The code names `volley_object` without `::`, so that a prelude can provide it.
#![forbid(unsafe_code)]

mod attributes;
mod choice;
mod object;
mod query;
mod stream;
mod verb;

use proc_macro::TokenStream;
use syn::{DeriveInput, Result};

/// A class of configuration objects, from a struct.
#[proc_macro_derive(Object, attributes(object))]
pub fn object(input: TokenStream) -> TokenStream {
    expanded(input, object::expand)
}

/// A field with a fixed list of values, from an enum without data.
#[proc_macro_derive(Choice, attributes(object))]
pub fn choice(input: TokenStream) -> TokenStream {
    expanded(input, choice::expand)
}

/// A query, from a struct whose fields are its parameters.
#[proc_macro_derive(Query, attributes(query))]
pub fn query(input: TokenStream) -> TokenStream {
    expanded(input, query::expand)
}

/// A verb, from a struct whose fields are its parameters.
#[proc_macro_derive(Verb, attributes(verb))]
pub fn verb(input: TokenStream) -> TokenStream {
    expanded(input, verb::expand)
}

/// The code of a derive macro, or its error.
fn expanded(
    input: TokenStream,
    expand: fn(&DeriveInput) -> Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let code = syn::parse(input).and_then(|input| expand(&input));
    code.unwrap_or_else(|error| error.to_compile_error()).into()
}
