//! Components: content once, versions for ever, one active.

use trax::model::ids::TenantId;
use trax::store::components::{
    NewTrain, NewVersion, Version, activate, active_train, active_trains, add_version,
    content_hash, roll_back, train_of_version, versions, wasm,
};
use trax::store::{StoreError, tenants};

use super::world::World;

fn train(name: &str, declaration: &str) -> NewTrain {
    NewTrain {
        name: name.to_owned(),
        declaration: declaration.to_owned(),
        chain_hash: "hash".to_owned(),
    }
}

async fn deploy(
    w: &World,
    tenant: TenantId,
    component: &str,
    wasm: &[u8],
    trains: &[NewTrain],
) -> Version {
    let new = NewVersion { tenant, component, wasm, trains };
    w.write(async |tx| {
        let version = add_version(tx, &new).await?;
        activate(tx, tenant, version.id).await?;
        Ok(version)
    })
    .await
}

async fn declaration(w: &World, name: &str) -> String {
    w.read(async |tx| active_train(tx, w.tenant, name).await).await.declaration
}

async fn versions_are_kept_and_activating_and_rolling_back_are_one_step(w: World) {
    let first = deploy(&w, w.tenant, "shop", b"one", &[train("buy", "1"), train("old", "1")]).await;
    let second = deploy(&w, w.tenant, "shop", b"two", &[train("buy", "2")]).await;

    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(declaration(&w, "buy").await, "2");
    let mut tx = w.db.read().await.unwrap();
    let gone = active_train(&mut tx, w.tenant, "old").await.unwrap_err();
    assert_eq!(gone.to_string(), "train 'old' not found");
    // A run of the first version goes on with it.
    let kept = train_of_version(&mut tx, w.tenant, first.id, "old").await.unwrap();
    assert_eq!(kept.declaration, "1");
    drop(tx);

    let back = w.write(async |tx| roll_back(tx, w.tenant, "shop").await).await;
    assert_eq!(back, first.id);
    assert_eq!(declaration(&w, "buy").await, "1");
    let forth = w.write(async |tx| roll_back(tx, w.tenant, "shop").await).await;
    assert_eq!(forth, second.id);
    let all = w.read(async |tx| versions(tx, w.tenant, "shop").await).await;
    assert_eq!(
        all.iter().map(|v| (v.version, v.is_active)).collect::<Vec<_>>(),
        [(2, true), (1, false)]
    );
}

async fn content_is_stored_once_and_the_same_deploy_is_the_same_version(w: World) {
    let first = deploy(&w, w.tenant, "shop", b"wasm", &[train("buy", "1")]).await;
    let again = deploy(&w, w.tenant, "shop", b"wasm", &[train("buy", "1")]).await;
    deploy(&w, w.tenant, "copy", b"wasm", &[train("sell", "1")]).await;

    assert_eq!(again.id, first.id);
    let stored = w.rows("SELECT content_hash FROM component ORDER BY created_at").await;
    assert_eq!(stored.iter().filter(|hash| **hash == content_hash(b"wasm")).count(), 1);
    let found = w.read(async |tx| wasm(tx, w.tenant, &first.content_hash).await).await;
    assert_eq!(found, b"wasm");
    let listed = w.read(async |tx| active_trains(tx, w.tenant, "", 10).await).await;
    let names: Vec<_> = listed.iter().map(|train| train.name.as_str()).collect();
    assert_eq!(names, ["buy", "sell", "train"]);
    let page = w.read(async |tx| active_trains(tx, w.tenant, "buy", 1).await).await;
    assert_eq!(page.iter().map(|train| train.name.as_str()).collect::<Vec<_>>(), ["sell"]);
}

async fn two_active_components_cannot_declare_one_train(w: World) {
    deploy(&w, w.tenant, "shop", b"one", &[train("buy", "1")]).await;
    let new = NewVersion {
        tenant: w.tenant,
        component: "rival",
        wasm: b"two",
        trains: &[train("buy", "2")],
    };

    let refused = w
        .try_write(async |tx| {
            let version = add_version(tx, &new).await?;
            activate(tx, w.tenant, version.id).await
        })
        .await
        .unwrap_err();

    assert_eq!(
        refused.to_string(),
        "train 'buy' belongs to the active component 'shop'; rename one of them"
    );
    assert_eq!(declaration(&w, "buy").await, "1");
}

async fn no_tenant_sees_anothers_components(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let mine = deploy(&w, w.tenant, "shop", b"one", &[train("buy", "mine")]).await;
    deploy(&w, other, "shop", b"two", &[train("buy", "theirs")]).await;

    assert_eq!(declaration(&w, "buy").await, "mine");
    let mut tx = w.db.read().await.unwrap();
    assert!(matches!(
        wasm(&mut tx, other, &mine.content_hash).await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        train_of_version(&mut tx, other, mine.id, "buy").await,
        Err(StoreError::NotFound { .. })
    ));
    drop(tx);
    let stolen = w.try_write(async |tx| activate(tx, other, mine.id).await).await;
    assert!(matches!(stolen, Err(StoreError::NotFound { .. })), "{stolen:?}");
    let nothing = w.try_write(async |tx| roll_back(tx, other, "shop").await).await;
    assert!(matches!(nothing, Err(StoreError::NotFound { .. })), "{nothing:?}");
}

on_both!(
    versions_are_kept_and_activating_and_rolling_back_are_one_step,
    content_is_stored_once_and_the_same_deploy_is_the_same_version,
    two_active_components_cannot_declare_one_train,
    no_tenant_sees_anothers_components,
);
