//! `#[derive(Object)]`.

use crate::attributes::{Attributes, Form, Words, text};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Field, Fields, Result, Type};

/// Boolean fields of the definition.
const FLAGS: &[&str] = &[
    "bulk", "last", "machine", "once", "ordered", "recreate", "separate", "startup", "together",
];
/// Fields of the definition with one text.
const TEXTS: &[&str] = &[
    "example",
    "formerly",
    "formerly_bulk",
    "interface",
    "interrupts",
    "one_of",
    "removed_with",
];
/// Effects of commands, each with any number of commands.
const EFFECTS: &[&str] = &["add", "change", "set", "take", "unset", "unset_any"];

/// The words in `#[object(...)]` of the struct.
const WORDS: &Words = &[
    (Form::Flag, FLAGS),
    (Form::Text, TEXTS),
    (Form::Text, EFFECTS),
    (Form::Text, &["after", "class", "file"]),
    (
        Form::Code,
        &["brings", "check", "normal", "references", "upgrade"],
    ),
    (Form::Group, &["group", "instead", "starts"]),
];

/// Boolean fields of a field definition.
const FIELD_FLAGS: &[&str] = &["each", "inline", "joined", "repeats", "request", "secret"];
/// Fields of a field definition with one text.
const FIELD_TEXTS: &[&str] = &["example", "unit"];
/// Fields of a field definition with a value of the field's type.
const FIELD_VALUES: &[&str] = &["built_in", "default", "in_file", "typed", "unsaved"];
/// References to a class.
const REFERENCES: &[&str] = &["loses", "needs", "part_of"];

/// The words in `#[object(...)]` of a field.
const FIELD_WORDS: &Words = &[
    (Form::Flag, FIELD_FLAGS),
    (Form::Text, FIELD_TEXTS),
    (Form::Code, FIELD_VALUES),
    (Form::Text, REFERENCES),
    (Form::Flag, &["key", "scaled"]),
    (Form::Code, &["derived", "least", "range"]),
];

fn of_field(field: &Field) -> Result<Attributes> {
    Attributes::read(&field.attrs, &["object", "query", "verb"], FIELD_WORDS)
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(body) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Object is for structs"));
    };
    let Fields::Named(named) = &body.fields else {
        return Err(Error::new_spanned(
            &input.ident,
            "Object needs named fields",
        ));
    };
    let class = Attributes::read(&input.attrs, &["object"], WORDS)?;
    let ident = &input.ident;
    let text = text(&input.attrs, ident, "a class")?;
    let Some(name) = class.one("class") else {
        return Err(Error::new_spanned(
            ident,
            "a class needs `class = \"name\"`",
        ));
    };
    let fields = OfFields::read(&Owner::class(ident), &named.named)?;
    let usual = usual(ident, class.has("interface"), named.named.iter())?;
    let definition = class_definition(ident, &class, name, &text, &fields.definitions);
    let conversions = fields.conversions;
    Ok(quote! {
        #usual
        impl volley_object::Object for #ident {
            const CLASS: &'static str = #name;
            fn definition() -> volley_object::ClassDef {
                #definition
            }
            #conversions
        }
    })
}

/// The statements that build the definition of a class.
fn class_definition(
    ident: &Ident,
    class: &Attributes,
    name: &TokenStream,
    text: &str,
    fields: &[TokenStream],
) -> TokenStream {
    let code = code_of(ident, class);
    let (names, values) = class.pairs(&[FLAGS, TEXTS].concat());
    let commands = EFFECTS.iter().flat_map(|word| {
        let effect = Ident::new(&camel(word), ident.span());
        let texts = class.all(word).iter();
        texts.map(move |text| quote! { (volley_object::Effect::#effect, #text) })
    });
    let after = class.all("after");
    let (file, upgrade) = (class.all("file"), class.all("upgrade"));
    let [starts, groups, instead] = ["starts", "group", "instead"].map(|word| class.all(word));
    quote! {
        let mut class = volley_object::ClassDef::new(#name, #text);
        class.fields = ::std::vec![#(#fields),*];
        #(class.#names = #values;)*
        class.commands = ::std::vec![#(#commands),*];
        class.after = ::std::vec![#(#after),*];
        #(class.file = volley_object::Place::read(#file);)*
        #(class.upgrade = ::core::option::Option::Some(#upgrade);)*
        #(
            let (key, verb, doc) = (#starts);
            class.starts = ::core::option::Option::Some(volley_object::Start { key, verb, doc });
        )*
        #(class.groups.push((#groups));)*
        #(class.instead.push((#instead));)*
        #code
        class
    }
}

/// `unset_any` as `UnsetAny`.
fn camel(word: &str) -> String {
    let parts = word.split('_').map(|part| part.split_at(1));
    parts
        .map(|(first, rest)| first.to_uppercase() + rest)
        .collect()
}

/// The statements for rules between fields and for computed references.
fn code_of(ident: &Ident, class: &Attributes) -> TokenStream {
    let (check, references) = (class.all("check"), class.all("references"));
    let brings = class.all("brings");
    let normal = class.one("normal").map(|normal| {
        quote! {
            #normal(&it).map(|it| instance.with_slots(volley_object::Object::slots(&it)))
        }
    });
    let has_normal = normal.iter();
    let normal = normal
        .clone()
        .unwrap_or(quote! { ::core::option::Option::None });
    quote! {
        #(class.check = ::core::option::Option::Some(|instance| {
            match <#ident as volley_object::Object>::of(instance) {
                ::core::option::Option::Some(it) => {
                    #check(&it)?;
                    ::core::result::Result::Ok(#normal)
                }
                ::core::option::Option::None => ::core::result::Result::Ok(::core::option::Option::None),
            }
        });)*
        #(class.references = ::core::option::Option::Some(|instance, tell| {
            if let ::core::option::Option::Some(it) = <#ident as volley_object::Object>::of(instance) {
                #references(&it, tell);
            }
        });)*
        #(class.brings = ::core::option::Option::Some(|instance| {
            match <#ident as volley_object::Object>::of(instance) {
                ::core::option::Option::Some(it) => #brings(&it),
                ::core::option::Option::None => ::core::result::Result::Ok(()),
            }
        });)*
        #(class.normal = ::core::option::Option::Some(|instance| {
            let it = <#ident as volley_object::Object>::of(instance)?;
            #has_normal
        });)*
    }
}

