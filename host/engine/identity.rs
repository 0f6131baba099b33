//! Who a host is, as its runs say it: the environment it runs in, and which one it is there.

use std::collections::BTreeMap;

use crate::model::ids::Incarnation;
use crate::store::hosts::Host;

/// A variable that only an environment has, the environment, and the variable that says which one the host is.
const ENVIRONMENTS: [(&str, &str, &str); 4] = [
    ("AWS_LAMBDA_FUNCTION_NAME", "lambda", "AWS_LAMBDA_LOG_STREAM_NAME"),
    ("ECS_CONTAINER_METADATA_URI_V4", "ecs", "HOSTNAME"),
    ("KUBERNETES_SERVICE_HOST", "kubernetes", "HOSTNAME"),
    ("WEBSITE_SITE_NAME", "azure-app-service", "WEBSITE_INSTANCE_ID"),
];

/// What a host does besides answering operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// It queues what is due. One of all hosts does it at a time.
    pub scheduler: bool,
    /// It takes up what is queued.
    pub worker: bool,
}

impl Default for Roles {
    /// Everything.
    fn default() -> Self {
        Self { scheduler: true, worker: true }
    }
}

/// What an operator says of a host in place of what it finds out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// The machine's name.
    pub name: Option<String>,
    /// Where it runs.
    pub environment: Option<String>,
    /// Which one it is there.
    pub instance_id: Option<String>,
    /// What else is to be known of it.
    pub labels: BTreeMap<String, String>,
}

impl Stated {
    /// States it of a host.
    pub fn set(self, host: &mut Host) {
        let Self { name, environment, instance_id, labels } = self;
        host.name = name.unwrap_or_else(|| std::mem::take(&mut host.name));
        host.environment = environment.unwrap_or_else(|| std::mem::take(&mut host.environment));
        host.instance_id = instance_id.unwrap_or_else(|| std::mem::take(&mut host.instance_id));
        if !labels.is_empty() {
            host.labels = serde_json::json!(labels).to_string();
        }
    }
}

/// A host by what its machine and the variables of its process say.
pub fn detect(
    incarnation: Incarnation,
    machine: &str,
    process: u32,
    variable: impl Fn(&str) -> Option<String>,
) -> Host {
    let stated = |name: &str| variable(name).filter(|value| !value.is_empty());
    let found = ENVIRONMENTS.iter().find(|(sign, ..)| stated(sign).is_some());
    let of_the_process = || format!("{machine}-{process}");
    let (environment, instance_id) = match found {
        None => ("server", of_the_process()),
        Some((_, name, which)) => (*name, stated(which).unwrap_or_else(of_the_process)),
    };
    Host {
        incarnation,
        name: machine.to_owned(),
        environment: environment.to_owned(),
        instance_id,
        labels: "{}".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables, and the environment and instance that they give away.
    type Case<'c> = (&'c [(&'c str, &'c str)], &'c str, &'c str);

    fn found(variables: &[(&str, &str)]) -> Host {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        detect(Incarnation("i".to_owned()), "box", 7, variable)
    }

    /// W26: the first environment that gives itself away is the host's, and what an operator states wins.
    #[test]
    fn a_host_knows_where_it_runs() {
        let lambda = ("AWS_LAMBDA_FUNCTION_NAME", "f");
        let cases: [Case<'_>; 8] = [
            (&[], "server", "box-7"),
            (&[("HOSTNAME", "pod")], "server", "box-7"),
            (&[lambda, ("AWS_LAMBDA_LOG_STREAM_NAME", "s")], "lambda", "s"),
            (&[("ECS_CONTAINER_METADATA_URI_V4", "u"), ("HOSTNAME", "h")], "ecs", "h"),
            (&[("KUBERNETES_SERVICE_HOST", "k"), ("HOSTNAME", "pod")], "kubernetes", "pod"),
            (&[("KUBERNETES_SERVICE_HOST", "")], "server", "box-7"),
            (&[("WEBSITE_SITE_NAME", "w"), ("WEBSITE_INSTANCE_ID", "9")], "azure-app-service", "9"),
            (&[("KUBERNETES_SERVICE_HOST", "k"), ("HOSTNAME", "p"), lambda], "lambda", "box-7"),
        ];
        for (variables, environment, instance) in cases {
            let host = found(variables);
            let shown = (host.name.as_str(), host.environment.as_str(), host.instance_id.as_str());
            assert_eq!(shown, ("box", environment, instance), "{variables:?}");
            assert_eq!(host.labels, "{}");
        }

        let mut host = found(&[("KUBERNETES_SERVICE_HOST", "k"), ("HOSTNAME", "pod")]);
        let labels = BTreeMap::from([("rack".to_owned(), "b \"2\"".to_owned())]);
        Stated { environment: Some("lab".to_owned()), labels, ..Stated::default() }.set(&mut host);
        let shown = (host.name.as_str(), host.environment.as_str(), host.instance_id.as_str());
        assert_eq!(shown, ("box", "lab", "pod"));
        assert_eq!(host.labels, r#"{"rack":"b \"2\""}"#);
    }
}
