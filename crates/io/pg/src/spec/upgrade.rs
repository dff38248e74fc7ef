//! Requests about streams in commits of earlier versions.

use serde_json::{Map, Value as Json, json};

/// The current form of the request `{"stream-new": {...}}` and related ones.
pub(super) fn request(name: &str, content: &Json) -> Option<Json> {
    let stream = || content.get("name").filter(|name| name.is_string()).cloned();
    let change = |on: bool| {
        let mut change = json!({ "class": "stream", "enabled": on });
        if let Some(name) = stream() {
            change["name"] = name;
        }
        json!({ "change": change })
    };
    Some(match name {
        "stream-new" => json!({ "set": created(content)? }),
        "stream-enable" => change(true),
        "stream-disable" => change(false),
        "stream-delete" => json!({ "unset": { "class": "stream", "name": stream()? } }),
        _ => return None,
    })
}

fn created(old: &Json) -> Option<Json> {
    let mut now = Map::new();
    now.insert("class".to_owned(), "stream".into());
    let same = ["name", "limit", "max_frame", "seed", "worker"].map(|name| (name, name));
    let mut put = |name: &str, value: Option<&Json>| {
        let value = value.filter(|value| !value.is_null());
        value.map(|value| now.insert(name.to_owned(), value.clone()));
    };
    for (before, name) in same.into_iter().chain([("rate_pps", "rate")]) {
        put(name, old.get(before));
    }
    let enter = old.get("enter")?;
    put("interface", enter.get("interface"));
    put("node", enter.get("node"));
    let source = old.get("source")?;
    put("template", source.get("template"));
    put("pcap", source.get("file"));
    let edits = old.get("edits").and_then(Json::as_array);
    let edits: Option<Vec<Json>> = edits.into_iter().flatten().map(edit).collect();
    put("edits", Some(&Json::Array(edits?)));
    put("size", old.get("sizes").and_then(size).as_ref());
    Some(now.into())
}

/// A text without quotes, or a number.
fn word(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The only entry of a map.
fn only(map: &Json) -> Option<(&str, &Json)> {
    let map = map.as_object()?;
    map.iter().next().map(|(name, value)| (&**name, value))
}

fn edit(old: &Json) -> Option<Json> {
    let target = match only(old.get("target")?)? {
        ("field", path) => word(path),
        (_, bytes) => {
            let (offset, size) = (bytes.get("offset")?, bytes.get("size")?);
            format!("offset {offset} size {size}")
        }
    };
    let (how, what) = only(old.get("how")?)?;
    let values = match what {
        Json::Array(all) => all.iter().map(word).collect::<Vec<_>>().join(" "),
        Json::Object(range) => {
            let (min, max) = (word(range.get("min")?), word(range.get("max")?));
            let step = range.get("step").map(|step| format!(" step {step}"));
            format!("{min} {max}{}", step.unwrap_or_default())
        }
        one if how == "file" => volley_object::quote(&word(one)),
        one => word(one),
    };
    Some(format!("{target} {how} {values}").into())
}

/// The lengths; none if they are those of the template or the file.
fn size(old: &Json) -> Option<Json> {
    let (how, what) = only(old)?;
    let range = || Some(format!("{}-{}", what.get("min")?, what.get("max")?));
    let text = match how {
        "fixed" => word(what),
        "increment" => range()?,
        "random" => format!("random {}", range()?),
        _ => {
            let part = |part: &Json| Some(format!("{}:{}", part.get("size")?, part.get("weight")?));
            let parts: Option<Vec<String>> = what.as_array()?.iter().map(part).collect();
            format!("imix {}", parts?.join(","))
        }
    };
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use crate::StreamSpec;
    use volley_model::Request;
    use volley_object::Object;

    #[test]
    fn commits_of_earlier_versions_are_read() {
        StreamSpec::class().unwrap();
        let cases = [
            (
                r#"{"stream-new":{"name":"s0","enter":{"interface":"pg0","node":null},"source":{"template":"eth / ip4 / udp"},
                   "edits":[{"target":{"field":"udp.sport"},"how":{"increment":{"min":"1","max":"9","step":2}}},
                   {"target":{"bytes":{"offset":20,"size":2}},"how":{"list":["1","2"]}},
                   {"target":{"field":"ip4.dst"},"how":{"file":"/a b"}},{"target":{"field":"ip4.ttl"},"how":{"fixed":"7"}}],
                   "sizes":{"random":{"min":64,"max":99}},"rate_pps":5,"limit":null,"max_frame":null,"seed":3,"worker":null}}"#,
                "packet-generator new name s0 interface pg0 rate 5 size random 64-99 seed 3 \
                 edit udp.sport increment 1 9 step 2 edit offset 20 size 2 list 1 2 edit ip4.dst file \"/a b\" \
                 edit ip4.ttl fixed 7 template { eth / ip4 / udp }",
            ),
            (
                r#"{"stream-new":{"name":"s1","enter":{"interface":null,"node":"ip4-input"},"source":{"file":"/a.pcap"},
                   "edits":[],"sizes":"as-built","rate_pps":null,"limit":9,"max_frame":4,"seed":null,"worker":1}}"#,
                "packet-generator new name s1 node ip4-input limit 9 maxframe 4 worker 1 pcap /a.pcap",
            ),
            (
                r#"{"stream-new":{"name":"s2","enter":{"node":"ip4-input"},"source":{"template":"ip4"},
                   "sizes":{"imix":[{"size":64,"weight":7},{"size":594,"weight":4}]}}}"#,
                "packet-generator new name s2 node ip4-input size imix 64:7,594:4 template { ip4 }",
            ),
            (
                r#"{"stream-enable":{"name":"s0"}}"#,
                "packet-generator enable s0",
            ),
            (
                r#"{"stream-disable":{"name":null}}"#,
                "packet-generator disable",
            ),
            (
                r#"{"stream-delete":{"name":"s0"}}"#,
                "packet-generator delete s0",
            ),
        ];
        for (old, line) in cases {
            let request: Request = serde_json::from_str(old).expect(old);
            assert_eq!(request.to_string(), line);
        }
        assert!(serde_json::from_str::<Request>(r#"{"stream-news":{}}"#).is_err());
    }
}
