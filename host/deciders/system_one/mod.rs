//! The System One decider: a model that is asked typed questions in a format of their own.

#[cfg(test)]
mod tests;
mod wire;

use crate::deciders::model_client::settings::Settings;
use crate::deciders::model_client::{ClientError, Format, ModelClient};
use crate::deciders::{Request, vetting};
use crate::model::answer::Answer;
use crate::model::failure::Failure;

const FORMAT: Format = Format { name: "System One", request_id: "x-typesafe-request-id" };

/// Asks a model in the System One format.
#[derive(Debug)]
pub struct SystemOne {
    client: ModelClient,
}

impl SystemOne {
    /// A decider with these settings.
    ///
    /// # Errors
    /// [`ClientError`] says which of them is wrong.
    pub fn new(settings: Settings) -> Result<Self, ClientError> {
        Ok(Self { client: ModelClient::new(settings, FORMAT)? })
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
        let body = wire::request(&self.settings().model, &request)?;
        let read = |body: &[u8]| wire::answers(body, request.questions);
        self.client.post(request.train, body, read).await
    }
}
