//! How a model is asked: where, which version, and how patiently.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::deciders::model_client::ClientError;

/// The longest `max_retry_delay`.
pub const MAX_RETRY_DELAY_MAX: Duration = Duration::from_hours(24);

/// The most options or levels that a question can have.
pub const OPTIONS_MAX: usize = 255;

/// A key of an API. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key in a text, without the space around it; `None` when there is nothing else.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    pub(super) fn bearer(&self) -> Result<HeaderValue, ClientError> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).map_err(|_| {
            ClientError("the API key has characters that no header can carry; check it".to_owned())
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(withheld)")
    }
}

/// How a model is asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where requests are posted: HTTPS, or HTTP on loopback.
    pub endpoint: String,
    /// The model, pinned to a version.
    pub model: String,
    /// Whether the model may be a name whose meaning changes.
    pub allows_floating_model: bool,
    /// Sent as a bearer token.
    pub api_key: Option<ApiKey>,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// How often a request is made, the first time included.
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles with each.
    pub retry_delay: Duration,
    /// The longest wait between two attempts.
    pub max_retry_delay: Duration,
    /// The most options or levels of one question.
    pub max_options: usize,
    /// The most questions of one request.
    pub max_questions: usize,
    /// How many requests are under way at once; `None`: any number.
    pub max_concurrent_requests: Option<usize>,
}

impl Settings {
    /// The defaults.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: model.into(),
            allows_floating_model: false,
            api_key: None,
            attempt_timeout: Duration::from_secs(10),
            max_attempts: 3,
            retry_delay: Duration::from_millis(500),
            max_retry_delay: Duration::from_secs(30),
            max_options: OPTIONS_MAX,
            max_questions: 64,
            max_concurrent_requests: None,
        }
    }

    /// The defaults of a Nimble model that the operator serves.
    pub fn nimble(endpoint: impl Into<String>) -> Self {
        Self {
            attempt_timeout: Duration::from_secs(30),
            max_options: 26,
            max_concurrent_requests: Some(4),
            ..Self::new(endpoint, "bespokelabs/Bespoke-Nimble-9B")
        }
    }

    /// Where requests go, when everything is in order.
    ///
    /// # Errors
    /// [`ClientError`] names the setting that is not.
    pub(super) fn check(&self) -> Result<Url, ClientError> {
        let refused = |problem: String| Err(ClientError(problem));
        let is_floating = self.model.to_ascii_lowercase().contains("latest")
            || !self.model.contains(|letter: char| letter.is_ascii_digit());
        if self.model.trim().is_empty() {
            return refused("model: name the model, pinned to a version".to_owned());
        }
        if is_floating && !self.allows_floating_model {
            return refused(format!(
                "model: '{}' is not pinned to a version, so its answers may change unseen; name a version, or set \
                 allow_floating_model = true",
                self.model.escape_debug()
            ));
        }
        if self.attempt_timeout.is_zero() {
            return refused("attempt_timeout: it must be more than nothing".to_owned());
        }
        if self.max_attempts == 0 {
            return refused("max_attempts: there must be at least 1".to_owned());
        }
        if self.max_retry_delay > MAX_RETRY_DELAY_MAX {
            return refused("max_retry_delay: it must be at most 1 day".to_owned());
        }
        if !(2..=OPTIONS_MAX).contains(&self.max_options) {
            return refused(format!("max_options: it must be from 2 to {OPTIONS_MAX}"));
        }
        if self.max_questions == 0 {
            return refused("max_questions: there must be at least 1".to_owned());
        }
        if self.max_concurrent_requests == Some(0) {
            return refused("max_concurrent_requests: there must be at least 1".to_owned());
        }
        endpoint(&self.endpoint)
    }
}

