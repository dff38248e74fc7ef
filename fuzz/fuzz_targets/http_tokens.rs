//! Token files: each token of a file that is accepted is found, and no error quotes a word that may be a token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_http::fuzzing::has_token;

fuzz_target!(|text: &str| match has_token(text, b"") {
    Ok(found) => {
        assert!(!found, "nothing is no token");
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let token = line.split_whitespace().last().expect("a word");
            assert_eq!(has_token(text, token.as_bytes()), Ok(true));
            assert_eq!(
                has_token(text, format!("{token}x").as_bytes())
                    .map(|it| it && !text.contains(&format!("{token}x"))),
                Ok(false)
            );
        }
    }
    Err(why) => {
        let words = text.split_whitespace().filter(|word| word.len() >= 16);
        for word in words {
            assert!(!why.contains(word), "{why}");
        }
    }
});
