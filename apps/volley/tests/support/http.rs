//! A plain client of the HTTP interface: one connection, replies with a length.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub struct Http(BufReader<UnixStream>);

impl Http {
    pub fn connect(socket: &Path) -> Http {
        let stream = UnixStream::connect(socket).unwrap();
        let limit = Some(Duration::from_secs(120));
        stream.set_read_timeout(limit).unwrap();
        stream.set_write_timeout(limit).unwrap();
        Http(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Reads a line without its end; none at the end of the stream.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(e) => panic!("{e}"),
        }
    }

    /// Reads the head of a reply: status and length.
    pub fn head(&mut self) -> (u16, Option<usize>) {
        let first = self.line().expect("an answer");
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = None;
        loop {
            let line = self.line().expect("a head").to_ascii_lowercase();
            if line.is_empty() {
                return (status, length);
            }
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = Some(text.parse().unwrap());
            }
        }
    }

    pub fn answer(&mut self) -> (u16, Vec<u8>) {
        let (status, length) = self.head();
        let mut body = vec![0; length.expect("a length")];
        self.0.read_exact(&mut body).unwrap();
        (status, body)
    }

    pub fn call(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: volley\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat());
        self.answer()
    }

    pub fn get(&mut self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, b"");
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_slice(&body).unwrap_or_else(|e| panic!("{path}: {e}: {text}"))
    }

    pub fn post(&mut self, path: &str, body: &impl serde::Serialize) -> (u16, Value) {
        let (status, body) = self.call("POST", path, &serde_json::to_vec(body).unwrap());
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Reads until the stream ends; returns how many bytes came.
    pub fn drain(&mut self) -> usize {
        let mut all = Vec::new();
        match self.0.read_to_end(&mut all) {
            Ok(_) => all.len(),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => all.len(),
            Err(e) => panic!("the stream does not end: {e}"),
        }
    }
}
