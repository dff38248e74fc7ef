//! `stream(...)` of `#[query(...)]`: a query whose reply comes in items over time.

use crate::attributes::{Attributes, Form, Words};
use crate::object::Owner;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Error, Result};

/// The words in `stream(...)`.
const WORDS: &Words = &[
    (
        Form::Code,
        &["items", "line", "head", "end", "failure", "whole", "bytes"],
    ),
    (Form::Text, &["reader"]),
    (Form::Flag, &["live"]),
];

/// The stream of a query.
pub(crate) struct OfStream(Attributes);

impl OfStream {
    pub(crate) fn read(group: &TokenStream) -> Result<Self> {
        let message = Attributes::inside(group, WORDS)?;
        let is_whole = ["items", "line", "end"]
            .iter()
            .all(|word| message.has(word));
        if !is_whole || message.has("bytes") != message.has("reader") {
            let why = "a stream needs `items = field`, `line = function` and `end = function`, and `reader` with `bytes`";
            return Err(Error::new_spanned(group, why));
        }
        Ok(OfStream(message))
    }

    /// Statements that add the stream to the definition `query`.
    pub(crate) fn definition(&self, owner: &Owner<'_>) -> TokenStream {
        let (ident, live) = (owner.ident, self.0.has("live"));
        let bytes = self.0.all("bytes").iter().map(ToString::to_string);
        let reader = self.0.all("reader");
        let whole = self.0.check("whole", owner);
        let whole = whole.iter();
        quote! {
            let stream = query.stream::<#ident>();
            stream.live = #live;
            #(stream.bytes = ::core::option::Option::Some((#bytes, #reader));)*
            #(stream.whole = #whole;)*
        }
    }

    /// `impl Stream`.
    pub(crate) fn implementation(&self, ident: &Ident, reply: &TokenStream) -> TokenStream {
        let [items, line, end] = ["items", "line", "end"].map(|word| self.0.one(word));
        let [head, failure, bytes] = ["head", "failure", "bytes"].map(|word| self.0.all(word));
        let head = quote! { ::std::string::String::new() #(+ &#head(reply))* };
        quote! {
            impl volley_object::Stream for #ident {
                fn head(reply: &#reply) -> ::std::string::String {
                    let _ = reply;
                    #head
                }
                fn lines(reply: &#reply, first: usize) -> ::std::string::String {
                    let items = reply.#items.iter().enumerate();
                    items.map(|(at, item)| #line(first + at, item)).collect()
                }
                fn end(reply: &#reply) -> ::std::string::String {
                    #end(reply)
                }
                fn count(reply: &#reply) -> usize {
                    reply.#items.len()
                }
                fn prepend(reply: &mut #reply, mut before: #reply) {
                    before.#items.append(&mut reply.#items);
                    reply.#items = before.#items;
                }
                #(fn take_bytes(reply: &mut #reply) -> ::std::vec::Vec<u8> {
                    ::core::mem::take(&mut reply.#bytes)
                })*
                #(fn failure(reply: &#reply) -> ::core::option::Option<::std::string::String> {
                    #failure(reply)
                })*
            }
        }
    }
}
