//! `#[derive(Query)]`.

use crate::doc::doc;
use crate::object::{OfFields, Owner};
use crate::stream::OfStream;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprPath, Field, Fields, LitStr, Result, Type,
};

/// What `#[query(...)]` says of the struct.
#[derive(Default)]
struct OfQuery {
    name: Option<LitStr>,
    show: Vec<LitStr>,
    example: Option<LitStr>,
    reply: Option<Type>,
    text: Option<Expr>,
    detail: Option<Expr>,
    figures: Option<Expr>,
    check: Option<ExprPath>,
    detail_by: Vec<LitStr>,
    views: Vec<Further>,
    stream: Option<OfStream>,
    operate: bool,
    large: bool,
}

/// `view(word = function, "text")`.
struct Further {
    word: String,
    shown: Expr,
    doc: LitStr,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let fields = parameters(input, "Query")?;
    let of = of_query(&input.attrs)?;
    let text = doc(&input.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(ident, "a query needs a doc comment"));
    }
    let (Some(name), Some(reply), true) = (
        &of.name,
        &of.reply,
        of.text.is_some() != of.stream.is_some(),
    ) else {
        let why = "a query needs `name = \"...\"`, `reply = Type`, and `text = function` or `stream(...)`";
        return Err(Error::new_spanned(ident, why));
    };
    let OfFields {
        definitions,
        conversions,
    } = OfFields::read(&Owner::query(ident), name, fields)?;
    let text_of = text_of(reply, &of);
    let stream = of.stream.iter();
    let (streamed, stream) = (
        stream.clone().map(|it| it.definition(ident)),
        stream.map(|it| it.implementation(ident, reply)),
    );
    let (show, example, figures) = (&of.show, of.example.iter(), of.figures.iter());
    let (detail_by, operate, large) = (&of.detail_by, of.operate, of.large);
    let check = of.check.iter();
    let words: Vec<&str> = of.views.iter().map(|view| &view.word[..]).collect();
    let docs = of.views.iter().map(|view| &view.doc);
    Ok(quote! {
        impl ::volley_object::Query for #ident {
            const NAME: &'static str = #name;
            type Reply = #reply;
            fn definition() -> ::volley_object::QueryDef {
                let mut query = ::volley_object::QueryDef::new::<Self>(#text);
                query.class.fields = ::std::vec![#(#definitions),*];
                query.class.set = ::std::vec![#(#show),*];
                #(query.class.example = #example;)*
                #(query.class.check = ::core::option::Option::Some(|asked| {
                    match <#ident as ::volley_object::Query>::of(asked) {
                        ::core::option::Option::Some(it) => #check(&it).map(|()| ::core::option::Option::None),
                        ::core::option::Option::None => ::core::result::Result::Ok(::core::option::Option::None),
                    }
                });)*
                query.views = ::std::vec![#(::volley_object::ViewDef { word: #words, doc: #docs }),*];
                query.detail_by = ::std::vec![#(#detail_by),*];
                (query.operate, query.large) = (#operate, #large);
                #(query.with_figures(|reply, page| {
                    if let ::core::option::Option::Some(reply) = reply.downcast_ref::<#reply>() {
                        #figures(reply, page);
                    }
                });)*
                #(#streamed)*
                query
            }
            #conversions
            #text_of
        }
        #(#stream)*
    })
}

/// The function that writes a reply as text: shortly, in detail, or as a word of the command asks.
fn text_of(reply: &Type, of: &OfQuery) -> TokenStream {
    let Some(shown) = &of.text else {
        return quote! {
            fn text(reply: &#reply, _: ::volley_object::View) -> ::std::string::String {
                <Self as ::volley_object::Stream>::whole_text(reply)
            }
        };
    };
    let detail = of.detail.as_ref().unwrap_or(shown);
    let words = of.views.iter().map(|view| &view.word[..]);
    let further = of.views.iter().map(|view| &view.shown);
    quote! {
        fn text(reply: &#reply, view: ::volley_object::View) -> ::std::string::String {
            match view {
                #(::volley_object::View::Named(#words) => #further(reply),)*
                ::volley_object::View::Verbose => #detail(reply),
                _ => #shown(reply),
            }
        }
    }
}

/// The fields of a struct, which are parameters.
pub(crate) fn parameters<'i>(input: &'i DeriveInput, derive: &str) -> Result<Vec<&'i Field>> {
    match &input.data {
        Data::Struct(body) if !matches!(body.fields, Fields::Unnamed(_)) => {
            Ok(body.fields.iter().collect())
        }
        _ => {
            let why = format!("{derive} is for structs with named fields or none");
            Err(Error::new_spanned(&input.ident, why))
        }
    }
}

fn of_query(attributes: &[Attribute]) -> Result<OfQuery> {
    let mut of = OfQuery::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("query")) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string);
            match name.as_deref() {
                Some("name") => of.name = Some(meta.value()?.parse()?),
                Some("show") => of.show.push(meta.value()?.parse()?),
                Some("example") => of.example = Some(meta.value()?.parse()?),
                Some("reply") => of.reply = Some(meta.value()?.parse()?),
                Some("text") => of.text = Some(meta.value()?.parse()?),
                Some("detail") => of.detail = Some(meta.value()?.parse()?),
                Some("figures") => of.figures = Some(meta.value()?.parse()?),
                Some("check") => of.check = Some(meta.value()?.parse()?),
                Some("detail_by") => of.detail_by.push(meta.value()?.parse()?),
                Some("stream") => of.stream = Some(OfStream::read(&meta)?),
                Some("operate") => of.operate = true,
                Some("large") => of.large = true,
                Some("view") => {
                    let inside;
                    syn::parenthesized!(inside in meta.input);
                    let word: Ident = inside.parse()?;
                    inside.parse::<syn::Token![=]>()?;
                    let shown = inside.parse()?;
                    inside.parse::<syn::Token![,]>()?;
                    of.views.push(Further {
                        word: word.to_string().replace('_', "-"),
                        shown,
                        doc: inside.parse()?,
                    });
                }
                _ => {
                    let known = "name, show, example, reply, text, detail, detail_by, view, stream, check, operate, large or figures";
                    return Err(meta.error(known));
                }
            }
            Ok(())
        })?;
    }
    Ok(of)
}
