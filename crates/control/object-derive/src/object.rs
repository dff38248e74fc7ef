//! `#[derive(Object)]`.

use crate::doc::doc;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprPath, Field, Fields, LitStr, Result, Token,
    Type, parenthesized,
};

/// What `#[object(...)]` says of the struct.
#[derive(Default)]
struct OfClass {
    class: Option<LitStr>,
    is_interface: bool,
    check: Option<ExprPath>,
    references: Option<ExprPath>,
    normal: Option<ExprPath>,
    /// The statements that say the rest of the definition `class`.
    steps: Vec<TokenStream>,
}

/// Fields of the definition that a word switches on.
const FLAGS: &[&str] = &[
    "bulk", "last", "machine", "once", "ordered", "recreate", "separate", "startup", "together",
];
/// Fields of the definition that have one text.
const TEXTS: &[&str] = &[
    "example",
    "formerly",
    "formerly_bulk",
    "interface",
    "interrupts",
    "one_of",
    "removed_with",
];
/// Fields of the definition that have any number of texts.
const LISTS: &[&str] = &[
    "add",
    "after",
    "change",
    "set",
    "take",
    "unset",
    "unset_any",
];
/// Those that are read in a way of their own.
const OTHERS: &[&str] = &[
    "check",
    "class",
    "file",
    "group",
    "instead",
    "normal",
    "references",
    "starts",
    "upgrade",
];

/// What `#[object(...)]` says of a field.
#[derive(Default)]
struct OfField {
    key: bool,
    default: Option<Expr>,
    has_least: bool,
    /// The statements that say the rest of the definition `field`.
    steps: Vec<TokenStream>,
}

/// Fields of the definition of a field that a word switches on.
const FIELD_FLAGS: &[&str] = &["each", "inline", "joined", "repeats", "request", "secret"];
/// Those that have one text.
const FIELD_TEXTS: &[&str] = &["example", "unit"];
/// Those that have a value of the type of the field.
const FIELD_VALUES: &[&str] = &["built_in", "default", "in_file", "typed", "unsaved"];
/// References to a class.
const REFERENCES: &[&str] = &["loses", "needs", "part_of"];
/// Those that are read in a way of their own.
const FIELD_OTHERS: &[&str] = &["derived", "key", "least", "range", "scaled"];

/// Names as a sentence lists them.
fn listed(all: &[&[&str]]) -> String {
    let mut names = all.concat();
    names.sort_unstable();
    names.join(", ")
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
    let class = of_class(&input.attrs)?;
    let ident = &input.ident;
    let text = doc(&input.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(ident, "a class needs a doc comment"));
    }
    let Some(name) = &class.class else {
        return Err(Error::new_spanned(
            ident,
            "a class needs `class = \"name\"`",
        ));
    };
    let fields = OfFields::read(&Owner::class(ident), name, &named.named)?;
    let usual = usual(ident, class.is_interface, named.named.iter())?;
    let definition = class_definition(ident, &class, name, &text, &fields.definitions);
    let conversions = fields.conversions;
    Ok(quote! {
        #usual
        impl ::volley_object::Object for #ident {
            const CLASS: &'static str = #name;
            fn definition() -> ::volley_object::ClassDef {
                #definition
            }
            #conversions
        }
    })
}

/// The statements that make the definition of a class.
fn class_definition(
    ident: &Ident,
    class: &OfClass,
    name: &LitStr,
    text: &str,
    fields: &[TokenStream],
) -> TokenStream {
    let (steps, code) = (&class.steps, code_of(ident, class));
    quote! {
        let mut class = ::volley_object::ClassDef::new(#name, #text);
        class.fields = ::std::vec![#(#fields),*];
        #(#steps)*
        #code
        class
    }
}

/// The statements for the rules between fields and for references that code tells.
fn code_of(ident: &Ident, class: &OfClass) -> TokenStream {
    let (check, references) = (class.check.iter(), class.references.iter());
    let normal = normal_of(class);
    let has_normal = class.normal.iter().map(|_| &normal);
    quote! {
        #(class.check = ::core::option::Option::Some(|instance| {
            match <#ident as ::volley_object::Object>::of(instance) {
                ::core::option::Option::Some(it) => {
                    #check(&it)?;
                    ::core::result::Result::Ok(#normal)
                }
                ::core::option::Option::None => ::core::result::Result::Ok(::core::option::Option::None),
            }
        });)*
        #(class.references = ::core::option::Option::Some(|instance, tell| {
            if let ::core::option::Option::Some(it) = <#ident as ::volley_object::Object>::of(instance) {
                #references(&it, tell);
            }
        });)*
        #(class.normal = ::core::option::Option::Some(|instance| {
            let it = <#ident as ::volley_object::Object>::of(instance)?;
            #has_normal
        });)*
    }
}

