//! `trax serve`, as an operator starts it and asks it.

use reqwest::Client;
use rustix::process::Signal;
use serde_json::Value;

use crate::cli_store::{Desk, Said};
use crate::processes::host::HostProcess;
use crate::processes::site::Site;
use crate::store::world::runtime;

/// What the server gives to a document of the bearer of a token: a status, and what it says.
fn asked(url: &str, token: &str, document: &str) -> (u16, Value) {
    runtime().block_on(async {
        // Whoever was first installed the same one.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = Client::builder().no_proxy().build().unwrap();
        let body = serde_json::json!({ "query": document }).to_string();
        let request = client.post(format!("{url}/graphql")).bearer_auth(token).body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    })
}

fn token(desk: &Desk, name: &str, role: &str) -> String {
    let made = Said::by(&mut desk.command(&["--json", "tokens", "create", name, "--role", role]));
    made.data()["token"].as_str().unwrap().to_owned()
}

/// A server runs what is queued through it, answers the bearers of tokens and nobody else, and ends when it is told to.
fn a_server_runs_and_answers_until_it_is_told_to_end(site: &Site) {
    let desk = site.desk("");
    desk.guest("hello");
    let deployed = Said::by(&mut desk.command(&["--json", "deploy", "hello.wasm"]));
    deployed.data();
    let (operator, viewer) = (token(&desk, "ops", "operator"), token(&desk, "eyes", "viewer"));
    let mut server = HostProcess::start_command(&desk, "serve", &["--listen", "127.0.0.1:0"]);
    let serving = server.wait_for("where it serves", |line| line["event"] == "serving");
    let url = serving["url"].as_str().unwrap();

    let queue = r#"mutation { operations { workQueue {
        queueTrain(trainName: "hello", inputJson: "{\"name\":\"Ada\"}") { success message } } } }"#;
    let (status, answer) = asked(url, &viewer, queue);
    assert_eq!((status, &answer["errors"][0]["message"]), (200, &Value::from("Not authorized.")));
    let (status, answer) = asked(url, &operator, queue);
    let told = &answer["data"]["operations"]["workQueue"]["queueTrain"];
    assert_eq!((status, &told["success"]), (200, &Value::Bool(true)), "{answer}");
    site.wait_for_rows("SELECT train_state FROM metadata", &["completed"]);
    let (_, answer) = asked(url, &viewer, "{ operations { executions { items { trainState } } } }");
    let listed = &answer["data"]["operations"]["executions"]["items"];
    assert_eq!(*listed, serde_json::json!([{ "trainState": "completed" }]));

    Said::by(&mut desk.command(&["--json", "tokens", "revoke", "ops"])).data();
    assert_eq!(asked(url, &operator, queue).0, 401);
    let listed = Said::by(&mut desk.command(&["--json", "tokens", "list"])).data();
    assert_eq!(listed["tokens"].as_array().map(Vec::len), Some(2));
    assert!(
        listed["tokens"][1]["revoked_at"].is_string()
            && listed["tokens"][0]["revoked_at"].is_null()
    );
    server.signal(Signal::INT);
    assert_eq!(server.ended(), Some(0));
}

process_cases!(a_server_runs_and_answers_until_it_is_told_to_end);

#[test]
fn an_address_beyond_this_machine_is_not_served_in_the_clear() {
    let desk = Desk::new();
    let open = Said::by(&mut desk.command(&["serve", "--listen", "0.0.0.0:0"]));
    assert!(
        open.refused(2).ends_with("say --behind-proxy, or listen on 127.0.0.1"),
        "{}",
        open.err
    );
    let nobody = Said::by(&mut desk.command(&["serve", "--no-auth", "--listen", "0.0.0.0:0"]));
    assert!(nobody.refused(2).contains("leave --no-auth out"), "{}", nobody.err);
    let role = Said::by(&mut desk.command(&["tokens", "create", "ci", "--role", "root"]));
    assert_eq!(role.code, 2, "{}", role.err);
    assert!(role.err.contains("it is viewer, operator, author or admin"), "{}", role.err);
}
