//! The sockets, and one connection from its first byte to its last.

use crate::control::{Api, Control};
use crate::error::Problem;
use crate::routes;
use crate::sources::Sources;
use crate::stall::Stall;
use crate::tls::{self, Handshakes};
use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::Cell;
use std::convert::Infallible;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};
use volley_cli::server::{Place, ServerError, listen_at};
use volley_model::{Client, EngineSettings, Via};

/// Why the HTTP interface cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Its unix socket cannot.
    #[error(transparent)]
    Socket(#[from] ServerError),
    /// A file of the `[api]` table cannot be used.
    #[error("{}: {why}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The TCP address cannot be listened on.
    #[error("api.listen {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// Bounds that clients meet.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest body in bytes.
    pub body: usize,
    /// Bytes of all bodies that are held at a time.
    pub all_bodies: usize,
    /// Connections at once on the unix socket, and as many over TCP; further ones get 503 and are closed.
    pub clients: usize,
    /// Connections at once from one source over TCP (IPv6: one /64), handshakes included; further ones are closed.
    pub per_source: usize,
    /// Time to send the head of a request, and to think before it.
    pub send_head: Duration,
    /// Time to send the body.
    pub finish_body: Duration,
    /// Longest time without a byte of the answer taken.
    pub take_answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body: 64 << 20,
            all_bodies: 256 << 20,
            clients: 256,
            per_source: 32,
            send_head: Duration::from_secs(30),
            finish_body: Duration::from_secs(30),
            take_answer: Duration::from_secs(10),
        }
    }
}

/// TCP, its certificate and the token.
struct Tcp {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    token: Rc<str>,
    /// What the token is called: the name of its file.
    name: String,
}

/// Bound sockets. The unix socket's file is removed when this is dropped.
pub struct HttpServer {
    unix: UnixListener,
    path: PathBuf,
    tcp: Option<Tcp>,
    handshakes: Option<Handshakes>,
    limits: Limits,
}

impl HttpServer {
    /// Binds what the settings ask for. Must be called inside a tokio runtime.
    pub fn bind(settings: &EngineSettings) -> Result<HttpServer, HttpError> {
        let api = &settings.api;
        let mut tcp = None;
        if let (Some(address), Some(certificate), Some(key), Some(token)) =
            (api.listen, &api.certificate, &api.key, &api.token_file)
        {
            let failed = |source| HttpError::Listen { address, source };
            let listener = std::net::TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            tcp = Some(Tcp {
                listener: TcpListener::from_std(listener).map_err(failed)?,
                acceptor: tls::acceptor(certificate, key)?,
                token: tls::token(token)?.into(),
                name: token
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            });
        }
        let path = settings.http_socket();
        Ok(HttpServer {
            unix: listen_at(&path)?,
            path,
            tcp,
            handshakes: None,
            limits: Limits::default(),
        })
    }

    /// Whether it serves TLS: then [`HttpServer::set_handshakes`] is called before [`HttpServer::run`].
    pub fn has_tls(&self) -> bool {
        self.tcp.is_some()
    }

    /// The thread that makes handshakes.
    pub fn set_handshakes(&mut self, handshakes: Handshakes) {
        self.handshakes = Some(handshakes);
    }

