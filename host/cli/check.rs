//! `trax check`: the offline verdict on a component.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::chain::Chain;
use crate::cli::error::CliError;
use crate::cli::output::{FAINT, GOOD, Output, styled};
use crate::cli::{Global, exit, load};
use crate::operations::component_file;

/// Say whether a component would be accepted, and what it declares
#[derive(Debug, Args)]
pub struct Check {
    /// The component's .wasm file
    file: PathBuf,
}

impl Check {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Refused`] with every fault of every train.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        let component = load::component(&self.file, global).await?;
        let chains = component_file::chains(component.trains())
            .map_err(|faults| CliError::Refused { path: self.file, reasons: faults.join("\n") })?;
        if output.is_json {
            let trains: Vec<_> = chains.iter().map(data).collect();
            output.json(&json!({ "component": component.digest(), "trains": trains }))?;
        } else {
            let digest = styled(FAINT, format!("component {}", component.digest()));
            output.line(format!("{}  {digest}", styled(GOOD, "accepted")))?;
            for chain in &chains {
                print(chain, output)?;
            }
        }
        Ok(exit::DONE)
    }
}

fn print(chain: &Chain, output: &mut Output) -> Result<(), CliError> {
    let train = chain.train();
    output.line(format!("\n{}  {} -> {}", train.name, train.input, train.output))?;
    if !train.description.is_empty() {
        output.line(format!("  {}", train.description.escape_debug()))?;
    }
    output.line(styled(FAINT, format!("  chain {}", chain.hash())))?;
    for node in chain.nodes() {
        output.line(format!("  {:<13} {}", node.kind.as_str(), node.id))?;
    }
    Ok(())
}

fn data(chain: &Chain) -> serde_json::Value {
    let train = chain.train();
    let nodes: Vec<_> = chain
        .nodes()
        .iter()
        .map(|node| json!({ "id": node.id, "kind": node.kind.as_str() }))
        .collect();
    json!({
        "name": train.name, "description": train.description, "input": train.input,
        "output": train.output, "deciders": train.deciders, "wants": train.wants,
        "isolation": train.isolation, "queue_only": train.queue_only,
        "chain_hash": chain.hash(), "nodes": nodes,
    })
}
