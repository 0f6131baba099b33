//! Asks a model over HTTP: one `POST` per attempt, retried while another try may be answered.
//!
//! Redirects are never followed, bodies are bounded, and neither the key nor what the model wrote is ever told.

mod attempt;
pub mod settings;
#[cfg(test)]
pub(in crate::deciders) mod tests;
mod wait;

use std::fmt;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::clock::{self, Clock};
use crate::deciders::model_client::attempt::Trouble;
use crate::deciders::model_client::settings::Settings;
use crate::guest::context::BoxFuture;
use crate::model::failure::Failure;

/// The name of the failure of a run whose model gave no answers.
pub const MODEL_FAILED: &str = "DecisionModelFailed";

/// What differs between the formats that models are asked in.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The format's requests, for messages: `System One`.
    pub name: &'static str,
    /// The header in which an answer names its request.
    pub request_id: &'static str,
}

/// A client cannot be made from these settings.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ClientError(pub(super) String);

type Pause = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// Asks one model.
pub struct ModelClient {
    settings: Settings,
    format: Format,
    endpoint: Url,
    client: reqwest::Client,
    slots: Option<Semaphore>,
    pause: Pause,
    random: fn() -> f64,
}

impl ModelClient {
    /// A client for a model.
    ///
    /// # Errors
    /// [`ClientError`] says which setting is wrong.
    pub fn new(settings: Settings, format: Format) -> Result<Self, ClientError> {
        let endpoint = settings.check()?;
        let client = client(&settings, &endpoint)?;
        let slots = settings.max_concurrent_requests.map(Semaphore::new);
        let pause: Pause = Arc::new(|pause| Box::pin(Clock.sleep(pause)));
        Ok(Self { settings, format, endpoint, client, slots, pause, random })
    }

    /// How it asks.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Posts a request and reads the answer of the model, in as many attempts as it takes and may take.
    ///
    /// # Errors
    /// A failure that names the train and what the model did, in the class that this has.
    pub async fn post<T>(
        &self,
        train: &str,
        body: String,
        read: impl Fn(&[u8]) -> Result<T, &'static str> + Send + Sync,
    ) -> Result<T, Failure> {
        let mut attempt: u32 = 1;
        loop {
            let trouble = match self.attempt(body.clone(), &read).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let told = |reason: String| told(train, &reason, attempt);
            if !trouble.is_transient {
                return Err(Failure::permanent(MODEL_FAILED, told(trouble.reason)));
            }
            if attempt >= self.settings.max_attempts {
                return Err(Failure::transient(MODEL_FAILED, told(trouble.reason)));
            }
            let after =
                wait::before_retry(&self.settings, attempt, trouble.retry_after, (self.random)());
            let Some(pause) = after else {
                let reason =
                    format!("{}; it asks for more time than is waited for", trouble.reason);
                return Err(Failure::transient(MODEL_FAILED, told(reason)));
            };
            tracing::warn!(
                train,
                attempt,
                ?pause,
                "a decision model is asked again: {}",
                trouble.reason
            );
            (self.pause)(pause).await;
            attempt = attempt.saturating_add(1);
        }
    }

    /// The slot is held for one attempt, and its time begins when the slot is there.
    async fn attempt<T>(
        &self,
        body: String,
        read: impl Fn(&[u8]) -> Result<T, &'static str>,
    ) -> Result<T, Trouble> {
        let _slot = match &self.slots {
            Some(slots) => slots.acquire().await.ok(),
            None => None,
        };
        let sent = self.client.post(self.endpoint.clone()).body(body);
        let answered = attempt::send(sent, self.format, read);
        Clock
            .timeout(self.settings.attempt_timeout, answered)
            .await
            .unwrap_or_else(|_| Err(Trouble::transient("the model did not answer in time")))
    }
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The message of a run whose model gave no answers.
pub fn told(train: &str, reason: &str, attempts: u32) -> String {
    let attempts =
        if attempts > 1 { format!(", after {attempts} attempts") } else { String::new() };
    format!("The decision model could not answer train '{train}': {reason}{attempts}.")
}

fn client(settings: &Settings, endpoint: &Url) -> Result<reqwest::Client, ClientError> {
    static PROVIDER: Once = Once::new();
    // Whoever embeds this host may have chosen a provider already; that one is as good.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("application/json"));
    if let Some(key) = &settings.api_key {
        headers.insert(AUTHORIZATION, key.bearer()?);
    }
    let mut builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("trax/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers);
    if endpoint.scheme() == "http" {
        // Nothing is verified on loopback, so a machine without certificates can ask there.
        builder = builder.no_proxy().tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        ClientError(format!("no HTTPS client can be made: {}", attempt::cause(&error)))
    })
}

/// From 0 to 1. Without randomness all hosts wait alike, which is worse but no fault.
fn random() -> f64 {
    let bytes = clock::random::<4>().unwrap_or([128; 4]);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}
