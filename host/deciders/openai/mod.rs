//! The `openai` decider: any chat endpoint of that API which answers in a given JSON schema.

mod probability;
#[cfg(test)]
mod tests;
mod wire;

use crate::deciders::model_client::settings::Settings;
use crate::deciders::model_client::{ClientError, Format, ModelClient};
use crate::deciders::{Request, vetting};
use crate::model::answer::Answer;
use crate::model::failure::Failure;

const FORMAT: Format = Format { name: "chat completion", request_id: "x-request-id" };

/// Asks a chat model. How sure it is comes from the log-probabilities of what it wrote, and where the endpoint gives
/// none from what it says of itself.
#[derive(Debug)]
pub struct OpenAi {
    client: ModelClient,
    asks_log_probabilities: bool,
}

impl OpenAi {
    /// A decider with these settings. Some models refuse to be asked for log-probabilities.
    ///
    /// # Errors
    /// [`ClientError`] says which of them is wrong.
    pub fn new(settings: Settings, asks_log_probabilities: bool) -> Result<Self, ClientError> {
        Ok(Self { client: ModelClient::new(settings, FORMAT)?, asks_log_probabilities })
    }

    /// How it asks.
    pub const fn settings(&self) -> &Settings {
        self.client.settings()
    }

    /// Asks the model. Answers that cannot be read are left out.
    ///
    /// # Errors
    /// A failure that says what the model did.
    pub async fn decide(&self, request: Request<'_>) -> Result<Vec<Answer>, Failure> {
        vetting::check(&request, self.settings())?;
        let model = &self.settings().model;
        let body = wire::request(model, self.asks_log_probabilities, &request);
        let read = |body: &[u8]| wire::answers(body, request.questions);
        self.client.post(request.train, body.to_string(), read).await
    }
}
