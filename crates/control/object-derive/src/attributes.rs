//! Parses attributes.

use crate::object::Owner;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use std::collections::BTreeMap;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, Parser};
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Result, Type, parenthesized};

/// The form of an attribute word's value.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// No value: the word is a switch.
    Flag,
    /// A text.
    Text,
    /// An expression, such as the path of a function.
    Code,
    /// A type.
    Type,
    /// Tokens in parentheses, which are parsed later.
    Group,
}

/// The values of each word in the attributes.
#[derive(Default)]
pub(crate) struct Attributes(BTreeMap<String, Vec<TokenStream>>);

/// The words of each form.
pub(crate) type Words = [(Form, &'static [&'static str])];

impl Attributes {
    /// Parses the attributes with these names.
    pub(crate) fn read(attributes: &[Attribute], of: &[&str], words: &Words) -> Result<Attributes> {
        let mut message = Attributes::default();
        let ours = |it: &&Attribute| of.iter().any(|name| it.path().is_ident(name));
        for attribute in attributes.iter().filter(ours) {
            attribute.parse_nested_meta(|meta| message.word(&meta, words))?;
        }
        Ok(message)
    }

    /// Parses the words in parentheses.
    pub(crate) fn inside(group: &TokenStream, words: &Words) -> Result<Attributes> {
        let mut message = Attributes::default();
        let parser = syn::meta::parser(|meta| message.word(&meta, words));
        parser.parse2(group.clone())?;
        Ok(message)
    }

    fn word(&mut self, meta: &ParseNestedMeta<'_>, words: &Words) -> Result<()> {
        fn value<T: Parse + ToTokens>(meta: &ParseNestedMeta<'_>) -> Result<TokenStream> {
            Ok(meta.value()?.parse::<T>()?.to_token_stream())
        }
        let is = |word: &&&str| meta.path.is_ident(**word);
        let found = words.iter();
        let mut found = found.filter_map(|(form, all)| Some((form, all.iter().find(is)?)));
        let Some((form, word)) = found.next() else {
            let mut known: Vec<&str> = words.iter().flat_map(|(_, all)| *all).copied().collect();
            known.sort_unstable();
            return Err(meta.error(known.join(", ")));
        };
        let value = match form {
            Form::Flag => quote! { true },
            Form::Text => value::<LitStr>(meta)?,
            Form::Code => value::<Expr>(meta)?,
            Form::Type => value::<Type>(meta)?,
            Form::Group => {
                let inside;
                parenthesized!(inside in meta.input);
                inside.parse()?
            }
        };
        self.0.entry((*word).to_owned()).or_default().push(value);
        Ok(())
    }

    /// All values of a word.
    pub(crate) fn all(&self, word: &str) -> &[TokenStream] {
        self.0.get(word).map_or(&[], Vec::as_slice)
    }

    /// The value of a word, if it has one.
    pub(crate) fn one(&self, word: &str) -> Option<&TokenStream> {
        self.all(word).last()
    }

    /// Words and their values; a word with several values is repeated.
    pub(crate) fn pairs(&self, words: &[&str]) -> (Vec<Ident>, Vec<&TokenStream>) {
        let ident = |word: &str| Ident::new(word, Span::call_site());
        let values = words.iter().flat_map(|word| {
            let values = self.all(word).iter();
            values.map(move |value| (ident(word), value))
        });
        values.unzip()
    }

    /// Whether the word is present.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains_key(word)
    }

    /// Adapts the check function of a word to take the values from which the struct is built.
    pub(crate) fn check(&self, word: &str, owner: &Owner<'_>) -> Option<TokenStream> {
        let (check, Owner { ident, made_by }) = (self.one(word)?, owner);
        Some(quote! {
            ::core::option::Option::Some(|values| {
                if let ::core::option::Option::Some(it) = <#ident as #made_by>::of(values) {
                    #check(&it)?;
                }
                ::core::result::Result::Ok(::core::default::Default::default())
            })
        })
    }
}

/// The doc comment of a definition, which is required.
pub(crate) fn text(attributes: &[Attribute], of: &impl ToTokens, what: &str) -> Result<String> {
    let text = doc(attributes);
    match text.is_empty() {
        true => Err(Error::new_spanned(
            of,
            format!("{what} needs a doc comment"),
        )),
        false => Ok(text),
    }
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