/// `Default`, if every field has a default. A type of interface always has it: required fields are empty there, so that code
/// that fills them in does not repeat defaults.
fn usual<'f>(
    ident: &Ident,
    is_interface: bool,
    fields: impl Iterator<Item = &'f Field>,
) -> Result<TokenStream> {
    let mut all = Vec::new();
    for field in fields {
        let of = of_field(field)?;
        let (name, ty) = (&field.ident, &field.ty);
        let empty = |ty: &Type| match ty {
            Type::Path(path) => {
                let last = path.path.segments.last();
                let empty = ["Option", "Vec", "BTreeSet"];
                last.is_some_and(|it| empty.iter().any(|name| it.ident == name))
            }
            _ => false,
        };
        all.push(match of.one("default") {
            Some(default) => quote! { #name: { let it: #ty = #default; it } },
            None if is_interface || empty(ty) && !of.has("key") && !of.has("least") => {
                quote! { #name: ::core::default::Default::default() }
            }
            None => return Ok(TokenStream::new()),
        });
    }
    Ok(quote! {
        impl ::core::default::Default for #ident {
            fn default() -> Self {
                #ident { #(#all),* }
            }
        }
    })
}

/// The struct with the fields, and the trait that converts from values.
pub(crate) struct Owner<'i> {
    pub(crate) ident: &'i Ident,
    pub(crate) made_by: TokenStream,
}

impl<'i> Owner<'i> {
    /// A class of objects.
    pub(crate) fn class(ident: &'i Ident) -> Self {
        let made_by = quote! { volley_object::Object };
        Owner { ident, made_by }
    }

    /// The parameters of a query or a verb.
    pub(crate) fn parameters(ident: &'i Ident) -> Self {
        let made_by = quote! { volley_object::Parameters };
        Owner { ident, made_by }
    }
}

/// The fields of a struct.
pub(crate) struct OfFields {
    pub(crate) definitions: Vec<TokenStream>,
    /// The functions that convert between values and the struct.
    pub(crate) conversions: TokenStream,
}

impl OfFields {
    pub(crate) fn read<'f>(
        owner: &Owner<'_>,
        fields: impl IntoIterator<Item = &'f Field>,
    ) -> Result<OfFields> {
        let (mut definitions, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for (at, field) in fields.into_iter().enumerate() {
            definitions.push(definition(owner, field)?);
            let (field, ty) = (&field.ident, &field.ty);
            reads.push(quote! { #field: volley_object::field_of::<#ty>(slots, #at)? });
            writes.push(quote! { volley_object::FieldType::to_slot(&self.#field) });
        }
        let ident = owner.ident;
        let conversions = quote! {
            fn from_slots(
                slots: &[::core::option::Option<volley_object::Value>],
            ) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#ident { #(#reads),* })
            }
            fn slots(&self) -> ::std::vec::Vec<::core::option::Option<volley_object::Value>> {
                ::std::vec![#(#writes),*]
            }
        };
        Ok(OfFields {
            definitions,
            conversions,
        })
    }
}

/// The statements that complete the field definition `field`.
fn steps(owner: &Owner<'_>, ty: &Type, message: &Attributes) -> TokenStream {
    let Owner { ident, made_by } = owner;
    let (names, plain) = message.pairs(&[FIELD_FLAGS, FIELD_TEXTS].concat());
    let (valued, values) = message.pairs(FIELD_VALUES);
    let (strengths, classes) = message.pairs(REFERENCES);
    let [range, least, derived] = ["range", "least", "derived"].map(|word| message.all(word));
    let scaled = message.has("scaled").then(|| quote! { field.scale(); });
    quote! {
        #(field.#names = #plain;)*
        #(field.limit((#range).into_inner());)*
        #(field.at_least(#least);)*
        #scaled
        #(field.#valued = volley_object::FieldType::to_slot(&{ let it: #ty = #values; it });)*
        #(
            field.reference =
                ::core::option::Option::Some(volley_object::Reference::#strengths(#classes));
        )*
        #(field.derived = ::core::option::Option::Some(|slots| {
            let it = <#ident as #made_by>::from_slots(slots)?;
            volley_object::FieldType::to_slot(&{ let value: #ty = #derived(&it); value })
        });)*
    }
}

fn definition(owner: &Owner<'_>, field: &Field) -> Result<TokenStream> {
    let Some(name) = &field.ident else {
        return Err(Error::new_spanned(field, "a field needs a name"));
    };
    let text = text(&field.attrs, name, "a field")?;
    let message = of_field(field)?;
    let (key, steps) = (message.has("key"), steps(owner, &field.ty, &message));
    let (ty, text_name): (&Type, String) = (&field.ty, name.unraw().to_string());
    Ok(quote! {{
        #[allow(unused_mut)]
        let mut field = volley_object::FieldDef::new::<#ty>(#text_name, #text, #key);
        #steps
        field
    }})
}
