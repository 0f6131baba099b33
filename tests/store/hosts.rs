//! Hosts: alive while they give signs of life.

use std::time::Duration;

use trax::store::hosts::{alive, bury, forget, heartbeat, leave};

use super::world::World;

const LEASE: Duration = Duration::from_secs(30);

async fn a_host_that_gives_no_sign_for_a_lease_is_gone_for_good(w: World) {
    w.advance(Duration::ZERO).await;
    let quiet = w.host("quiet").await.incarnation;
    let lively = w.host("lively").await.incarnation;
    w.advance(Duration::from_secs(20)).await;
    assert!(w.write(async |tx| heartbeat(tx, &lively).await).await);
    w.advance(Duration::from_secs(10)).await;

    let alive_now = w.read(async |tx| alive(tx, LEASE).await).await;
    let gone = w.write(async |tx| bury(tx, LEASE).await).await;

    assert_eq!(alive_now.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["lively"]);
    assert_eq!(gone, std::slice::from_ref(&quiet));
    assert!(!w.write(async |tx| heartbeat(tx, &quiet).await).await);
    assert!(w.write(async |tx| bury(tx, LEASE).await).await.is_empty());
}

async fn a_host_that_left_is_forgotten_after_a_while(w: World) {
    w.advance(Duration::ZERO).await;
    let host = w.host("one").await.incarnation;
    w.write(async |tx| leave(tx, &host).await).await;
    let later = w.advance(Duration::from_mins(1)).await;

    assert!(w.read(async |tx| alive(tx, LEASE * 10).await).await.is_empty());
    assert_eq!(w.write(async |tx| forget(tx, later).await).await, 1);
    assert_eq!(w.write(async |tx| forget(tx, later).await).await, 0);
}

on_both!(
    a_host_that_gives_no_sign_for_a_lease_is_gone_for_good,
    a_host_that_left_is_forgotten_after_a_while,
);