/// The text is not told: it may carry a secret.
fn endpoint(text: &str) -> Result<Url, ClientError> {
    let refused = |problem: &str| Err(ClientError(format!("endpoint: {problem}")));
    let Ok(url) = Url::parse(text) else {
        return refused(
            "it is no URL; write one such as \"https://models.example.com/v1/answers\"",
        );
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refused(
            "it has a user or a password in it; give the key with api_key_env or api_key_file",
        );
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => refused("it must be HTTPS, because only loopback is asked in the clear"),
        _ => refused("it must begin with https:// (or http:// on loopback)"),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::new("https://models.example.com/a", "judge-2");
        change(&mut settings);
        settings.check().map_or_else(|error| error.to_string(), |url| url.to_string())
    }

    /// Q37: the defaults, of System One and of Nimble.
    #[test]
    fn the_defaults_are_those_of_the_table() {
        let of = |settings: &Settings| {
            (
                settings.attempt_timeout.as_secs(),
                settings.max_attempts,
                settings.retry_delay.as_millis(),
                settings.max_retry_delay.as_secs(),
                settings.max_options,
                settings.max_questions,
                settings.max_concurrent_requests,
            )
        };
        let (one, nimble) = (Settings::new("", ""), Settings::nimble(""));
        assert_eq!(of(&one), (10, 3, 500, 30, 255, 64, None));
        assert_eq!(of(&nimble), (30, 3, 500, 30, 26, 64, Some(4)));
        assert_eq!(nimble.model, "bespokelabs/Bespoke-Nimble-9B");
        assert!(!one.allows_floating_model && !nimble.allows_floating_model);
    }

    /// Q37: a model is pinned, an endpoint is HTTPS or loopback, and every number is in its range.
    #[test]
    fn settings_are_checked() {
        let endpoint = |text: &str| problem(|s| s.endpoint = text.to_owned());
        for good in [
            "https://a.example.com/x",
            "http://localhost:8/x",
            "http://127.0.0.9/",
            "http://[::1]:80/",
        ] {
            assert!(endpoint(good).starts_with("http"), "{good}");
        }
        for bad in
            ["", "models", "ftp://localhost/", "http://10.0.0.1/", "http://127.0.0.1.example.com/"]
        {
            assert!(endpoint(bad).starts_with("endpoint: "), "{bad}");
        }
        let secret = endpoint("https://me:hunter2@example.com/");
        assert!(secret.contains("api_key_env") && !secret.contains("hunter2"));

        let model = |text: &str| problem(|s| s.model = text.to_owned());
        for floating in ["judge", "judge-2-latest", "nimble-latest", "Latest-3"] {
            assert!(model(floating).contains("not pinned"), "{floating}");
        }
        assert!(model(" ").starts_with("model: "));
        let allowed = problem(|s| {
            s.model = "judge-latest".to_owned();
            s.allows_floating_model = true;
        });
        assert!(allowed.starts_with("https"));

        let wrong: [fn(&mut Settings); 7] = [
            |s| s.attempt_timeout = Duration::ZERO,
            |s| s.max_attempts = 0,
            |s| s.max_retry_delay = MAX_RETRY_DELAY_MAX + Duration::from_secs(1),
            |s| s.max_options = 1,
            |s| s.max_options = 256,
            |s| s.max_questions = 0,
            |s| s.max_concurrent_requests = Some(0),
        ];
        for change in wrong {
            assert!(!problem(change).starts_with("https"));
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let mut settings = Settings::new("https://example.com", "judge-2");
        settings.api_key = ApiKey::new(" hunter2\n");
        assert!(!format!("{settings:?}").contains("hunter2"));
        let bearer = settings.api_key.as_ref().unwrap().bearer().unwrap();
        assert_eq!(bearer.to_str().unwrap(), "Bearer hunter2");
        assert!(bearer.is_sensitive());
        assert_eq!(ApiKey::new(" \n"), None);
        let unfit = ApiKey::new("hunter\n2").unwrap().bearer().unwrap_err();
        assert!(!unfit.to_string().contains("hunter"));
    }
}
