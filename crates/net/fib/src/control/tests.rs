//! Tests of requests and queries as an operator gives them.

use std::io::Write;
use std::path::PathBuf;

use crate::path::{Path, PathTarget, RouteSource};
use volley_model::{Applied, Family, IfAddress, Mac, ModelError, Prefix};
use volley_object::{Bulk, Object};
use volley_tables::Domain;

use crate::show::{FibReply, FibSelect, ShowFib, ShowTables};
use crate::source::{Fib, IfInfo};
use crate::{Fold, Route, RouteFile};

fn fib() -> Fib {
    let mut fib = Fib::new(&Domain::new());
    for i in 0..2 {
        let info = IfInfo {
            index: i,
            name: format!("pg{i}"),
            mac: [2; 6],
            mtu: 1500,
            up: true,
        };
        fib.set_interface(info).unwrap();
    }
    let address: IfAddress = "10.0.0.1/24".parse().unwrap();
    fib.configured_address("pg0", address, true).unwrap();
    let mac: Mac = "06:00:00:00:00:02".parse().unwrap();
    let address = "10.0.0.2".parse().unwrap();
    fib.neighbor_of("pg0", address, Some(mac)).unwrap();
    fib
}

fn run(fib: &mut Fib, route: &Route) -> Result<Applied, ModelError> {
    crate::classes().unwrap();
    fib.routes(&Bulk::with(&route.instance().unwrap()).unwrap())
}

fn remove(fib: &mut Fib, route: &Route) -> Result<Applied, ModelError> {
    fib.routes(&Bulk::without(&route.instance().unwrap().key()).unwrap())
}

fn route(prefix: &str, via: &str) -> Route {
    let path = Path::via(via.parse().unwrap(), None);
    Route::new(prefix.parse().unwrap(), vec![path])
}

/// A query for IPv4 routes.
fn asked(select: FibSelect, table: Option<u32>) -> ShowFib {
    let mut asked = ShowFib {
        family: Family::V4,
        table,
        prefix: None,
        address: None,
        summary: select == FibSelect::Summary,
        limit: None,
    };
    match select {
        FibSelect::Exact(prefix) => asked.prefix = Some(prefix),
        FibSelect::Match(address) => asked.address = Some(address),
        FibSelect::All | FibSelect::Summary => {}
    }
    assert_eq!(asked.select(), select);
    asked
}

fn show(fib: &mut Fib, select: FibSelect) -> FibReply {
    fib.routes_shown(&asked(select, None)).unwrap()
}

#[test]
fn a_route_is_added_shown_and_deleted() {
    let mut fib = fib();
    let it = route("20.0.0.0/8", "10.0.0.2");
    assert_eq!(run(&mut fib, &it), Ok(Applied::one()));
    assert_eq!(run(&mut fib, &it), Ok(Applied::nothing()));
    let reply = show(&mut fib, FibSelect::Match("20.1.2.3".parse().unwrap()));
    let shown = &reply.tables[0].routes[0];
    assert_eq!(
        (shown.prefix.to_string().as_str(), shown.source),
        ("20.0.0.0/8", RouteSource::Static)
    );
    assert!(shown.paths[0].resolved);
    assert_eq!(shown.buckets[0].kind, "adjacency");
    assert_eq!(
        shown.buckets[0].text,
        "10.0.0.2 by 10.0.0.2/32 -> via 10.0.0.2 pg0 06:00:00:00:00:02"
    );
    assert_eq!(remove(&mut fib, &it), Ok(Applied::one()));
    assert_eq!(remove(&mut fib, &it), Ok(Applied::nothing()));
}

#[test]
fn refusals_are_sentences_that_name_the_thing() {
    let mut fib = fib();
    let mut r = route("20.0.0.0/8", "10.0.0.2");
    r.table = 9;
    let e = run(&mut fib, &r).unwrap_err();
    assert_eq!(e.to_string(), "there is no table 9 (IPv4); there are: 0");
    r.table = 0;
    r.paths = vec![Path::to(PathTarget::Interface("pg7".into()))];
    let e = run(&mut fib, &r).unwrap_err();
    assert_eq!(
        e.to_string(),
        "there is no interface pg7; there are: pg0, pg1"
    );
    assert!(
        fib.ip_table(Family::V4, 0, false)
            .unwrap_err()
            .to_string()
            .contains("in use by every interface")
    );
}

