//! `trax tenants`, as a person meets it: the real binary, SQLite and Postgres.

use serde_json::Value;

use crate::cli_store::Desk;
use crate::postgres::Database;

fn tenants_are_added_listed_and_changed(desk: &Desk) {
    let added = desk.trax(&["tenants", "add", "acme", "--weight", "3", "--max-active-jobs", "5"]);
    assert_eq!(
        (added.code, added.out.as_str()),
        (0, "added tenant acme: weight 3; active jobs at most: 5; queued jobs at most: any\n"),
        "{}",
        added.err
    );
    let changed = desk.trax(&[
        "tenants",
        "set",
        "acme",
        "--json",
        "--max-active-jobs",
        "none",
        "--max-queued-jobs",
        "0",
    ]);
    let changed = changed.data();
    assert_eq!((&changed["weight"], &changed["max_active_jobs"]), (&3.into(), &Value::Null));
    assert_eq!(changed["max_queued_jobs"], 0);
    let listed = desk.trax(&["tenants", "list", "--json"]).data();
    let names: Vec<_> =
        listed["tenants"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["default", "acme"]);
    let table = desk.trax(&["tenants", "list"]).out;
    assert!(table.contains("acme") && table.lines().count() == 3, "{table}");

    let cases = [
        (&["tenants", "add", "acme"][..], 4, "tenant 'acme' exists already"),
        (&["tenants", "set", "nobody", "--weight", "2"], 3, "tenant 'nobody' not found"),
        (
            &["tenants", "add", "a b"],
            2,
            "'a b' is no name of a tenant: it is 1 to 100 letters, digits, '_', '-' and '.'",
        ),
        (
            &["tenants", "set", "acme", "--weight", "0"],
            2,
            "a weight is a whole number from 1 to 1000, and 0 is none",
        ),
    ];
    for (arguments, code, expected) in cases {
        assert_eq!(desk.trax(arguments).refused(code), expected);
    }
    assert_eq!(desk.trax(&["tenants", "set", "acme", "--max-active-jobs", "-1"]).code, 2);
    assert_eq!(desk.trax(&["tenants", "set", "acme", "--max-active-jobs", "many"]).code, 2);
}

#[test]
fn on_sqlite() {
    tenants_are_added_listed_and_changed(&Desk::new());
}

#[tokio::test]
async fn on_postgres() {
    let database = Database::migrated("cli_tenants").await;
    tenants_are_added_listed_and_changed(&Desk::on(database.url()));
    database.remove().await;
}
