//! Paths, and what they lead to.

use crate::answer::{Answer, Hands, elsewhere, json, json_text, large, value};
use crate::body;
use crate::control::{Change, Control};
use crate::error::Problem;
use crate::limits::Limits;
use crate::{events, metrics, objects, openapi, shows};
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use volley_model::{Client, ConfigAction, ConfigForm, ConfigReply, ConfigSource, Request, Role};

/// The path of metrics.
const METRICS: &str = "/metrics";

/// All paths.
pub(crate) fn router(control: Control, limits: Limits) -> Router {
    let hands = Hands::new(control, limits);
    let all = [
        ("/v1/openapi.json", get(description)),
        ("/v1/show/{name}", get(show)),
        ("/v1/log", get(log)),
        ("/v1/state", get(state)),
        ("/v1/events", get(stream)),
        ("/v1/requests", post(request)),
        ("/v1/transactions", post(transaction)),
        ("/v1/do/{verb}", post(invoke)),
        ("/v1/config/{name}", get(read_config).post(act)),
        (METRICS, get(exposition)),
        ("/v1/{class}", any_of_object()),
        ("/v1/{class}/{*key}", any_of_object()),
    ];
    with_paths(all)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(hands)
}

/// The paths of the listener for metrics.
pub(crate) fn metrics_router(control: Control, limits: Limits) -> Router {
    let hands = Hands::new(control, limits);
    with_paths([(METRICS, get(exposition))])
        .fallback(metrics_only)
        .method_not_allowed_fallback(metrics_only)
        .with_state(hands)
}

fn with_paths<const N: usize>(paths: [(&str, MethodRouter<Hands>); N]) -> Router<Hands> {
    let paths = paths.into_iter();
    paths.fold(Router::new(), |router, (path, methods)| {
        router.route(path, methods)
    })
}

async fn metrics_only() -> Problem {
    let message =
        format!("this listener serves GET {METRICS} and nothing else; use that of api.listen");
    Problem::no_such_path(message)
}

/// The methods of a resource.
fn any_of_object() -> MethodRouter<Hands> {
    get(objects::answer)
        .put(objects::answer)
        .patch(objects::answer)
        .delete(objects::answer)
}

async fn no_such_path(uri: Uri) -> Problem {
    let message = format!(
        "there is no path {}; GET /v1/openapi.json lists them",
        uri.path()
    );
    Problem::no_such_path(message)
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let message = format!(
        "{method} is not for {}; GET /v1/openapi.json says what is",
        uri.path()
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}

async fn description() -> Response {
    json_text(openapi::text())
}

async fn show(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    RawQuery(q): RawQuery,
) -> Answer {
    answer(&hands, client, &name, q).await
}

/// A shorter path of `/v1/show/log`.
async fn log(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    RawQuery(q): RawQuery,
) -> Answer {
    answer(&hands, client, openapi::LOG, q).await
}

async fn answer(hands: &Hands, client: Client, name: &str, parameters: Option<String>) -> Answer {
    let query = shows::read_query(name, parameters.as_deref().unwrap_or_default())?;
    let asked = hands.control.ask_for(client, move |api| {
        Box::pin(async move { api.query(query).await })
    });
    let reply = asked.await??;
    let is_large = reply.is_large();
    let inner = move || reply.json().to_string();
    let text = match is_large {
        true => elsewhere(inner).await?,
        false => inner(),
    };
    Ok(json_text(text))
}

async fn state(State(hands): State<Hands>, Extension(client): Extension<Client>) -> Answer {
    let asked = hands
        .control
        .ask_for(client, |api| Box::pin(async move { api.state().await }));
    large(asked.await??).await
}

async fn stream(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let kinds = events::Kinds::read(parameters.as_deref().unwrap_or_default())?;
    let asked = hands
        .control
        .ask_for(client, |api| Box::pin(async move { api.events() }));
    Ok(events::stream(&headers, asked.await??, kinds))
}

async fn change(hands: &Hands, client: Client, requests: Vec<Request>) -> Result<Change, Problem> {
    let asked = hands.control.ask_for(client, move |api| {
        Box::pin(async move { api.change(requests).await })
    });
    Ok(asked.await??)
}

async fn request(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    body: Body,
) -> Answer {
    let request = value(&hands, body, body::read_request).await?;
    json(&change(&hands, client, vec![request]).await?)
}

async fn transaction(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    body: Body,
) -> Answer {
    let requests = value(&hands, body, body::read_transaction).await?;
    json(&change(&hands, client, requests).await?)
}

/// `POST /v1/do/VERB` with the parameters of the verb as body. The role is judged before the body is read.
async fn invoke(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    let verb = body::verb(&name)?;
    let needed = Role::from(&verb);
    let allowed = hands.control.ask_for(client.clone(), move |api| {
        Box::pin(async move { api.allow(needed) })
    });
    allowed.await??;
    let read = move |bytes: &[u8]| body::read_invocation(&verb, bytes);
    let request = value(&hands, body, read).await?;
    json(&change(&hands, client, vec![request]).await?)
}

async fn carry_out(
    hands: &Hands,
    client: Client,
    action: ConfigAction,
) -> Result<ConfigReply, Problem> {
    let asked = hands.control.ask_for(client, move |api| {
        Box::pin(async move { api.config(action).await })
    });
    Ok(asked.await??)
}

async fn act(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    let action = value(&hands, body, move |bytes| body::read_action(&name, bytes)).await?;
    large(carry_out(&hands, client, action).await?).await
}

/// `GET /v1/config/history`, and `GET /v1/config/export?form=toml&commit=3`, whose answer is text.
async fn read_config(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    RawQuery(parameters): RawQuery,
) -> Answer {
    match &name[..] {
        "history" => json(&carry_out(&hands, client, ConfigAction::History).await?),
        "export" => {
            let (source, form) = exported(parameters.as_deref().unwrap_or_default())?;
            match carry_out(&hands, client, ConfigAction::Show { source, form }).await? {
                ConfigReply::Text { text } => {
                    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
                    Ok((kind, text).into_response())
                }
                other => json(&other),
            }
        }
        _ => {
            let message = format!(
                "GET is not for /v1/config/{name}: GET history or export, POST all other actions"
            );
            Err(Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                message,
            ))
        }
    }
}

fn exported(parameters: &str) -> Result<(ConfigSource, ConfigForm), Problem> {
    let given: Vec<(String, String)> =
        serde_urlencoded::from_str(parameters).map_err(Problem::malformed)?;
    let (mut source, mut form) = (ConfigSource::Running, ConfigForm::default());
    for (key, text) in given {
        match &key[..] {
            "form" => {
                let read = serde_json::from_value(serde_json::Value::String(text));
                form = read.map_err(|e| Problem::malformed(e).at(key))?;
            }
            "commit" => {
                let number = text.parse().map_err(|_| {
                    let message = format!("parameter 'commit' is '{text}', it must be a number");
                    Problem::malformed(message).at(key)
                })?;
                source = ConfigSource::Commit(number);
            }
            _ => {
                let message =
                    format!("/v1/config/export has no parameter '{key}'; it takes: form, commit");
                return Err(Problem::malformed(message).at(key));
            }
        }
    }
    Ok((source, form))
}

pub(crate) async fn exposition(
    State(hands): State<Hands>,
    Extension(client): Extension<Client>,
) -> Answer {
    let asked = hands.control.ask_for(client, |api| {
        Box::pin(async move {
            let figures = metrics::Figures::gather(&*api).await;
            metrics::text(&figures, api.latencies())
        })
    });
    let kind = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((kind, asked.await?).into_response())
}
