//! TCP with TLS and the operator's certificate. A handshake needs milliseconds for signatures, and any client can begin one: a
//! separate thread performs them, so that they do not delay requests.

use crate::http_error::HttpError;
use crate::model::ApiSettings;
use crate::tokens::check_token;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Maximum size of a file with certificates or a key, in bytes.
const MAX_PEM: u64 = 1 << 20;

pub(crate) fn wrong(file: &Path, why: impl std::fmt::Display) -> HttpError {
    HttpError::File {
        file: file.to_owned(),
        why: why.to_string(),
    }
}

/// Reads certificate and key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, HttpError> {
    let pem = volley_file::read(certificate, MAX_PEM).map_err(|e| wrong(certificate, e))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|e| wrong(certificate, format!("no certificate: {e}")))?;
    let pem = volley_file::read_private(key, MAX_PEM).map_err(|e| wrong(key, e))?;
    let private = PrivateKeyDer::from_pem_slice(&pem);
    let private = private.map_err(|e| wrong(key, format!("no private key: {e}")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|e| wrong(certificate, format!("it does not go with the key: {e}")))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Checks the files of the `[api]` table like a start, without listening.
pub fn check_files(api: &ApiSettings) -> Result<(), HttpError> {
    if let (Some(certificate), Some(key)) = (&api.certificate, &api.key) {
        acceptor(certificate, key)?;
    }
    api.token_file.as_deref().map_or(Ok(()), check_token)
}

/// The thread that performs handshakes. Dropping the value ends the thread.
pub struct Handshakes {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Handshakes {
    /// Starts the thread. It has the capabilities of the calling thread.
    pub fn start() -> io::Result<Handshakes> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("volley-tls".into());
        thread.spawn(move || {
            let _ = runtime.block_on(ended);
        })?;
        Ok(Handshakes { handle, _end: end })
    }

    /// Performs one handshake with a time limit.
    pub(crate) fn begin(
        &self,
        stream: TcpStream,
        acceptor: TlsAcceptor,
        limit: Duration,
    ) -> impl Future<Output = io::Result<TlsStream<TcpStream>>> + 'static {
        // A tokio socket belongs to the thread that polls it.
        let stream = stream.into_std();
        let work = async move {
            let stream = TcpStream::from_std(stream?)?;
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            timeout(limit, acceptor.accept(stream))
                .await
                .map_err(late)?
        };
        let work = self.handle.spawn(work);
        async move { work.await.map_err(io::Error::other)? }
    }
}
