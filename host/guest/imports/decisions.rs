//! `trax:train/decisions`: questions asked from inside a junction, and the world's interfaces that hold only types.

use crate::guest::bindings::trax::train::decisions::{Answer, Failure, Host, Value};
use crate::guest::bindings::trax::train::{declaration, questions, types};
use crate::guest::convert;
use crate::guest::state::State;
use crate::model::failure;
use crate::model::json::Json;
use crate::model::value;

impl types::Host for State {}
impl declaration::Host for State {}
impl questions::Host for State {}

impl Host for State {
    async fn decide(
        &mut self,
        state: Value,
        keys: Vec<String>,
    ) -> wasmtime::Result<Result<Vec<Answer>, Failure>> {
        let Some(asker) = self.call.asker.clone() else {
            let message = "nobody answers questions here; ask from a junction of a run";
            let refused = failure::Failure::permanent("NobodyAnswers", message);
            return Ok(Err(convert::failure_to_guest(refused)));
        };
        let json = match Json::parse(&state.json) {
            Ok(json) => json.to_string(),
            Err(error) => {
                let message =
                    format!("the state of type '{}' is not JSON: {error}", state.type_name);
                let refused = failure::Failure::permanent("BadState", message);
                return Ok(Err(convert::failure_to_guest(refused)));
            }
        };
        let answered = asker.ask(value::Value::new(state.type_name, json), keys).await;
        Ok(answered
            .map(|answers| answers.into_iter().map(convert::answer_to_guest).collect())
            .map_err(convert::failure_to_guest))
    }
}
