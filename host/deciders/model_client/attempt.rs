//! One request to a model, and what became of it.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};

use crate::clock::Clock;
use crate::deciders::model_client::{Format, wait};

/// The most that is read of an answer.
pub(super) const BODY_MAX: usize = 4 << 20;

/// The longest request id that is told.
const REQUEST_ID_MAX: usize = 128;

/// Why an attempt gave no answers.
#[derive(Debug)]
pub(super) struct Trouble {
    /// What happened, as it is told.
    pub(super) reason: String,
    /// Whether another attempt may be answered.
    pub(super) is_transient: bool,
    /// How long the model asks to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Trouble {
    pub(super) fn transient(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_transient: true, retry_after: None }
    }

    fn permanent(reason: impl Into<String>) -> Self {
        Self { is_transient: false, ..Self::transient(reason) }
    }
}

/// Sends a request and reads its answer. What the model wrote is never told.
pub(super) async fn send<T>(
    request: RequestBuilder,
    format: Format,
    read: impl Fn(&[u8]) -> Result<T, &'static str>,
) -> Result<T, Trouble> {
    let response = request.send().await.map_err(|error| of_error(&error))?;
    if response.status() != StatusCode::OK {
        return Err(of_status(response.status(), response.headers(), format));
    }
    let malformed = |what: &str| Trouble::transient(format!("the model's answer {what}"));
    if !is_utf_8(response.headers()) {
        return Err(malformed("is in an encoding that cannot be read"));
    }
    let body = body(response).await?;
    read(&body).map_err(malformed)
}

async fn body(mut response: Response) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| of_error(&error))? {
        if body.len() + chunk.len() > BODY_MAX {
            return Err(Trouble::transient(format!(
                "the model's answer is longer than {} MiB",
                BODY_MAX >> 20
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// JSON is UTF-8, unless the header says otherwise.
fn is_utf_8(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return true };
    let Ok(kind) = kind.to_str() else { return false };
    let mut parameters = kind.split(';').skip(1).filter_map(|part| part.split_once('='));
    let charset = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
    charset.is_none_or(|charset| ["utf-8", "utf8", "us-ascii"].contains(&charset.as_str()))
}

fn of_status(status: StatusCode, headers: &HeaderMap, format: Format) -> Trouble {
    let code = status.as_u16();
    let is_transient =
        matches!(code, 408 | 429) || (status.is_server_error() && !matches!(code, 501 | 505));
    let name = status.canonical_reason().map(|name| format!(" {name}")).unwrap_or_default();
    let phrase = phrase(status, format);
    let request = request_id(headers, format).map(|id| format!(" (request {id})"));
    let retry_after = headers.get(RETRY_AFTER).and_then(|header| header.to_str().ok());
    Trouble {
        reason: format!(
            "the model answered {code}{name} ({phrase}){}",
            request.unwrap_or_default()
        ),
        is_transient,
        retry_after: retry_after.and_then(|header| wait::retry_after(header, Clock.unix_micros())),
    }
}

fn phrase(status: StatusCode, format: Format) -> String {
    let phrase = match status.as_u16() {
        400 | 422 => "the request was refused as invalid",
        401 | 403 => "the API key was refused",
        402 => "the account cannot pay for the request",
        404 | 405 => return format!("the endpoint does not answer {} requests", format.name),
        408 | 504 => "the model timed out",
        413 => "the request is too large",
        429 => "the model is throttling requests",
        501 | 505 => "the server does not implement the request",
        529 => "the model is overloaded",
        500..=599 => "the model's server failed",
        _ => "the request was refused",
    };
    phrase.to_owned()
}

/// An id that is not of the plain kind is not told: it could be anything.
fn request_id(headers: &HeaderMap, format: Format) -> Option<&str> {
    let id = headers.get(format.request_id)?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ((1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(is_plain)).then_some(id)
}

fn of_error(error: &reqwest::Error) -> Trouble {
    if error.is_dns() {
        return Trouble::permanent("the model's host name does not resolve");
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return Trouble::permanent(format!("no TLS connection to the model can be made: {tls}"));
    }
    if let Some(io) = find::<std::io::Error>(error) {
        return Trouble::transient(format!("the connection to the model failed: {}", io.kind()));
    }
    if error.is_connect() && cause(error).contains("proxy") {
        return Trouble::permanent("the proxy refused the connection to the model");
    }
    Trouble::transient("the connection to the model broke off")
}

/// The deepest cause of an error, which names neither the URL nor anything that was sent.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The error of this type among the causes. What an I/O error wraps is not its source but itself, so it is looked into.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
