//! `#[derive(Verb)]`.

use crate::doc::doc;
use crate::object::{OfFields, Owner};
use crate::query::parameters;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, DeriveInput, Error, ExprPath, LitStr, Result};

/// What `#[verb(...)]` says of the struct.
#[derive(Default)]
struct OfVerb {
    name: Option<LitStr>,
    command: Vec<LitStr>,
    example: Option<LitStr>,
    check: Option<ExprPath>,
    formerly: Option<LitStr>,
    configure: bool,
    for_all: bool,
    machine: bool,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let fields = parameters(input, "Verb")?;
    let of = of_verb(&input.attrs)?;
    let text = doc(&input.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(ident, "a verb needs a doc comment"));
    }
    let Some(name) = &of.name else {
        let why = "a verb needs `name = \"...\"`";
        return Err(Error::new_spanned(ident, why));
    };
    let OfFields {
        definitions,
        conversions,
    } = OfFields::read(&Owner::verb(ident), name, fields)?;
    let (command, example, check) = (&of.command, of.example.iter(), of.check.iter());
    let formerly = of.formerly.iter();
    let (configure, for_all, machine) = (of.configure, of.for_all, of.machine);
    Ok(quote! {
        impl ::volley_object::Verb for #ident {
            const NAME: &'static str = #name;
            fn definition() -> ::volley_object::VerbDef {
                let mut verb = ::volley_object::VerbDef::new(#name, #text);
                verb.class.fields = ::std::vec![#(#definitions),*];
                verb.class.set = ::std::vec![#(#command),*];
                #(verb.class.example = #example;)*
                #(verb.class.formerly = #formerly;)*
                #(verb.class.check = ::core::option::Option::Some(|parameters| {
                    match <#ident as ::volley_object::Verb>::of(parameters) {
                        ::core::option::Option::Some(it) => #check(&it).map(|()| ::core::option::Option::None),
                        ::core::option::Option::None => ::core::result::Result::Ok(::core::option::Option::None),
                    }
                });)*
                verb.class.machine = #machine;
                verb.configure = #configure;
                verb.for_all = #for_all;
                verb
            }
            #conversions
        }
    })
}

fn of_verb(attributes: &[Attribute]) -> Result<OfVerb> {
    let mut of = OfVerb::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("verb")) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string);
            match name.as_deref() {
                Some("name") => of.name = Some(meta.value()?.parse()?),
                Some("command") => of.command.push(meta.value()?.parse()?),
                Some("example") => of.example = Some(meta.value()?.parse()?),
                Some("check") => of.check = Some(meta.value()?.parse()?),
                Some("formerly") => of.formerly = Some(meta.value()?.parse()?),
                Some("configure") => of.configure = true,
                Some("for_all") => of.for_all = true,
                Some("machine") => of.machine = true,
                _ => {
                    let known =
                        "name, command, example, check, formerly, configure, for_all or machine";
                    return Err(meta.error(known));
                }
            }
            Ok(())
        })?;
    }
    Ok(of)
}
