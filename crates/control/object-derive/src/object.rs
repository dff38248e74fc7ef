//! `#[derive(Object)]`.

use crate::doc::doc;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprPath, Field, Fields, LitStr, Result, Token,
    Type, parenthesized,
};

/// What `#[object(...)]` says of the struct.
#[derive(Default)]
struct OfClass {
    class: Option<LitStr>,
    file: Option<LitStr>,
    set: Vec<LitStr>,
    unset: Vec<LitStr>,
    unset_any: Vec<LitStr>,
    change: Vec<LitStr>,
    last: bool,
    upgrade: Option<ExprPath>,
    one_of: Option<LitStr>,
    example: Option<LitStr>,
    check: Option<ExprPath>,
    references: Option<ExprPath>,
    recreate: bool,
    separate: bool,
    once: bool,
    startup: bool,
    machine: bool,
    after: Vec<LitStr>,
    ordered: bool,
    together: bool,
    interrupts: Option<LitStr>,
    formerly: Option<LitStr>,
    interface: Option<LitStr>,
    starts: Option<[LitStr; 3]>,
    groups: Vec<[LitStr; 2]>,
    instead: Vec<[LitStr; 2]>,
    bulk: bool,
    add: Vec<LitStr>,
    take: Vec<LitStr>,
    normal: Option<ExprPath>,
    removed_with: Option<LitStr>,
    formerly_bulk: Option<LitStr>,
}