/// The normal form of the object `instance`, which is the struct `it`.
fn normal_of(class: &OfClass) -> TokenStream {
    match &class.normal {
        None => quote! { ::core::option::Option::None },
        Some(normal) => quote! {
            #normal(&it).map(|it| instance.with_slots(::volley_object::Object::slots(&it)))
        },
    }
}

/// `Default`, where every field has a default. A kind of interfaces always has it: what must be given is empty there, so that
/// code that fills it in repeats no default.
fn usual<'f>(
    ident: &Ident,
    is_interface: bool,
    fields: impl Iterator<Item = &'f Field>,
) -> Result<TokenStream> {
    let mut all = Vec::new();
    for field in fields {
        let of = of_field(&Owner::class(ident), field)?;
        let (name, ty) = (&field.ident, &field.ty);
        let empty = |ty: &Type| match ty {
            Type::Path(path) => {
                let last = path.path.segments.last();
                let empty = ["Option", "Vec", "BTreeSet"];
                last.is_some_and(|it| empty.iter().any(|name| it.ident == name))
            }
            _ => false,
        };
        all.push(match of.default {
            Some(default) => quote! { #name: { let it: #ty = #default; it } },
            None if is_interface || empty(ty) && !of.key && !of.has_least => {
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

/// The struct that has a field, and the trait that makes it of values.
pub(crate) struct Owner<'i> {
    ident: &'i Ident,
    made_by: TokenStream,
}

impl<'i> Owner<'i> {
    pub(crate) fn class(ident: &'i Ident) -> Self {
        let made_by = quote! { ::volley_object::Object };
        Owner { ident, made_by }
    }

    pub(crate) fn query(ident: &'i Ident) -> Self {
        let made_by = quote! { ::volley_object::Query };
        Owner { ident, made_by }
    }

    pub(crate) fn verb(ident: &'i Ident) -> Self {
        let made_by = quote! { ::volley_object::Verb };
        Owner { ident, made_by }
    }
}

/// The fields of a struct.
pub(crate) struct OfFields {
    pub(crate) definitions: Vec<TokenStream>,
    /// The functions that make the struct of values, and values of the struct.
    pub(crate) conversions: TokenStream,
}

impl OfFields {
    pub(crate) fn read<'f>(
        owner: &Owner<'_>,
        name: &LitStr,
        fields: impl IntoIterator<Item = &'f Field>,
    ) -> Result<OfFields> {
        let (mut definitions, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for (at, field) in fields.into_iter().enumerate() {
            definitions.push(definition(owner, field)?);
            let (field, ty) = (&field.ident, &field.ty);
            reads.push(quote! { #field: values.field::<#ty>(#at)? });
            writes.push(quote! { ::volley_object::FieldType::to_slot(&self.#field) });
        }
        let ident = owner.ident;
        let conversions = quote! {
            fn of(values: &::volley_object::Instance) -> ::core::option::Option<Self> {
                if values.class().name() != #name {
                    return ::core::option::Option::None;
                }
                ::core::option::Option::Some(#ident { #(#reads),* })
            }
            fn slots(&self) -> ::std::vec::Vec<::core::option::Option<::volley_object::Value>> {
                ::std::vec![#(#writes),*]
            }
        };
        Ok(OfFields {
            definitions,
            conversions,
        })
    }
}

/// The step that gives a field the value that follows from the others.
fn derived(owner: &Owner<'_>, ty: &Type, function: &ExprPath) -> TokenStream {
    let Owner { ident, made_by } = owner;
    quote! {
        field.derived = ::core::option::Option::Some(|instance| {
            let it = <#ident as #made_by>::of(instance)?;
            ::volley_object::FieldType::to_slot(&{ let value: #ty = #function(&it); value })
        });
    }
}

fn definition(owner: &Owner<'_>, field: &Field) -> Result<TokenStream> {
    let Some(name) = &field.ident else {
        return Err(Error::new_spanned(field, "a field needs a name"));
    };
    let text = doc(&field.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(name, "a field needs a doc comment"));
    }
    let OfField { key, steps, .. } = of_field(owner, field)?;
    let (ty, text_name): (&Type, String) = (&field.ty, name.unraw().to_string());
    Ok(quote! {{
        #[allow(unused_mut)]
        let mut field = ::volley_object::FieldDef::new::<#ty>(#text_name, #text, #key);
        #(#steps)*
        field
    }})
}

fn of_class(attributes: &[Attribute]) -> Result<OfClass> {
    let mut of = OfClass::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("object")) {
        attribute.parse_nested_meta(|meta| {
            let unknown = || meta.error(listed(&[FLAGS, TEXTS, LISTS, OTHERS]));
            let name = meta.path.get_ident().ok_or_else(unknown)?.clone();
            let word = name.to_string();
            let is_in = |all: &[&str]| all.contains(&&*word);
            let step = match &word[..] {
                "class" => return set(&mut of.class, &meta),
                "check" => return set(&mut of.check, &meta),
                "references" => return set(&mut of.references, &meta),
                "normal" => return set(&mut of.normal, &meta),
                "file" => {
                    let file: LitStr = meta.value()?.parse()?;
                    quote! { class.file = ::volley_object::Place::read(#file); }
                }
                "upgrade" => {
                    let upgrade: ExprPath = meta.value()?.parse()?;
                    quote! { class.upgrade = ::core::option::Option::Some(#upgrade); }
                }
                "starts" => {
                    let [key, verb, doc] = texts(&meta)?;
                    let start =
                        quote! { ::volley_object::Start { key: #key, verb: #verb, doc: #doc } };
                    quote! { class.starts = ::core::option::Option::Some(#start); }
                }
                "group" => {
                    let [words, text] = texts(&meta)?;
                    quote! { class.groups.push((#words, #text)); }
                }
                "instead" => {
                    let [words, text] = texts(&meta)?;
                    quote! { class.instead.push((#words, #text)); }
                }
                _ if is_in(FLAGS) => quote! { class.#name = true; },
                _ if is_in(TEXTS) => {
                    let text: LitStr = meta.value()?.parse()?;
                    quote! { class.#name = #text; }
                }
                _ if is_in(LISTS) => {
                    let text: LitStr = meta.value()?.parse()?;
                    quote! { class.#name.push(#text); }
                }
                _ => return Err(unknown()),
            };
            of.is_interface |= word == "interface";
            of.steps.push(step);
            Ok(())
        })?;
    }
    Ok(of)
}

/// Reads the value of an attribute into its place.
fn set<T: Parse>(place: &mut Option<T>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    *place = Some(meta.value()?.parse()?);
    Ok(())
}

/// Texts in parentheses with commas between.
fn texts<const N: usize>(meta: &ParseNestedMeta<'_>) -> Result<[LitStr; N]> {
    let inside;
    parenthesized!(inside in meta.input);
    let all = Punctuated::<LitStr, Token![,]>::parse_terminated(&inside)?;
    let all: Vec<LitStr> = all.into_iter().collect();
    all.try_into().map_err(|_| meta.error(format!("{N} texts")))
}

fn of_field(owner: &Owner<'_>, field: &Field) -> Result<OfField> {
    let (mut of, ty) = (OfField::default(), &field.ty);
    let ours = |a: &&Attribute| {
        ["object", "query", "verb"]
            .iter()
            .any(|name| a.path().is_ident(name))
    };
    for attribute in field.attrs.iter().filter(ours) {
        attribute.parse_nested_meta(|meta| {
            let all = [FIELD_FLAGS, FIELD_TEXTS, FIELD_VALUES, REFERENCES, FIELD_OTHERS];
            let unknown = || meta.error(listed(&all));
            let name = meta.path.get_ident().ok_or_else(unknown)?.clone();
            let word = name.to_string();
            let is_in = |all: &[&str]| all.contains(&&*word);
            let step = match &word[..] {
                "key" => {
                    of.key = true;
                    return Ok(());
                }
                "scaled" => quote! { field.scale(); },
                "range" => {
                    let range: Expr = meta.value()?.parse()?;
                    quote! { field.limit((#range).into_inner()); }
                }
                "least" => {
                    of.has_least = true;
                    let least: Expr = meta.value()?.parse()?;
                    quote! { field.at_least(#least); }
                }
                "derived" => derived(owner, ty, &meta.value()?.parse()?),
                _ if is_in(FIELD_FLAGS) => quote! { field.#name = true; },
                _ if is_in(FIELD_TEXTS) => {
                    let text: LitStr = meta.value()?.parse()?;
                    quote! { field.#name = #text; }
                }
                _ if is_in(FIELD_VALUES) => {
                    let value: Expr = meta.value()?.parse()?;
                    let step = quote! {
                        field.#name = ::volley_object::FieldType::to_slot(&{ let it: #ty = #value; it });
                    };
                    of.default = of.default.take().or((word == "default").then_some(value));
                    step
                }
                _ if is_in(REFERENCES) => {
                    let class: LitStr = meta.value()?.parse()?;
                    quote! {
                        field.reference =
                            ::core::option::Option::Some(::volley_object::Reference::#name(#class));
                    }
                }
                _ => return Err(unknown()),
            };
            of.steps.push(step);
            Ok(())
        })?;
    }
    Ok(of)
}
