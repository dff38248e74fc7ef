//! `#[derive(Verb)]`.

use crate::attributes::{Attributes, Form, Words, text};
use crate::object::{OfFields, Owner};
use crate::query::parameters;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Result};

/// The words in `#[verb(...)]` of the struct.
const WORDS: &Words = &[
    (Form::Text, &["name", "command", "example", "formerly"]),
    (Form::Code, &["check"]),
    (Form::Flag, &["configure", "for_all", "machine"]),
];

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let fields = parameters(input, "Verb")?;
    let message = Attributes::read(&input.attrs, &["verb"], WORDS)?;
    let text = text(&input.attrs, ident, "a verb")?;
    let Some(name) = message.one("name") else {
        let why = "a verb needs `name = \"...\"`";
        return Err(Error::new_spanned(ident, why));
    };
    let owner = Owner::parameters(ident);
    let OfFields {
        definitions,
        conversions,
    } = OfFields::read(&owner, fields)?;
    let (command, example) = (message.all("command"), message.all("example"));
    let (formerly, check) = (message.all("formerly"), message.check("check", &owner));
    let check = check.iter();
    let flags = ["configure", "for_all", "machine"].map(|word| message.has(word));
    let [configure, for_all, machine] = flags;
    Ok(quote! {
        impl volley_object::Parameters for #ident {
            const NAME: &'static str = #name;
            type Def = volley_object::VerbDef;
            fn definition() -> volley_object::VerbDef {
                let mut verb = volley_object::VerbDef::new(#name, #text);
                verb.class.fields = ::std::vec![#(#definitions),*];
                #(verb.class.commands.push((volley_object::Effect::Set, #command));)*
                #(verb.class.example = #example;)*
                #(verb.class.formerly = #formerly;)*
                #(verb.class.check = #check;)*
                verb.class.machine = #machine;
                verb.configure = #configure;
                verb.for_all = #for_all;
                verb
            }
            #conversions
        }
        impl volley_object::Verb for #ident {}
    })
}