    /// Its unix socket.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The address of its TCP socket, when there is one.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.tcp.as_ref()?.listener.local_addr().ok()
    }

    /// Serves for ever. Must run inside a `LocalSet`.
    pub async fn run(self, api: Rc<dyn Api>) {
        let control = Control::start(api);
        let router = routes::router(control, self.limits);
        let shared = Shared {
            router,
            limits: self.limits,
            clients: Rc::default(),
        };
        // What TCP takes, the unix socket keeps.
        let remote = Shared {
            clients: Rc::default(),
            ..shared.clone()
        };
        tokio::join!(self.serve_unix(&shared), self.serve_tcp(&remote));
    }

    async fn serve_unix(&self, shared: &Shared) {
        loop {
            match self.unix.accept().await {
                Ok((stream, _)) => {
                    let peer = stream.peer_cred().ok();
                    let (uid, pid) = (peer.map(|p| p.uid()), peer.and_then(|p| p.pid()));
                    let client = Client::of_peer(Via::Http, uid, pid);
                    let serve = shared.clone().serve(stream, None, client);
                    drop(tokio::task::spawn_local(serve));
                }
                // Out of file descriptors, most likely: those in use will come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve_tcp(&self, shared: &Shared) {
        let (Some(tcp), Some(handshakes)) = (&self.tcp, &self.handshakes) else {
            return;
        };
        let sources = Sources::default();
        loop {
            let Ok((stream, address)) = tcp.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let limits = shared.limits;
            let Some(of_source) = sources.place(address.ip(), limits.per_source) else {
                warn!(target: "client", via = %Via::Http, from = %address, "refused: {} connections are from this source", limits.per_source);
                continue;
            };
            // A handshake holds a place, too.
            let Some(place) = shared.place() else {
                warn!(target: "client", via = %Via::Http, from = %address, "refused: {} clients are connected", limits.clients);
                continue;
            };
            let (shared, token) = (shared.clone(), Rc::clone(&tcp.token));
            let client = Client {
                via: Via::Http,
                user: format!("token {}", tcp.name),
                from: address.to_string(),
            };
            let handshake = handshakes.begin(stream, tcp.acceptor.clone(), limits.take_answer);
            tokio::task::spawn_local(async move {
                match handshake.await {
                    Ok(stream) => {
                        drop(place);
                        shared.serve(stream, Some(token), client).await;
                    }
                    Err(error) => {
                        let from = &client.from;
                        debug!(target: "client", via = %Via::Http, %from, "the TLS handshake failed: {error}");
                    }
                }
                drop(of_source);
            });
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[derive(Clone)]
struct Shared {
    router: Router,
    limits: Limits,
    clients: Rc<Cell<usize>>,
}

impl Shared {
    fn place(&self) -> Option<Place> {
        Place::take(&self.clients, self.limits.clients)
    }

    async fn serve<S>(self, mut stream: S, token: Option<Rc<str>>, client: Client)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let Client { user, from, .. } = client.clone();
        let Some(_place) = self.place() else {
            warn!(target: "client", via = %Via::Http, user, from, "refused: {} clients are connected", self.limits.clients);
            let text = full(self.limits.clients);
            let goodbye = stream.write_all(text.as_bytes());
            let _ = timeout(Duration::from_millis(500), goodbye).await;
            return;
        };
        let router = self.router;
        debug!(target: "client", via = %Via::Http, user, from, "connected");
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (router, allowed) = (router.clone(), allowed(&request, token.as_deref()));
            request.extensions_mut().insert(client.clone());
            let client = client.clone();
            async move {
                match allowed {
                    true => answered(router, request, &client).await,
                    false => {
                        let Client { user, from, .. } = &client;
                        warn!(target: "client", via = %Via::Http, from, "refused: the client does not show {user}");
                        Ok(unauthorized().into_response())
                    }
                }
            }
        });
        let io = TokioIo::new(Stall::new(stream, self.limits.take_answer));
        // An error is the client's: it went away, or stalled and was cut off.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.send_head)
            .max_buf_size(64 << 10)
            .serve_connection(io, service)
            .await;
        debug!(target: "client", via = %Via::Http, user, from, "disconnected");
    }
}

/// An answer by the router; one that refuses is logged.
async fn answered(
    router: Router,
    request: Request<Incoming>,
    client: &Client,
) -> Result<Response, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = router.oneshot(request).await?;
    let status = response.status().as_u16();
    if status >= 400 {
        let Client { user, from, .. } = client;
        debug!(target: "client", via = %Via::Http, user, from, status, "refused: {method} {path}");
    }
    Ok(response)
}

fn allowed(request: &Request<Incoming>, token: Option<&str>) -> bool {
    let Some(token) = token else {
        return true;
    };
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
    given.is_some_and(|given| tls::same(given, token.as_bytes()))
}

fn unauthorized() -> Problem {
    let message = "over TCP the token must be shown: send the header `Authorization: Bearer TOKEN`";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// What a client reads that finds no place.
fn full(clients: usize) -> String {
    let text = format!(
        "{{\"error\":{{\"code\":\"busy\",\"message\":\"{clients} clients are connected, no more are allowed; try again later\"}}}}\n"
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
