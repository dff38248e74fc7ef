//! Conversion of requests that earlier versions wrote into commits.

use crate::path::{Path, PathTarget};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

/// The current form of a request of an earlier version.
pub(crate) fn request(name: &str, content: &Json) -> Option<Json> {
    (name == "route-load")
        .then(|| route_file(content))
        .flatten()
}

/// The current form of a request about routes, and of a path set that many routes share.
pub(crate) fn route(name: &str, content: &Json) -> Option<Json> {
    let today = match name {
        "route-add" => "add",
        "route-replace" => "set",
        "route-del" => "take",
        "routes" => return Some(json!({ "paths": paths(content) })),
        _ => return None,
    };
    let fields = content.as_object()?.iter();
    let field = |(name, value): (&String, &Json)| match name.as_str() {
        "paths" => (name.clone(), paths(value)),
        _ => (name.clone(), value.clone()),
    };
    let mut route: Map<String, Json> = fields.map(field).collect();
    route.insert("class".to_owned(), "route".into());
    Some(json!({ today: route }))
}

/// Paths as texts. A value that is not an old path list stays unchanged, so that errors report it.
fn paths(given: &Json) -> Json {
    let Some(all) = given.as_array() else {
        return given.clone();
    };
    let text = |one: &Json| match Path::deserialize(one) {
        Ok(it) => it.to_string().into(),
        Err(_) => one.clone(),
    };
    all.iter().map(text).collect()
}

/// `{"route-load": {"path": ..., "next_hops": ...}}`.
fn route_file(content: &Json) -> Option<Json> {
    let mut file = Map::new();
    file.insert("class".to_owned(), "route_file".into());
    for name in ["path", "table", "family", "format", "limit"] {
        if let Some(value) = content.get(name).filter(|value| !value.is_null()) {
            file.insert(name.to_owned(), value.clone());
        }
    }
    let next_hops = content.get("next_hops")?;
    if let Some(given) = next_hops.get("paths") {
        file.insert("fold".to_owned(), fold(given));
        let paths: Vec<Path> = serde_json::from_value(given.get("paths")?.clone()).ok()?;
        file.insert("paths".to_owned(), paths.iter().map(path).collect());
    } else if let Some(given) = next_hops.get("range") {
        file.insert("fold".to_owned(), fold(given));
        for (old, new) in [
            ("first", "next_hops"),
            ("count", "count"),
            ("interfaces", "interfaces"),
        ] {
            file.insert(new.to_owned(), given.get(old)?.clone());
        }
    }
    Some(json!({ "set": file }))
}

fn fold(given: &Json) -> Json {
    given
        .get("fold")
        .cloned()
        .unwrap_or_else(|| "modulo".into())
}

/// A path as a table of its fields.
fn path(path: &Path) -> Json {
    let mut table = Map::new();
    let mut put = |name: &str, value: Json| {
        if !value.is_null() {
            table.insert(name.to_owned(), value);
        }
    };
    match &path.target {
        PathTarget::Via {
            addr,
            interface,
            table,
        } => {
            put("via", json!(addr));
            put("interface", json!(interface));
            put("next_hop_table", json!(table));
        }
        PathTarget::Interface(name) => put("interface", json!(name)),
        PathTarget::LookupIn(number) => put("lookup_in", json!(number)),
        action => put("action", action.to_string().into()),
    }
    put("weight", path.weight.into());
    put("preference", path.preference.into());
    put("onlink", path.onlink.into());
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RouteFile, classes};
    use volley_model::Request;
    use volley_object::Object;

    #[test]
    fn routes_of_earlier_requests_are_read() {
        classes().unwrap();
        let read = |text: &str| serde_json::from_str::<Request>(text).map(|it| it.to_string());
        for (old, now) in [
            (
                r#"{"route-add":{"prefix":"10.0.0.0/8","paths":[{"target":{"via":{"addr":"192.0.2.1","interface":"pg0"}},"weight":2}]}}"#,
                "ip route add 10.0.0.0/8 via 192.0.2.1 pg0 weight 2",
            ),
            (
                r#"{"route-replace":{"prefix":"2001:db8::/32","table":7,"source":"dynamic","count":3,"paths":[
                    {"target":"drop"},{"target":{"lookup-in":9},"preference":1}]}}"#,
                "ip route replace 2001:db8::/32 table 7 source dynamic count 3 via drop via lookup-in-table 9 preference 1",
            ),
            (
                r#"{"route-del":{"prefix":"10.0.0.0/8","count":2}}"#,
                "ip route del 10.0.0.0/8 count 2",
            ),
            (
                r#"{"routes":{"family":"ip4","table":7,"sets":[[{"target":"drop"}]],"put":[["10.0.0.0/8",0]],"gone":["11.0.0.0/8"]}}"#,
                "set 1 and remove 1 objects of class route, table 7, source static",
            ),
        ] {
            assert_eq!(read(old).unwrap(), now);
        }
        for (wrong, why) in [
            (r#"{"route-add":{"prefix":"10.0.0.0/8"}}"#, "leads nowhere"),
            (
                r#"{"route-add":{"prefix":"10.0.0.0/8","paths":[{"target":5}]}}"#,
                "unknown field `target`",
            ),
            (
                r#"{"route-add":{"prefix":"10.0.0.0/8","color":1}}"#,
                "unknown field `color`",
            ),
            (
                r#"{"route-load-all":{}}"#,
                "unknown variant `route-load-all`",
            ),
        ] {
            let reported = read(wrong).unwrap_err().to_string();
            assert!(reported.contains(why), "{reported}");
        }
    }

    #[test]
    fn files_of_earlier_commits_are_read() {
        classes().unwrap();
        let file = |text: &str| {
            let old: Json = serde_json::from_str(text).unwrap();
            let now = request("route-load", &old).unwrap();
            let Request::Set(object) = serde_json::from_value(now).unwrap() else {
                panic!("an object is set");
            };
            RouteFile::of(&object).unwrap()
        };
        let listed = r#"{"path":"/a","format":"auto","table":0,"family":null,"next_hops":"listed","limit":null}"#;
        assert_eq!(file(listed), RouteFile::new("/a"));
        let range = r#"{"path":"/a","format":"mrt","table":7,"family":"ip4","limit":9,
            "next_hops":{"range":{"first":"192.0.2.1","count":2,"interfaces":["pg0"],"fold":"clamp"}}}"#;
        let command = "ip route load /a format mrt table 7 family ip4 limit 9 fold clamp next-hops 192.0.2.1 2 pg0";
        let spelled = |file: RouteFile| file.instance().unwrap().set_command();
        assert_eq!(spelled(file(range)), command);
        let paths = r#"{"path":"/a","next_hops":{"paths":{"paths":[
            {"target":{"via":{"addr":"192.0.2.1","interface":"pg0","table":null}},"weight":2,"preference":1},
            {"target":"drop","weight":1,"preference":0}]}}}"#;
        let command = "ip route load /a via 192.0.2.1 pg0 weight 2 preference 1 via drop";
        assert_eq!(spelled(file(paths)), command);
        assert_eq!(request("route-loaded", &Json::Null), None);
    }
}
