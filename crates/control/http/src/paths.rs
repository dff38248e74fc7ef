//! Paths and their handlers.

use crate::answer::{Answer, Caller, Hands, elsewhere, json, json_text, large};
use crate::body;
use crate::control::{Change, Control};
use crate::error::Problem;
use crate::limits::Limits;
use crate::shows::read_parameters;
use crate::{events, metrics, objects, openapi, shows};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use volley_model::{ConfigAction, ConfigForm, ConfigReply, ConfigSource, Request, Role};
use volley_object::Verb;

/// The path of the metrics.
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
    Problem::method(message)
}

async fn description() -> Response {
    json_text(openapi::text())
}

async fn show(caller: Caller, Path(name): Path<String>, RawQuery(q): RawQuery) -> Answer {
    answer(&caller, &name, q).await
}

/// Shorter path for `/v1/show/log`.
async fn log(caller: Caller, RawQuery(q): RawQuery) -> Answer {
    answer(&caller, openapi::LOG, q).await
}

async fn answer(caller: &Caller, name: &str, parameters: Option<String>) -> Answer {
    let query = shows::read_query(name, parameters.as_deref().unwrap_or_default())?;
    let asked = caller.ask(|api| Box::pin(async move { api.query(query).await }));
    let reply = asked.await?;
    let is_large = reply.is_large();
    let inner = move || reply.json().to_string();
    let text = match is_large {
        true => elsewhere(inner).await?,
        false => inner(),
    };
    Ok(json_text(text))
}

async fn state(caller: Caller) -> Answer {
    let asked = caller.ask(|api| Box::pin(async move { api.state().await }));
    large(asked.await?).await
}

async fn stream(caller: Caller, RawQuery(parameters): RawQuery, headers: HeaderMap) -> Answer {
    let wanted = read_parameters("/v1/events", parameters.as_deref())?;
    let asked = caller.ask(|api| Box::pin(async move { api.events() }));
    Ok(events::stream(&headers, asked.await?, &wanted))
}

async fn change(caller: &Caller, requests: Vec<Request>) -> Answer {
    let asked = caller.ask(|api| Box::pin(async move { api.change(requests).await }));
    let change: Change = asked.await?;
    json(&change)
}

async fn request(caller: Caller, body: Body) -> Answer {
    let request = caller.value(body, body::read_request).await?;
    change(&caller, vec![request]).await
}

async fn transaction(caller: Caller, body: Body) -> Answer {
    let requests = caller.value(body, body::read_transaction).await?;
    change(&caller, requests).await
}

/// `POST /v1/do/VERB` with the parameters of the verb as body. The role is checked before the body is read.
async fn invoke(caller: Caller, Path(name): Path<String>, body: Body) -> Answer {
    let verb = body::verb(&name)?;
    let needed = Role::from(&verb);
    let allowed = caller.ask(move |api| Box::pin(async move { api.allow(needed) }));
    allowed.await?;
    let read = move |bytes: &[u8]| body::read_invocation(&verb, bytes);
    let request = caller.value(body, read).await?;
    change(&caller, vec![request]).await
}

async fn carry_out(caller: &Caller, action: ConfigAction) -> Result<ConfigReply, Problem> {
    let asked = caller.ask(|api| Box::pin(async move { api.config(action).await }));
    asked.await
}

async fn act(caller: Caller, Path(name): Path<String>, body: Body) -> Answer {
    let read = move |bytes: &[u8]| body::read_action(&name, bytes);
    let action = caller.value(body, read).await?;
    large(carry_out(&caller, action).await?).await
}

/// The configuration that runs, or that of a commit, as text.
#[derive(Verb)]
#[verb(name = "export")]
pub(crate) struct Export {
    /// Form of the text.
    #[verb(default = ConfigForm::Toml)]
    form: ConfigForm,
    /// Number of the commit; without it, what runs.
    commit: Option<u64>,
}

/// `GET /v1/config/history`, and `GET /v1/config/export?form=toml&commit=3`, whose answer is text.
async fn read_config(
    caller: Caller,
    Path(name): Path<String>,
    RawQuery(parameters): RawQuery,
) -> Answer {
    match &name[..] {
        "history" => json(&carry_out(&caller, ConfigAction::History {}).await?),
        "export" => {
            let path = "/v1/config/export";
            let Export { form, commit } = read_parameters(path, parameters.as_deref())?;
            let source = commit.map_or(ConfigSource::Running, ConfigSource::Commit);
            match carry_out(&caller, ConfigAction::Show { source, form }).await? {
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
            Err(Problem::method(message))
        }
    }
}

async fn exposition(caller: Caller) -> Answer {
    let asked = caller.ask(|api| {
        Box::pin(async move {
            let figures = metrics::Figures::gather(&*api).await;
            Ok::<_, Problem>(figures)
        })
    });
    let figures = asked.await?;
    // The page may have a line for each of a million routes.
    let page = elsewhere(move || figures.text()).await?;
    let kind = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((kind, page).into_response())
}
