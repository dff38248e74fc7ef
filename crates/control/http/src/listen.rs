//! The listening sockets, and the connections.

use crate::control::{Api, Control};
use crate::error::Problem;
use crate::http_error::HttpError;
use crate::limits::Limits;
use crate::model::ApiSettings;
use crate::paths;
use crate::sources::{SourcePlace, Sources};
use crate::stall::Stall;
use crate::tls::{self, Handshakes};
use crate::tokens::Tokens;
use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};
use volley_cli::server::{Place, Socket, client_of};
use volley_model::{Client, Identity, Role, Via};

/// Maximum number of connections for metrics.
const METRICS_CLIENTS: usize = 64;

/// The TCP listener with certificate and tokens.
struct Tcp {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    tokens: Rc<Tokens>,
}

/// Bound sockets.
pub struct HttpServer {
    unix: Socket,
    tcp: Option<Tcp>,
    metrics: Option<TcpListener>,
    handshakes: Option<Handshakes>,
    limits: Limits,
}

impl HttpServer {
    /// Binds the configured sockets, the unix socket at `path`. Must be called inside a tokio runtime.
    pub fn bind(api: &ApiSettings, path: &Path) -> Result<HttpServer, HttpError> {
        let mut tcp = None;
        if let (Some(address), Some(certificate), Some(key), Some(token)) =
            (api.listen, &api.certificate, &api.key, &api.token_file)
        {
            tcp = Some(Tcp {
                listener: listen_on("listen", address)?,
                acceptor: tls::acceptor(certificate, key)?,
                tokens: Rc::new(Tokens::read(token)?),
            });
        }
        let metrics = api.metrics_listen;
        let metrics = metrics.map(|address| listen_on("metrics_listen", address));
        Ok(HttpServer {
            unix: Socket::bind(path)?,
            tcp,
            metrics: metrics.transpose()?,
            handshakes: None,
            limits: Limits::default(),
        })
    }

    /// Whether TLS is served: then [`HttpServer::set_handshakes`] must be called before [`HttpServer::run`].
    pub fn has_tls(&self) -> bool {
        self.tcp.is_some()
    }

    /// Replaces the limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Sets the thread that performs handshakes.
    pub fn set_handshakes(&mut self, handshakes: Handshakes) {
        self.handshakes = Some(handshakes);
    }

    /// Path of the unix socket.
    pub fn path(&self) -> &Path {
        self.unix.path()
    }

    /// Address of the TCP socket, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref()?.listener.local_addr().ok()
    }

    /// Address of the listener for metrics without TLS and tokens, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Serves until the future is dropped. Must run inside a `LocalSet`.
    pub async fn run(self, api: Rc<dyn Api>) {
        let control = Control::start(api);
        let shared = |router, limits| Shared {
            router,
            limits,
            clients: Rc::default(),
        };
        let router = paths::router(control.clone(), self.limits);
        // Connections of one socket do not take the slots of the other.
        let (local, remote) = (
            shared(router.clone(), self.limits),
            shared(router, self.limits),
        );
        let limits = Limits {
            clients: METRICS_CLIENTS,
            ..self.limits
        };
        let metrics = shared(paths::metrics_router(control, limits), limits);
        tokio::join!(
            self.serve_unix(&local),
            self.serve_tcp(&remote),
            self.serve_metrics(&metrics)
        );
    }

    async fn serve_unix(&self, shared: &Shared) {
        loop {
            let (stream, shared) = (self.unix.accept().await, shared.clone());
            tokio::task::spawn_local(async move {
                let place = shared.place();
                let client = client_of(&stream, Via::Http, place.is_some()).await;
                shared.serve(stream, place, None, client).await;
            });
        }
    }

    async fn serve_tcp(&self, shared: &Shared) {
        let (Some(tcp), Some(handshakes)) = (&self.tcp, &self.handshakes) else {
            return;
        };
        let limits = shared.limits;
        let serve = |stream: TcpStream, address: SocketAddr, of_source: SourcePlace| {
            // A handshake occupies a slot, too.
            let Some(place) = shared.place() else {
                warn!(target: "client", via = %Via::Http, from = %address, "refused: {} clients are connected", limits.clients);
                return;
            };
            let (shared, tokens) = (shared.clone(), Rc::clone(&tcp.tokens));
            let client = remote("unknown", address, Identity::Unknown);
            let handshake = handshakes.begin(stream, tcp.acceptor.clone(), limits.take_answer);
            tokio::task::spawn_local(async move {
                match handshake.await {
                    Ok(stream) => {
                        shared
                            .serve(stream, Some(place), Some(tokens), client)
                            .await
                    }
                    Err(error) => {
                        let from = &client.from;
                        debug!(target: "client", via = %Via::Http, %from, "the TLS handshake failed: {error}");
                    }
                }
                drop(of_source);
            });
        };
        accept(&tcp.listener, limits.per_source, serve).await;
    }

    /// Serves metrics to any client, without TLS and tokens.
    async fn serve_metrics(&self, shared: &Shared) {
        let Some(listener) = &self.metrics else {
            return;
        };
        let serve = |stream: TcpStream, address: SocketAddr, of_source: SourcePlace| {
            let (shared, place) = (shared.clone(), shared.place());
            let client = remote("metrics", address, Identity::Token(Role::Read));
            tokio::task::spawn_local(async move {
                shared.serve(stream, place, None, client).await;
                drop(of_source);
            });
        };
        accept(listener, shared.limits.per_source, serve).await;
    }
}

