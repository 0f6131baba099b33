//! Queueing a run of a train that no manifest stands for. It is neither retried nor a dead letter.

use crate::chain::declaration::Train;
use crate::chain::schema::Types;
use crate::model::ids::TenantId;
use crate::model::json::Json;
use crate::model::limits::Limits;
use crate::model::message;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::trains;
use crate::store::enqueue_many::enqueue_many;
use crate::store::queue::{self, Enqueued, NewEntry, When};
use crate::store::{Db, StoreError, Tx, components};

/// The most characters of a subject key.
const SUBJECT_MAX: usize = 512;

/// The most runs that are queued together.
const INPUTS_MAX: usize = 10_000;

/// A run that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The train's name.
    pub train: &'a str,
    /// Its input as JSON; an empty object if none is given.
    pub input: Option<&'a str>,
    /// Brought into the range from 0 to 31.
    pub priority: i16,
    /// When it may be dispatched.
    pub when: When,
}

/// Queues a run of a train.
///
/// # Errors
/// Those of the store, or [`OperationError::Declaration`].
pub async fn enqueue(
    db: &Db,
    tenant: TenantId,
    asked: &Asked<'_>,
) -> Result<Outcome, OperationError> {
    if asked.train.is_empty() {
        return Ok(Outcome::refused(message::TRAIN_NAME_REQUIRED));
    }
    db.write(async |tx| {
        let train = match active(tx, tenant, asked.train).await? {
            Ok(train) => train,
            Err(missing) => return Ok(missing),
        };
        let admitted = match admit(&train, asked.input.unwrap_or("{}")) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(Outcome::refused(refusal)),
        };
        let new = NewEntry {
            input: Some(&admitted.input),
            input_type: Some(&train.input),
            priority: asked.priority,
            when: asked.when,
            subject_key: admitted.subject.as_deref(),
            ..NewEntry::new(tenant, asked.train)
        };
        match queue::enqueue(tx, &new).await? {
            Enqueued::Created { entry, .. } => {
                let done = Outcome::done(message::entry_created(entry.0));
                Ok(done.with_id(entry.0).with_count(1))
            }
            Enqueued::ManifestQueued(entry) | Enqueued::ExternalIdTaken(entry) => {
                let problem = format!("its id is that of work queue entry {entry}");
                Ok(Outcome::refused(message::enqueue_refused(&problem)))
            }
        }
    })
    .await
}

/// What new runs of a train walk, or the refusal that says there is no such train.
async fn active(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    train: &str,
) -> Result<Result<Train, Outcome>, OperationError> {
    match components::active_train(tx, tenant, train).await {
        Ok(stored) => Ok(Ok(trains::declared(&stored)?)),
        Err(StoreError::NotFound { .. }) => {
            Ok(Err(Outcome::missing(message::no_such_train(train))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Queues a run of a train for each of many inputs: all of them, or none if one is refused.
///
/// # Errors
/// Those of the store, or [`OperationError::Declaration`].
pub async fn enqueue_all(
    db: &Db,
    tenant: TenantId,
    asked: &Asked<'_>,
    inputs: &[&str],
) -> Result<Outcome, OperationError> {
    if inputs.len() > INPUTS_MAX {
        return Ok(Outcome::refused(message::too_many_inputs(inputs.len(), INPUTS_MAX)));
    }
    db.write(async |tx| {
        let train = match active(tx, tenant, asked.train).await? {
            Ok(train) => train,
            Err(missing) => return Ok(missing),
        };
        let mut admitted = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.iter().enumerate() {
            match admit(&train, input) {
                Ok(input) => admitted.push(input),
                Err(refusal) => return Ok(Outcome::refused(message::of_input(index, &refusal))),
            }
        }
        let entries: Vec<NewEntry<'_>> = admitted
            .iter()
            .map(|admitted| NewEntry {
                input: Some(&admitted.input),
                input_type: Some(&train.input),
                priority: asked.priority,
                when: asked.when,
                subject_key: admitted.subject.as_deref(),
                ..NewEntry::new(tenant, asked.train)
            })
            .collect();
        let queued = enqueue_many(tx, &entries).await?.len();
        let count = i64::try_from(queued).unwrap_or(i64::MAX);
        Ok(Outcome::done(message::entries_created(count)).with_count(count))
    })
    .await
}

/// An input as its train takes it, and the subject that it is about.
pub(in crate::operations) struct Admitted {
    pub(in crate::operations) input: String,
    pub(in crate::operations) subject: Option<String>,
}

/// Brings an input into the form that its train takes.
///
/// # Errors
/// Why nothing is queued, for the operator.
pub(in crate::operations) fn admit(train: &Train, text: &str) -> Result<Admitted, String> {
    let json = Json::parse(text).map_err(|error| message::invalid_input(&error.to_string()))?;
    let limit = Limits::default().input_bytes;
    let bytes = json.to_string().len();
    if bytes > limit {
        let fault = format!("it has {bytes} bytes, and may have {limit}");
        return Err(message::input_failed(&fault));
    }
    let types = Types::compile(&train.types)
        .map_err(|_| message::input_failed("deploy the component again: its types are wrong"))?;
    let value = types
        .admit_json(&train.input, &json)
        .map_err(|fault| message::input_failed(&fault.to_string()))?;
    let subject = match &train.subject_key {
        Some(pointer) => {
            Some(subject(pointer, &json).map_err(|why| message::enqueue_refused(&why))?)
        }
        None => None,
    };
    Ok(Admitted { input: value.json.to_string(), subject })
}

/// The value that an input has at the pointer, as a key.
fn subject(pointer: &str, input: &Json) -> Result<String, String> {
    let refused = |why: &str| format!("the subject key at '{pointer}' of the input {why}");
    let key = match input.at(pointer) {
        None => return Err(refused("is missing")),
        Some(Json::String(text)) => text.clone(),
        Some(found @ (Json::Number(_) | Json::Bool(_))) => found.to_string(),
        Some(_) => return Err(refused("is no text, number or boolean")),
    };
    if key.trim().is_empty() {
        return Err(refused("is empty"));
    }
    let length = key.chars().count();
    if length > SUBJECT_MAX {
        return Err(refused(&format!("has {length} characters, and may have {SUBJECT_MAX}")));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P5, J18: the subject key is what the input has there, and one that cannot be a key refuses the run.
    #[test]
    fn a_subject_key_is_a_value_of_the_input() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(513));
        let cases = [
            ("/a", r#"{"a":"Eve"}"#, Ok("Eve")),
            ("/a/b~1c/1", r#"{"a":{"b/c":[0,17]}}"#, Ok("17")),
            ("/a", r#"{"a":true}"#, Ok("true")),
            ("", r#""Eve""#, Ok("Eve")),
            ("/a", "{}", Err("is missing")),
            ("/a/01", r#"{"a":[0,1]}"#, Err("is missing")),
            ("/a", r#"{"a":{}}"#, Err("is no text, number or boolean")),
            ("/a", r#"{"a":" "}"#, Err("is empty")),
            ("/a", &long, Err("has 513 characters, and may have 512")),
        ];
        for (pointer, input, expected) in cases {
            let found = subject(pointer, &Json::parse(input).unwrap());
            match expected {
                Ok(key) => assert_eq!(found.as_deref(), Ok(key), "{input}"),
                Err(why) => assert!(found.unwrap_err().ends_with(why), "{input}"),
            }
        }
    }
}