/// What `#[object(...)]` says of a field.
#[derive(Default)]
struct OfField {
    key: bool,
    part_of: Option<LitStr>,
    needs: Option<LitStr>,
    loses: Option<LitStr>,
    least: Option<Expr>,
    default: Option<Expr>,
    built_in: Option<Expr>,
    each: bool,
    range: Option<Expr>,
    unit: Option<LitStr>,
    example: Option<LitStr>,
    derived: Option<ExprPath>,
    request: bool,
    secret: bool,
    scaled: bool,
    in_file: Option<Expr>,
    typed: Option<Expr>,
    joined: bool,
    repeats: bool,
    inline: bool,
    unsaved: Option<Expr>,
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
    let (mut definitions, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, field) in named.named.iter().enumerate() {
        definitions.push(definition(&Owner::class(ident), field)?);
        let (field, ty) = (&field.ident, &field.ty);
        reads.push(quote! { #field: instance.field::<#ty>(#at)? });
        writes.push(quote! { ::volley_object::FieldType::to_slot(&self.#field) });
    }
    let usual = usual(ident, class.interface.is_some(), named.named.iter())?;
    let definition = class_definition(ident, &class, name, &text, &definitions);
    Ok(quote! {
        #usual
        impl ::volley_object::Object for #ident {
            const CLASS: &'static str = #name;
            fn definition() -> ::volley_object::ClassDef {
                #definition
            }
            fn of(instance: &::volley_object::Instance) -> ::core::option::Option<Self> {
                if instance.class().name() != #name {
                    return ::core::option::Option::None;
                }
                ::core::option::Option::Some(#ident { #(#reads),* })
            }
            fn slots(&self) -> ::std::vec::Vec<::core::option::Option<::volley_object::Value>> {
                ::std::vec![#(#writes),*]
            }
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
    let OfClass {
        set,
        unset,
        unset_any,
        change,
        last,
        after,
        recreate,
        ordered,
        together,
        separate,
        once,
        ..
    } = class;
    let (interrupts, formerly) = (class.interrupts.iter(), class.formerly.iter());
    let (one_of, interface) = (class.one_of.iter(), class.interface.iter());
    let file = class.file.iter();
    let example = class.example.iter();
    let upgrade = class.upgrade.iter();
    let code = code_of(ident, class);
    let (startup, machine) = (class.startup, class.machine);
    let words = words_of_commands(class);
    let many = of_many(ident, class);
    quote! {
        let mut class = ::volley_object::ClassDef::new(#name, #text);
        class.fields = ::std::vec![#(#fields),*];
        #(class.file = ::volley_object::Place::read(#file);)*
        class.set = ::std::vec![#(#set),*];
        class.unset = ::std::vec![#(#unset),*];
        class.unset_any = ::std::vec![#(#unset_any),*];
        class.change = ::std::vec![#(#change),*];
        class.last = #last;
        #(class.upgrade = ::core::option::Option::Some(#upgrade);)*
        #(class.one_of = #one_of;)*
        #(class.example = #example;)*
        class.recreate = #recreate;
        class.startup = #startup;
        class.machine = #machine;
        class.after = ::std::vec![#(#after),*];
        class.ordered = #ordered;
        class.together = #together;
        class.separate = #separate;
        class.once = #once;
        #(class.interrupts = #interrupts;)*
        #(class.formerly = #formerly;)*
        #(class.interface = #interface;)*
        #words
        #many
        #code
        class
    }
}

/// The statements for the rules between fields and for references that code tells.
fn code_of(ident: &Ident, class: &OfClass) -> TokenStream {
    let (check, references) = (class.check.iter(), class.references.iter());
    let normal = normal_of(class);
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

/// The statements for objects of which there are many, or that are joined.
fn of_many(ident: &Ident, class: &OfClass) -> TokenStream {
    let OfClass {
        bulk, add, take, ..
    } = class;
    let normal = class.normal.iter().map(|_| normal_of(class));
    let (removed_with, formerly) = (class.removed_with.iter(), class.formerly_bulk.iter());
    quote! {
        class.bulk = #bulk;
        class.add = ::std::vec![#(#add),*];
        class.take = ::std::vec![#(#take),*];
        #(class.removed_with = #removed_with;)*
        #(class.formerly_bulk = #formerly;)*
        #(class.normal = ::core::option::Option::Some(|instance| {
            let it = <#ident as ::volley_object::Object>::of(instance)?;
            #normal
        });)*
    }
}

/// The statements for words of commands that belong to the class: groups of commands, commands of other routers, verbs.
fn words_of_commands(class: &OfClass) -> TokenStream {
    let starts = class.starts.iter().map(|[key, verb, doc]| {
        quote! { ::volley_object::Start { key: #key, verb: #verb, doc: #doc } }
    });
    let pairs = |all: &[[LitStr; 2]]| -> Vec<TokenStream> {
        all.iter()
            .map(|[words, text]| quote! { (#words, #text) })
            .collect()
    };
    let (groups, instead) = (pairs(&class.groups), pairs(&class.instead));
    quote! {
        #(class.starts = ::core::option::Option::Some(#starts);)*
        class.groups = ::std::vec![#(#groups),*];
        class.instead = ::std::vec![#(#instead),*];
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
        let (name, ty, of) = (&field.ident, &field.ty, of_field(&field.attrs)?);
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
            None if is_interface || empty(ty) && !of.key && of.least.is_none() => {
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

/// The step that says what a field is.
fn flags(of: &OfField) -> TokenStream {
    let OfField {
        request,
        secret,
        joined,
        repeats,
        inline,
        ..
    } = of;
    quote! {
        (field.request, field.secret) = (#request, #secret);
        (field.joined, field.repeats, field.inline) = (#joined, #repeats, #inline);
    }
}

pub(crate) fn definition(owner: &Owner<'_>, field: &Field) -> Result<TokenStream> {
    let Some(name) = &field.ident else {
        return Err(Error::new_spanned(field, "a field needs a name"));
    };
    let of = of_field(&field.attrs)?;
    let text = doc(&field.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(name, "a field needs a doc comment"));
    }
    let (ty, text_name): (&Type, String) = (&field.ty, name.unraw().to_string());
    let key = of.key;
    let mut steps = Vec::new();
    let values = [
        (&of.default, quote! { default }),
        (&of.in_file, quote! { in_file }),
        (&of.typed, quote! { typed }),
        (&of.built_in, quote! { built_in }),
        (&of.unsaved, quote! { unsaved }),
    ];
    for (value, slot) in values {
        steps.extend(value.as_ref().map(|value| {
            quote! {
                field.#slot = ::volley_object::FieldType::to_slot(&{ let it: #ty = #value; it });
            }
        }));
    }
    if of.each {
        steps.push(quote! { field.each = true; });
    }
    if let Some(range) = &of.range {
        steps.push(quote! { field.limit((#range).into_inner()); });
    }
    if of.scaled {
        steps.push(quote! { field.scale(); });
    }
    if let Some(least) = &of.least {
        steps.push(quote! { field.at_least(#least); });
    }
    if let Some(unit) = &of.unit {
        steps.push(quote! { field.unit = #unit; });
    }
    if let Some(example) = &of.example {
        steps.push(quote! { field.example = #example; });
    }
    steps.push(flags(&of));
    steps.extend(
        of.derived
            .as_ref()
            .map(|function| derived(owner, ty, function)),
    );
    let references = [
        (&of.part_of, quote! { part_of }),
        (&of.needs, quote! { needs }),
        (&of.loses, quote! { loses }),
    ];
    for (class, strength) in references {
        steps.extend(class.as_ref().map(|class| {
            quote! {
                field.reference =
                    ::core::option::Option::Some(::volley_object::Reference::#strength(#class));
            }
        }));
    }
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
            let name = meta.path.get_ident().map(Ident::to_string);
            match name.as_deref() {
                Some("class") => of.class = Some(meta.value()?.parse()?),
                Some("file") => of.file = Some(meta.value()?.parse()?),
                Some("set") => of.set.push(meta.value()?.parse()?),
                Some("unset") => of.unset.push(meta.value()?.parse()?),
                Some("unset_any") => of.unset_any.push(meta.value()?.parse()?),
                Some("change") => of.change.push(meta.value()?.parse()?),
                Some("last") => of.last = true,
                Some("upgrade") => of.upgrade = Some(meta.value()?.parse()?),
                Some("one_of") => of.one_of = Some(meta.value()?.parse()?),
                Some("example") => of.example = Some(meta.value()?.parse()?),
                Some("check") => of.check = Some(meta.value()?.parse()?),
                Some("references") => of.references = Some(meta.value()?.parse()?),
                Some("recreate") => of.recreate = true,
                Some("separate") => of.separate = true,
                Some("once") => of.once = true,
                Some("startup") => of.startup = true,
                Some("machine") => of.machine = true,
                Some("after") => of.after.push(meta.value()?.parse()?),
                Some("ordered") => of.ordered = true,
                Some("together") => of.together = true,
                Some("interrupts") => of.interrupts = Some(meta.value()?.parse()?),
                Some("formerly") => of.formerly = Some(meta.value()?.parse()?),
                Some("interface") => of.interface = Some(meta.value()?.parse()?),
                Some("starts") => of.starts = Some(texts(&meta)?),
                Some("group") => of.groups.push(texts(&meta)?),
                Some("instead") => of.instead.push(texts(&meta)?),
                Some("bulk") => of.bulk = true,
                Some("add") => of.add.push(meta.value()?.parse()?),
                Some("take") => of.take.push(meta.value()?.parse()?),
                Some("normal") => of.normal = Some(meta.value()?.parse()?),
                Some("removed_with") => of.removed_with = Some(meta.value()?.parse()?),
                Some("formerly_bulk") => of.formerly_bulk = Some(meta.value()?.parse()?),
                _ => {
                    let known = "class, file, set, unset, unset_any, change, last, upgrade, one_of, example, check, references, recreate, separate, once, \
                         startup, machine, after, ordered, together, interrupts, formerly, interface, starts, group, instead, bulk, add, take, normal, removed_with or formerly_bulk";
                    return Err(meta.error(known));
                }
            }
            Ok(())
        })?;
    }
    Ok(of)
}

/// Texts in parentheses with commas between.
fn texts<const N: usize>(meta: &ParseNestedMeta<'_>) -> Result<[LitStr; N]> {
    let inside;
    parenthesized!(inside in meta.input);
    let all = Punctuated::<LitStr, Token![,]>::parse_terminated(&inside)?;
    let all: Vec<LitStr> = all.into_iter().collect();
    all.try_into().map_err(|_| meta.error(format!("{N} texts")))
}

fn of_field(attributes: &[Attribute]) -> Result<OfField> {
    let mut of = OfField::default();
    let ours = |a: &&Attribute| {
        ["object", "query", "verb"]
            .iter()
            .any(|name| a.path().is_ident(name))
    };
    for attribute in attributes.iter().filter(ours) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string);
            match name.as_deref() {
                Some("key") => of.key = true,
                Some("part_of") => of.part_of = Some(meta.value()?.parse()?),
                Some("needs") => of.needs = Some(meta.value()?.parse()?),
                Some("loses") => of.loses = Some(meta.value()?.parse()?),
                Some("least") => of.least = Some(meta.value()?.parse()?),
                Some("default") => of.default = Some(meta.value()?.parse()?),
                Some("built_in") => of.built_in = Some(meta.value()?.parse()?),
                Some("each") => of.each = true,
                Some("range") => of.range = Some(meta.value()?.parse()?),
                Some("unit") => of.unit = Some(meta.value()?.parse()?),
                Some("example") => of.example = Some(meta.value()?.parse()?),
                Some("derived") => of.derived = Some(meta.value()?.parse()?),
                Some("request") => of.request = true,
                Some("secret") => of.secret = true,
                Some("scaled") => of.scaled = true,
                Some("in_file") => of.in_file = Some(meta.value()?.parse()?),
                Some("typed") => of.typed = Some(meta.value()?.parse()?),
                Some("joined") => of.joined = true,
                Some("repeats") => of.repeats = true,
                Some("inline") => of.inline = true,
                Some("unsaved") => of.unsaved = Some(meta.value()?.parse()?),
                _ => {
                    let known = "key, part_of, needs, loses, least, default, built_in, each, range, unit, example, derived, \
                         request, secret, scaled, in_file, typed, joined, repeats, inline or unsaved";
                    return Err(meta.error(known));
                }
            }
            Ok(())
        })?;
    }
    Ok(of)
}
