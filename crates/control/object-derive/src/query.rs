//! `#[derive(Query)]`.

use crate::attributes::{Attributes, Form, Words, text};
use crate::object::{OfFields, Owner};
use crate::stream::OfStream;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, LitStr, Result, Token};

/// The words in `#[query(...)]` of the struct.
const WORDS: &Words = &[
    (Form::Text, &["name", "show", "example", "detail_by"]),
    (Form::Type, &["reply"]),
    (Form::Code, &["text", "detail", "check", "figures"]),
    (Form::Group, &["view", "stream"]),
    (Form::Flag, &["operate", "large"]),
];

/// `view(word = function, "text")`.
struct Further {
    word: String,
    shown: Expr,
    doc: LitStr,
}

impl Parse for Further {
    fn parse(input: ParseStream<'_>) -> Result<Further> {
        let word: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let shown = input.parse()?;
        input.parse::<Token![,]>()?;
        Ok(Further {
            word: word.to_string().replace('_', "-"),
            shown,
            doc: input.parse()?,
        })
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let fields = parameters(input, "Query")?;
    let message = Attributes::read(&input.attrs, &["query"], WORDS)?;
    let text = text(&input.attrs, ident, "a query")?;
    let whole = message.has("text") != message.has("stream");
    let (Some(name), Some(reply), true) = (message.one("name"), message.one("reply"), whole) else {
        let why = "a query needs `name = \"...\"`, `reply = Type`, and `text = function` or `stream(...)`";
        return Err(Error::new_spanned(ident, why));
    };
    let owner = Owner::parameters(ident);
    let OfFields {
        definitions,
        conversions,
    } = OfFields::read(&owner, fields)?;
    let views = message.all("view").iter().cloned();
    let views: Vec<Further> = views.map(syn::parse2).collect::<Result<_>>()?;
    let text_of = text_of(reply, &message, &views);
    let stream = message.one("stream").map(OfStream::read).transpose()?;
    let streamed = stream.iter().map(|it| it.definition(&owner));
    let implemented = stream.iter().map(|it| it.implementation(ident, reply));
    let (show, example) = (message.all("show"), message.all("example"));
    let (figures, detail_by) = (message.all("figures"), message.all("detail_by"));
    let (operate, large) = (message.has("operate"), message.has("large"));
    let check = message.check("check", &owner);
    let check = check.iter();
    let words = views.iter().map(|view| &view.word[..]);
    let docs = views.iter().map(|view| &view.doc);
    Ok(quote! {
        impl volley_object::Parameters for #ident {
            const NAME: &'static str = #name;
            type Def = volley_object::QueryDef;
            fn definition() -> volley_object::QueryDef {
                let mut query = volley_object::QueryDef::new::<Self>(#text);
                query.class.fields = ::std::vec![#(#definitions),*];
                #(query.class.commands.push((volley_object::Effect::Set, #show));)*
                #(query.class.example = #example;)*
                #(query.class.check = #check;)*
                query.views = ::std::vec![#(volley_object::ViewDef { word: #words, doc: #docs }),*];
                query.detail_by = ::std::vec![#(#detail_by),*];
                (query.operate, query.large) = (#operate, #large);
                #(query.figures = ::core::option::Option::Some(|reply, page| {
                    if let ::core::option::Option::Some(reply) = reply.downcast_ref::<#reply>() {
                        #figures(reply, page);
                    }
                });)*
                #(#streamed)*
                query
            }
            #conversions
        }
        impl volley_object::Query for #ident {
            type Reply = #reply;
            #text_of
        }
        #(#implemented)*
    })
}

/// The function that writes a reply as text: the main text, the detailed one, or one selected by a word of the command.
fn text_of(reply: &TokenStream, message: &Attributes, views: &[Further]) -> TokenStream {
    let Some(shown) = message.one("text") else {
        return quote! {
            fn text(reply: &#reply, _: volley_object::View) -> ::std::string::String {
                <Self as volley_object::Stream>::whole_text(reply)
            }
        };
    };
    let detail = message.one("detail").unwrap_or(shown);
    let words = views.iter().map(|view| &view.word[..]);
    let further = views.iter().map(|view| &view.shown);
    quote! {
        fn text(reply: &#reply, view: volley_object::View) -> ::std::string::String {
            match view {
                #(volley_object::View::Named(#words) => #further(reply),)*
                volley_object::View::Verbose => #detail(reply),
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