/// A client over TCP.
fn remote(user: &str, address: SocketAddr, identity: Identity) -> Client {
    Client {
        via: Via::Http,
        user: user.to_owned(),
        from: address.to_string(),
        identity,
    }
}

/// Accepts connections over TCP, up to the limit per source.
async fn accept(
    listener: &TcpListener,
    per_source: usize,
    serve: impl Fn(TcpStream, SocketAddr, SourcePlace),
) {
    let sources = Sources::default();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match sources.place(address.ip(), per_source) {
            Some(of_source) => serve(stream, address, of_source),
            None => {
                warn!(target: "client", via = %Via::Http, from = %address, "refused: {per_source} connections are from this source");
            }
        }
    }
}

fn listen_on(setting: &'static str, address: SocketAddr) -> Result<TcpListener, HttpError> {
    let failed = |source| HttpError::Listen {
        setting,
        address,
        source,
    };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(listener).map_err(failed)
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

    /// Serves a connection. With tokens, the token of each request identifies the client.
    async fn serve<S>(
        self,
        mut stream: S,
        place: Option<Place>,
        tokens: Option<Rc<Tokens>>,
        client: Client,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let Client { user, from, .. } = client.clone();
        let Some(_place) = place else {
            warn!(target: "client", via = %Via::Http, user, from, "refused: {} clients are connected", self.limits.clients);
            let text = full(self.limits.clients);
            let goodbye = stream.write_all(text.as_bytes());
            let _ = timeout(Duration::from_millis(500), goodbye).await;
            return;
        };
        let router = self.router;
        debug!(target: "client", via = %Via::Http, user, from, "connected");
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (router, from) = (router.clone(), client.from.clone());
            let client = known(&request, tokens.as_deref(), client.clone());
            async move {
                let Some(client) = client else {
                    warn!(target: "client", via = %Via::Http, from, "refused: the client shows no token of the token file");
                    return Ok(unauthorized().into_response());
                };
                request.extensions_mut().insert(client.clone());
                answered(router, request, &client).await
            }
        });
        let io = TokioIo::new(Stall::new(stream, self.limits.take_answer));
        // An error means that the client has disconnected, or stalled and was disconnected.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.send_head)
            .max_buf_size(64 << 10)
            .serve_connection(io, service)
            .await;
        debug!(target: "client", via = %Via::Http, user, from, "disconnected");
    }
}

/// Answers by the router; a refusal is logged.
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

/// The client of a request: that of the connection, or that of the request's token; `None`: the request has no token.
fn known(request: &Request<Incoming>, tokens: Option<&Tokens>, client: Client) -> Option<Client> {
    let Some(tokens) = tokens else {
        return Some(client);
    };
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
    let token = given.and_then(|given| tokens.find(given))?;
    Some(Client {
        user: format!("token {}", token.name),
        identity: Identity::Token(token.role),
        ..client
    })
}

fn unauthorized() -> Problem {
    let message = "over TCP a token must be shown: send the header `Authorization: Bearer TOKEN`";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// The error for a client when all slots are taken.
fn full(clients: usize) -> String {
    let text = format!(
        "{{\"error\":{{\"code\":\"busy\",\"message\":\"{clients} clients are connected, no more are allowed; try again later\"}}}}\n"
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
