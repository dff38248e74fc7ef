//! Bodies and parameters of the HTTP interface: no panic; a refusal is one sentence; parsed data, written and parsed again, is
//! the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_http::{Problem, read_action, read_query, read_request, read_transaction};

fn one_sentence(problem: &Problem) {
    let text = &problem.message;
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}

fuzz_target!(|bytes: &[u8]| {
    match read_request(bytes) {
        Err(problem) => one_sentence(&problem),
        Ok(request) => {
            let text = serde_json::to_vec(&request).expect("it was read");
            assert_eq!(read_request(&text).as_ref(), Ok(&request));
            let _ = (request.validate(), request.to_string());
        }
    }
    match read_transaction(bytes) {
        Err(problem) => one_sentence(&problem),
        Ok(requests) => {
            let text = serde_json::to_vec(&requests).expect("they were read");
            assert_eq!(read_transaction(&text).as_ref(), Ok(&requests));
        }
    }
    // The first line names an action or a query, the rest is the body or the parameters.
    let at = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(at);
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    let rest = rest.get(1..).unwrap_or_default();
    if let Err(problem) = read_action(name, rest) {
        one_sentence(&problem);
    }
    if let Err(problem) = read_query(name, &String::from_utf8_lossy(rest)) {
        one_sentence(&problem);
    }
});
