//! Objects that are removed together, with an owner that can only create one object and remove all.

use crate::{Core, Executor, Probe};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use volley_model::{Applied, ModelError, Request};
use volley_object::{Instance, Object};

/// A page of a book, which has the pages that were put there last on top.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_page", recreate, ordered, together)]
#[object(set = "put page <text> [book <book>] [ink <ink>]")]
#[object(unset = "burn pages [book <book>]")]
#[object(interrupts = "book <book> is written again")]
struct Page {
    /// Book.
    #[object(key, default = 0)]
    book: u32,
    /// Text.
    #[object(key)]
    text: String,
    /// Ink.
    #[object(default = 0)]
    ink: u32,
}

/// Books that refuse one page.
#[derive(Default)]
struct Books {
    pages: RefCell<BTreeMap<u32, Vec<Page>>>,
    refused: Option<Page>,
}

impl Probe for Books {
    fn by_first_name(&self, _: &str) -> Vec<Instance> {
        Vec::new()
    }
}

impl Executor for Books {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let mut books = self.pages.borrow_mut();
        match request {
            Request::Set(object) => {
                let page = Page::of(object).expect("a page");
                if self.refused.as_ref() == Some(&page) {
                    return Err(ModelError::invalid("this page", "it is refused"));
                }
                let pages = books.entry(page.book).or_default();
                pages.retain(|it| it.text != page.text);
                pages.push(page);
            }
            Request::Unset(key) => {
                assert!(key.is_of_many(), "a page goes alone: {key}");
                books.remove(&volley_model::key_value(key, 0));
            }
            other => panic!("{other}"),
        }
        Ok(Applied::one())
    }
}

fn page(book: u32, text: u32, ink: u32) -> Page {
    let text = format!("p{text}");
    Page { book, text, ink }
}

/// A change: most put a page, some remove one, some all of a book.
fn change((what, book, text, ink): (u32, u32, u32, u32)) -> Request {
    let object = page(book, text, ink).instance().unwrap();
    match what {
        0 => Request::Unset(object.key()),
        1 => Request::Unset(object.key().group()),
        _ => Request::Set(object),
    }
}

fn pages(core: &Core) -> BTreeMap<u32, Vec<Page>> {
    let mut books: BTreeMap<u32, Vec<Page>> = BTreeMap::new();
    for page in core.state().objects_of("test_page").filter_map(Page::of) {
        books.entry(page.book).or_default().push(page);
    }
    books
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// After every transaction the owner has the objects of the state, in order; a failed transaction changes nothing.
    #[test]
    fn an_owner_that_removes_all_has_what_the_state_says(
        rounds in prop::collection::vec(
            prop::collection::vec((0u32..6, 0u32..2, 0u32..4, 0u32..2), 1..6), 1..6),
        refused in prop::option::of((0u32..2, 0u32..4, 0u32..2)),
    ) {
        let (mut core, mut books) = (Core::default(), Books::default());
        books.refused = refused.map(|(book, text, ink)| page(book, text, ink));
        for round in rounds {
            let before = pages(&core);
            let requests: Vec<Request> = round.into_iter().map(change).collect();
            if core.run(&requests, &books).is_err() {
                prop_assert_eq!(pages(&core), before);
            }
            prop_assert_eq!(pages(&core), books.pages.borrow().clone());
        }
    }

    /// Any state can be changed to any other one.
    #[test]
    fn any_state_leads_to_any_other(
        all in prop::collection::vec(prop::collection::vec((2u32..6, 0u32..2, 0u32..4, 0u32..2), 0..6), 1..5),
    ) {
        let (mut core, books) = (Core::default(), Books::default());
        for round in all {
            let requests: Vec<Request> = round.into_iter().map(change).collect();
            let wanted = Core::state_of(&requests).unwrap();
            let transaction = core.begin_state(&wanted).unwrap();
            core.finish(transaction, &books).unwrap();
            prop_assert_eq!(core.state(), &wanted);
            prop_assert_eq!(pages(&core), books.pages.borrow().clone());
        }
    }
}
