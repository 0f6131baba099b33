//! Whether the deciders of a host can be asked what deployed trains ask: looked at before it starts, so that no run
//! fails of it half-way.

use crate::chain::Chain;
use crate::deciders::Deciders;
use crate::deciders::host::HostDeciders;
use crate::engine::chains::{Active, Chains};
use crate::model::question::Question;
use crate::operations::error::OperationError;
use crate::operations::trains;
use crate::store::{Db, tenants};

/// Refuses a host one of whose deciders would be asked what it cannot be asked. A decider that is missing is no reason:
/// the train's own are not known here, and other hosts may have it.
///
/// # Errors
/// [`OperationError::Invalid`] names every train, decider and problem; those of the store.
pub async fn refuse_unaskable(db: &Db, host: &HostDeciders) -> Result<(), OperationError> {
    let mut tx = db.read().await?;
    let tenants = tenants::list(&mut tx).await?;
    drop(tx);
    let (chains, mut problems) = (Chains::default(), Vec::new());
    for tenant in tenants {
        for train in trains::list(db, tenant.id).await? {
            if let Active::Chain(chain) = chains.read(&train.stored) {
                problems.extend(of_train(&chain, host));
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_unstable();
    problems.dedup();
    Err(OperationError::Invalid(format!(
        "deployed trains ask what deciders of trax.toml cannot be asked; choose others, or change the trains:\n  {}",
        problems.join("\n  ")
    )))
}

/// What deciders of a host cannot be asked of a train's questions, a line each.
pub fn of_train(chain: &Chain, host: &HostDeciders) -> Vec<String> {
    let train = chain.train();
    let mut deciders = Deciders::new(train.default_decider.clone());
    deciders.add_host(host);
    let problem = |(named, questions): (Option<&str>, Vec<Question>)| {
        let questions: Vec<&Question> = questions.iter().collect();
        let (name, decider) = deciders.of_step(named, &questions).ok()?;
        let problem = decider.vet(&questions)?;
        Some(format!("train '{}', decider '{name}': {problem}", train.name))
    };
    chain.askings().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{Draft, about, choice, decide, gate, junction, yes_no};
    use crate::operations::deciders_file;

    /// Q41: what a decider cannot be asked is told before anything runs, with the train, the decider and why.
    #[test]
    fn what_cannot_be_asked_is_told() {
        let team = choice("Team", &["A", "B", "C"]);
        let mut draft = Draft::new().question(team).question(yes_no("Fraud"));
        let (yes, no) = (draft.track("Yes", vec![]), draft.track("No", vec![]));
        let root = vec![
            decide("Order", &["Team"]),
            gate("Fraud", Some(about("Order")), yes, no, None),
            junction("Sell", &["Order"], &["Receipt"]),
        ];
        let chain = draft.root(root).chain();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trax.toml");
        let told = |decisions: &str| {
            let judge = "[deciders.judge]\nkind = 'system-one'\nendpoint = 'http://127.0.0.1:9/answers'\n\
                         model = 'judge-2'\nmax_options = 2\n";
            let key = "api_key_env = 'PATH'\n";
            std::fs::write(&file, format!("{judge}{key}{decisions}")).unwrap();
            of_train(&chain, &deciders_file::read(&file).unwrap())
        };

        // Who is asked is not known here, or answers anything.
        assert_eq!(told(""), [""; 0]);
        assert_eq!(
            told("[decisions]\ndefault = 'judge'\n"),
            ["train 'orders', decider 'judge': 'Team' has 3 options, and it is asked for 2 to 2"]
        );
        assert_eq!(told("[decisions.questions]\nTeam = 'judge'\n").len(), 1);
        assert_eq!(told("[decisions.questions]\nFraud = 'judge'\n"), [""; 0]);
    }
}
