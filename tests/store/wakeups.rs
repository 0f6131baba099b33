//! Wake-ups: told once for each commit, only of what can be dispatched now, and not at all when turned off.

use std::time::Duration;

use sqlx::postgres::PgListener;
use trax::store::queue::{self, NewEntry, When, trigger};
use trax::store::wakeups::Wakeups;
use trax::store::{Db, OpenOptions, open};

use super::world::{World, on_postgres, write};

/// Whether there is news, without waiting for it.
async fn has_news(wakeups: &mut Wakeups) -> bool {
    tokio::select! {
        biased;
        news = wakeups.next() => news.is_some(),
        () = std::future::ready(()) => false,
    }
}

/// J1: a commit that queues something for now tells those who wait in this process, once; a delay or a staged entry
/// does not, until it is brought forward or confirmed.
async fn a_commit_tells_of_what_can_go_now(w: World) {
    let mut news = w.db.wakeups();
    let new = NewEntry::new(w.tenant, "train");
    let later = NewEntry { when: When::After(Duration::from_mins(1)), ..new.clone() };
    let staged = w.enqueue(&NewEntry { is_confirmed: false, ..new.clone() }).await;
    w.enqueue(&later).await;
    let manifest = w.manifest("nightly").await;
    let waits = NewEntry { manifest: Some(manifest), ..later };
    w.enqueue(&waits).await;
    assert!(!has_news(&mut news).await);

    w.enqueue(&new).await;
    w.enqueue(&new).await;
    assert!(has_news(&mut news).await);
    assert!(!has_news(&mut news).await);
    w.write(async |tx| queue::confirm(tx, w.tenant, staged).await).await;
    assert!(has_news(&mut news).await);
    w.write(async |tx| trigger(tx, manifest, Duration::ZERO, false, &new).await).await;
    assert!(has_news(&mut news).await);

    let mut tx = w.db.begin().await.unwrap();
    queue::enqueue(&mut tx, &new).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(!has_news(&mut news).await);
    let mut tx = w.db.begin().await.unwrap();
    let mut part = tx.savepoint().await.unwrap();
    queue::enqueue(&mut part, &new).await.unwrap();
    part.commit().await.unwrap();
    assert!(!has_news(&mut news).await);
    tx.commit().await.unwrap();
    assert!(has_news(&mut news).await);
    assert_eq!(w.db.listen().await.unwrap().is_some(), w.db.is_postgres());
}

on_both!(a_commit_tells_of_what_can_go_now);

async fn entry(db: &Db, w: &World, new: &NewEntry<'_>) {
    write(db, async |tx| queue::enqueue(tx, new).await).await.unwrap();
    let marker = "NOTIFY marker";
    w.sql(marker).await.unwrap();
}

/// J1: other hosts hear of it once for each statement, and of nothing when wake-ups are turned off.
#[test]
fn other_hosts_hear_of_it_unless_it_is_turned_off() {
    on_postgres("other_hosts_hear_of_it", |w| async move {
        let mut listener = PgListener::connect(&w.url).await.unwrap();
        listener.listen_all(["trax_queued_work", "marker"]).await.unwrap();
        let mut heard = async || {
            let mut heard = 0;
            while listener.recv().await.unwrap().channel() == "trax_queued_work" {
                heard += 1;
            }
            heard
        };
        let new = NewEntry::new(w.tenant, "train");
        entry(&w.db, &w, &new).await;
        assert_eq!(heard().await, 1);
        let later = NewEntry { when: When::After(Duration::from_mins(1)), ..new.clone() };
        entry(&w.db, &w, &later).await;
        assert_eq!(heard().await, 0);
        entry(&w.db, &w, &NewEntry { is_confirmed: false, ..new.clone() }).await;
        assert_eq!(heard().await, 0);
        w.sql("UPDATE work_queue SET confirmed_at = now() WHERE confirmed_at IS NULL")
            .await
            .unwrap();
        w.sql("UPDATE work_queue SET status = 'cancelled'").await.unwrap();
        w.sql("NOTIFY marker").await.unwrap();
        assert_eq!(heard().await, 1);
        let many = "INSERT INTO work_queue (tenant_id, external_id, train_name, occurrence_id)
            SELECT 1, CAST(10000000 + i AS TEXT) || '0123456789abcdef01234567', 'train', 'o'
            FROM generate_series(1, 100) i";
        w.sql(many).await.unwrap();
        w.sql("NOTIFY marker").await.unwrap();
        assert_eq!(heard().await, 1);

        let off = OpenOptions { has_wake_ups: false, ..OpenOptions::default() };
        let quiet = open(&w.url, &off).await.unwrap();
        entry(&quiet, &w, &new).await;
        assert_eq!(heard().await, 0);
        assert!(quiet.listen().await.unwrap().is_none());
    });
}
