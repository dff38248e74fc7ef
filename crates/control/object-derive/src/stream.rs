//! `stream(...)` of `#[query(...)]`: a query whose reply comes in items over time.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Expr, ExprPath, LitStr, Result, Type};

/// What `stream(...)` says.
#[derive(Default)]
pub(crate) struct OfStream {
    items: Option<Ident>,
    line: Option<Expr>,
    head: Option<Expr>,
    end: Option<Expr>,
    failure: Option<Expr>,
    whole: Option<ExprPath>,
    live: bool,
    bytes: Option<Ident>,
    reader: Option<LitStr>,
}

impl OfStream {
    pub(crate) fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let mut of = OfStream::default();
        meta.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string);
            match name.as_deref() {
                Some("items") => of.items = Some(meta.value()?.parse()?),
                Some("line") => of.line = Some(meta.value()?.parse()?),
                Some("head") => of.head = Some(meta.value()?.parse()?),
                Some("end") => of.end = Some(meta.value()?.parse()?),
                Some("failure") => of.failure = Some(meta.value()?.parse()?),
                Some("whole") => of.whole = Some(meta.value()?.parse()?),
                Some("live") => of.live = true,
                Some("bytes") => of.bytes = Some(meta.value()?.parse()?),
                Some("reader") => of.reader = Some(meta.value()?.parse()?),
                _ => {
                    let known = "items, line, head, end, failure, whole, live, bytes or reader";
                    return Err(meta.error(known));
                }
            }
            Ok(())
        })?;
        let is_whole = of.items.is_some() && of.line.is_some() && of.end.is_some();
        if !is_whole || of.bytes.is_some() != of.reader.is_some() {
            let why = "a stream needs `items = field`, `line = function` and `end = function`, and `reader` with `bytes`";
            return Err(meta.error(why));
        }
        Ok(of)
    }

    /// Statements that put the stream into the definition `query`.
    pub(crate) fn definition(&self, ident: &Ident) -> TokenStream {
        let (live, whole) = (self.live, self.whole.iter());
        let bytes = self.bytes.iter().map(Ident::to_string);
        let reader = self.reader.iter();
        quote! {
            let stream = query.stream::<#ident>();
            stream.live = #live;
            #(stream.bytes = ::core::option::Option::Some((#bytes, #reader));)*
            #(stream.whole = ::core::option::Option::Some(|asked| {
                match <#ident as ::volley_object::Query>::of(asked) {
                    ::core::option::Option::Some(it) => #whole(&it),
                    ::core::option::Option::None => ::core::result::Result::Ok(()),
                }
            });)*
        }
    }

    /// `impl Stream`.
    pub(crate) fn implementation(&self, ident: &Ident, reply: &Type) -> TokenStream {
        let (items, line, end) = (&self.items, &self.line, &self.end);
        let (head, failure, bytes) = (self.head.iter(), self.failure.iter(), self.bytes.iter());
        let head = quote! { ::std::string::String::new() #(+ &#head(reply))* };
        quote! {
            impl ::volley_object::Stream for #ident {
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
