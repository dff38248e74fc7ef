//! `#[derive(Choice)]`.

use crate::attributes::text;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let Data::Enum(body) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Choice is for enums"));
    };
    let ident = &input.ident;
    let (mut variants, mut names, mut docs) = (Vec::new(), Vec::new(), Vec::new());
    for variant in &body.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "a choice has no data"));
        }
        let text = text(&variant.attrs, variant, "a choice")?;
        let mut name = dashed(&variant.ident.to_string());
        for attribute in variant.attrs.iter().filter(|a| a.path().is_ident("object")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("name") {
                    return Err(meta.error("a choice has a name and nothing else"));
                }
                name = meta.value()?.parse::<LitStr>()?.value();
                Ok(())
            })?;
        }
        variants.push(&variant.ident);
        names.push(name);
        docs.push(text);
    }
    Ok(quote! {
        impl volley_object::Choice for #ident {
            const ALL: &'static [(&'static str, &'static str, Self)] =
                &[#((#names, #docs, #ident::#variants)),*];
        }
        impl ::core::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(volley_object::choice_name(self))
            }
        }
    })
}

/// `RouterId` as `router-id`.
fn dashed(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}