/// A file in the temporary directory that is deleted on drop.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("volley-fib-{}-{name}", std::process::id()));
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        Self(path)
    }
    fn load(&self) -> RouteFile {
        RouteFile::new(&self.0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_is_loaded_with_its_next_hops_folded() {
    let mut fib = fib();
    let file = File::new(
        "fold",
        "30.0.0.0/8 0\n31.0.0.0/8 1\n32.0.0.0/8 2\n33.0.0.0/8 7\n",
    );
    let range = RouteFile {
        next_hops: Some("10.0.0.2".parse().unwrap()),
        count: 2,
        interfaces: vec!["pg0".to_string(), "pg1".to_string()],
        fold: Fold::Clamp,
        ..file.load()
    };
    let done = fib.load_file(&range).unwrap();
    assert_eq!(done.changed, 4);
    let via = |fib: &mut Fib, prefix: &str| {
        let prefix: Prefix = prefix.parse().unwrap();
        show(fib, FibSelect::Exact(prefix)).tables[0].routes[0].buckets[0]
            .text
            .clone()
    };
    assert_eq!(
        via(&mut fib, "30.0.0.0/8"),
        "via 10.0.0.2 pg0 06:00:00:00:00:02"
    );
    for prefix in ["31.0.0.0/8", "32.0.0.0/8", "33.0.0.0/8"] {
        assert_eq!(via(&mut fib, prefix), "via 10.0.0.3 pg1, MAC unknown");
    }
}

#[test]
fn a_bad_file_changes_nothing() {
    let mut fib = fib();
    let before = show(&mut fib, FibSelect::All);
    let listed = File::new(
        "listed",
        "30.0.0.0/8 10.0.0.2\n2001:db8::/32 2001:db8::1\n31.0.0.0/8\n",
    );
    let e = fib.load_file(&listed.load()).unwrap_err().to_string();
    assert!(
        e.ends_with(", line 3: the next hop is missing: write PREFIX NEXTHOP"),
        "{e}"
    );
    let crossed = File::new("crossed", "30.0.0.0/8 10.0.0.2\n2001:db8::/32 10.0.0.2\n");
    let e = fib.load_file(&crossed.load()).unwrap_err().to_string();
    assert!(e.contains("other family"), "{e}");
    assert_eq!(show(&mut fib, FibSelect::All), before);
    let good = File::new("good", "30.0.0.0/8 10.0.0.2\n2001:db8::/32 2001:db8::1\n");
    assert_eq!(fib.load_file(&good.load()).unwrap().changed, 2);
}

#[test]
fn neighbors_tables_and_interfaces_are_shown() {
    let mut fib = fib();
    let neighbors = fib.neighbors_of(None, Some("pg0")).unwrap();
    assert_eq!((neighbors.len(), neighbors[0].0.as_str()), (1, "pg0"));
    assert!(fib.neighbors_of(None, Some("pg9")).is_err());
    fib.ip_table(Family::V4, 7, true).unwrap();
    assert_eq!(fib.bind("pg1", Family::V4, 7), Ok(Applied::one()));
    assert_eq!(fib.bind("pg1", Family::V4, 7), Ok(Applied::nothing()));
    let t = fib.tables(&ShowTables {
        family: Some(Family::V4),
    });
    let rows: Vec<_> = t
        .tables
        .iter()
        .map(|t| (t.table, t.interfaces.join(",")))
        .collect();
    assert_eq!(rows, [(0, "pg0".to_string()), (7, "pg1".to_string())]);
}

#[test]
fn a_prefix_that_is_not_there_is_answered_with_the_route_that_covers_it() {
    let mut fib = fib();
    let ask = |fib: &mut Fib, prefix: &str, table| {
        let shown = fib.routes_shown(&asked(FibSelect::Exact(prefix.parse().unwrap()), table));
        let shown = shown.map_err(|error| error.to_string());
        shown.map(|reply| reply.tables[0].clone())
    };
    for prefix in ["20.0.0.0/8", "20.9.8.0/24", "20.9.9.0/24"] {
        run(&mut fib, &route(prefix, "10.0.0.2")).unwrap();
    }
    let routes = |table: &crate::FibTable| -> Vec<String> {
        table.routes.iter().map(|r| r.prefix.to_string()).collect()
    };
    let there = ask(&mut fib, "20.9.8.0/24", None).unwrap();
    assert_eq!(
        (routes(&there), there.absent),
        (vec!["20.9.8.0/24".into()], None)
    );
    for (asked, inside) in [
        ("20.9.0.0/16", 2),
        ("20.9.8.0/23", 2),
        ("20.8.0.0/16", 0),
        ("20.9.9.1/32", 0),
    ] {
        let table = ask(&mut fib, asked, Some(0)).unwrap();
        let absent = table.absent.expect("the prefix is not there");
        assert_eq!(
            (absent.prefix.to_string().as_str(), absent.inside),
            (asked, inside)
        );
        let cover = if asked == "20.9.9.1/32" {
            "20.9.9.0/24"
        } else {
            "20.0.0.0/8"
        };
        assert_eq!(routes(&table), [cover], "{asked}");
    }
    assert_eq!(
        ask(&mut fib, "30.0.0.0/8", None).unwrap_err(),
        "there is no route to 30.0.0.0/8 in any table: packets to it are dropped"
    );
    // The prefix is shorter than any route: the longer prefixes inside do not cover all of it.
    assert!(
        ask(&mut fib, "16.0.0.0/4", Some(0))
            .unwrap_err()
            .contains("in table 0")
    );
}
