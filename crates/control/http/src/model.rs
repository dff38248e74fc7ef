//! The table `[api]` of the file.

use std::net::SocketAddr;
use std::path::PathBuf;
use volley_object::{Class, DefinitionError, FieldError, Object, refuse};

/// The HTTP interface: where it is served.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "api", file = "[api]", startup, check = ApiSettings::check)]
pub struct ApiSettings {
    /// Unix socket; without one, that of `volley ctl` with the ending `.http.sock`.
    #[object(example = "/run/volley/http.sock")]
    pub socket: Option<PathBuf>,
    /// Address and port of TCP, served with TLS and tokens only: needs `certificate`, `key` and `token_file`.
    #[object(example = "192.0.2.1:8443")]
    pub listen: Option<SocketAddr>,
    /// Certificate chain, a PEM file.
    #[object(example = "/etc/volley/tls/cert.pem")]
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate, a PEM file.
    #[object(example = "/etc/volley/tls/key.pem")]
    pub key: Option<PathBuf>,
    /// File with the tokens of clients over TCP, of 16 bytes or more: lines of NAME ROLE TOKEN, or one token alone.
    #[object(example = "/etc/volley/api.token")]
    pub token_file: Option<PathBuf>,
    /// Address and port that serves `GET /metrics` to any client, without TLS and token.
    #[object(example = "127.0.0.1:9101")]
    pub metrics_listen: Option<SocketAddr>,
}

impl ApiSettings {
    /// TCP requires TLS and a token.
    fn check(&self) -> Result<(), FieldError> {
        let files = [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("token_file", &self.token_file),
        ];
        let given = files.iter().find(|(_, file)| file.is_some());
        let all = files.iter().all(|(_, file)| file.is_some());
        match (self.listen, given) {
            (Some(listen), _) if !all => refuse(
                "listen",
                format!(
                    "{listen} is served with TLS and a token only: set certificate, key and token_file as well"
                ),
            ),
            (None, Some((name, _))) => {
                refuse(name, "is for TCP: set listen as well, or leave it away")
            }
            _ => Ok(()),
        }
    }
}

/// Registers the settings of the interface.
pub fn classes() -> Result<Class, DefinitionError> {
    ApiSettings::class()
}
