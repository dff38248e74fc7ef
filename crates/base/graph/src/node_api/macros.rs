//! Enums of edges and counters.

/// Declare the edges of a node: each variant and the name of the node it leads to.
///
/// ```
/// volley_graph::nexts! {
///     /// Where sample-node sends packets.
///     pub enum Next { Drop => "error-drop", Lookup => "sample-lookup" }
/// }
/// ```
///
/// For a node that exists once for each type of a trait, where the type names targets:
///
/// ```
/// trait Family: 'static { const LOOKUP: &'static str; }
/// volley_graph::nexts! {
///     /// Where sample-nodes send packets.
///     pub struct Next<F: Family> { DROP => "error-drop", LOOKUP => F::LOOKUP }
/// }
/// ```
///
/// Where the type names all targets: `pub struct Next<F: Family> in F::EDGES => { DROP, LOOKUP }`.
#[macro_export]
macro_rules! nexts {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$vdoc:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        $vis enum $name { $($(#[$vdoc])* #[allow(missing_docs)] $variant),+ }
        impl $crate::Nexts for $name {
            const EDGES: &'static [&'static str] = &[$($target),+];
            #[inline(always)]
            fn index(self) -> usize { self as usize }
        }
    };
    ($(#[$doc:meta])* $vis:vis struct $name:ident<$f:ident: $bound:path> { $($(#[$vdoc:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $crate::nexts! {
            $(#[$doc])*
            $vis struct $name<$f: $bound> in &[$($target),+] => { $($(#[$vdoc])* $variant),+ }
        }
    };
    ($(#[$doc:meta])* $vis:vis struct $name:ident<$f:ident: $bound:path> in $edges:expr => { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        $vis struct $name<$f>(u8, ::std::marker::PhantomData<$f>);
        impl<$f> Clone for $name<$f> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$f> Copy for $name<$f> {}
        const _: () = {
            #[allow(clippy::upper_case_acronyms)]
            enum Order { $($variant),+ }
            #[allow(missing_docs)]
            impl<$f: $bound> $name<$f> {
                $($(#[$vdoc])* $vis const $variant: Self = $name(Order::$variant as u8, ::std::marker::PhantomData);)+
            }
        };
        impl<$f: $bound> $crate::Nexts for $name<$f> {
            const EDGES: &'static [&'static str] = $edges;
            #[inline(always)]
            fn index(self) -> usize { self.0 as usize }
        }
    };
}

/// Declare the counters of a node: the doc comment is the operator's text, and without one it does not compile.
///
/// ```
/// volley_graph::counters! {
///     /// What sample-node counts.
///     pub enum Count {
///         /// the packet is too short
///         TooShort = "too-short" (Error),
///     }
/// }
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[doc = $edoc:literal])* $vis:vis enum $name:ident {
        $(#[doc = $text:literal] $variant:ident = $label:literal ($severity:ident)),+ $(,)?
    }) => {
        $(#[doc = $edoc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        $vis enum $name { $(#[doc = $text] $variant),+ }
        impl $crate::Counters for $name {
            const INFO: &'static [$crate::CounterInfo] = &[$($crate::CounterInfo {
                name: $label,
                severity: $crate::Severity::$severity,
                text: $text.trim_ascii(),
            }),+];
            #[inline(always)]
            fn index(self) -> usize { self as usize }
            #[inline(always)]
            fn from_code(code: u32) -> Self {
                const ALL: &[$name] = &[$($name::$variant),+];
                ALL[(code.wrapping_sub(1) as usize).min(ALL.len() - 1)]
            }
        }
    };
}
