//! Capacity: what limits leave room for. Runs are counted once for each pass, and hosts take turns at passes until
//! their transaction ends, so that limits are hard: no two hosts fill the same place.

use std::collections::BTreeMap;

use super::db::{LockKey, Tx, on};
use super::error::StoreError;
use super::runs;
use crate::model::ids::{GroupId, TenantId};

/// Limits that the store does not keep.
#[derive(Debug, Clone, Copy, Default)]
pub struct CapacityLimits<'a> {
    /// How many runs may be active on all hosts together; `None`: any number.
    pub max_active_jobs: Option<usize>,
    /// How many entries of one manifest group a pass takes; `None`: any number.
    pub group_limit: Option<usize>,
    /// Trains whose runs fill no place.
    pub excluded: &'a [String],
}

/// What limits leave room for.
#[derive(Debug, Clone, Default)]
pub struct Capacity {
    max_active_jobs: Option<usize>,
    group_limit: Option<usize>,
    max_of_tenant: BTreeMap<TenantId, usize>,
    active: usize,
    active_of_tenant: BTreeMap<TenantId, usize>,
    active_of_group: BTreeMap<GroupId, usize>,
    /// Of this pass.
    taken_of_group: BTreeMap<GroupId, usize>,
}

impl Capacity {
    /// Counts what is active, parked runs left out, and keeps other hosts from claiming until the transaction ends.
    pub async fn count(tx: &mut Tx<'_>, limits: CapacityLimits<'_>) -> Result<Self, StoreError> {
        tx.lock(LockKey::Claim).await?;
        let sql = "SELECT id, max_active_jobs FROM tenant WHERE max_active_jobs IS NOT NULL";
        let of_tenants: Vec<(TenantId, i32)> = on!(tx, |c| sqlx::query_as(sql).fetch_all(c))?;
        let max = |max: i32| usize::try_from(max).unwrap_or(0);
        let mut capacity = Self {
            max_active_jobs: limits.max_active_jobs,
            group_limit: limits.group_limit,
            max_of_tenant: of_tenants.into_iter().map(|(id, most)| (id, max(most))).collect(),
            ..Self::default()
        };
        for (tenant, group, count) in runs::active(tx, limits.excluded).await? {
            let count = usize::try_from(count).unwrap_or(0);
            capacity.active += count;
            *capacity.active_of_tenant.entry(tenant).or_default() += count;
            if let Some(group) = group {
                *capacity.active_of_group.entry(group).or_default() += count;
            }
        }
        Ok(capacity)
    }

    /// How many more runs of a tenant may be active, as far as all hosts and the tenant are concerned.
    pub fn room(&self, tenant: TenantId) -> usize {
        let left = |max: Option<usize>, active: usize| {
            max.map_or(usize::MAX, |max| max.saturating_sub(active))
        };
        let active = self.active_of_tenant.get(&tenant).copied().unwrap_or(0);
        let of_tenant = left(self.max_of_tenant.get(&tenant).copied(), active);
        of_tenant.min(left(self.max_active_jobs, self.active))
    }

    /// Whether a group, limited to so many active runs, has room for one more.
    pub(super) fn has_room_in(&self, group: GroupId, max: Option<i32>) -> bool {
        let active = self.active_of_group.get(&group).copied().unwrap_or(0);
        let taken = self.taken_of_group.get(&group).copied().unwrap_or(0);
        self.group_limit.is_none_or(|most| taken < most)
            && max.is_none_or(|max| active < usize::try_from(max).unwrap_or(0))
    }

    /// Fills a place.
    pub(super) fn take(&mut self, tenant: TenantId, group: Option<GroupId>) {
        self.active += 1;
        *self.active_of_tenant.entry(tenant).or_default() += 1;
        if let Some(group) = group {
            *self.active_of_group.entry(group).or_default() += 1;
            *self.taken_of_group.entry(group).or_default() += 1;
        }
    }

    /// Frees a place that was filled in this pass.
    pub(super) fn give_back(&mut self, tenant: TenantId, group: Option<GroupId>) {
        let of_group = group.and_then(|group| self.active_of_group.get_mut(&group));
        let of_tenant = self.active_of_tenant.get_mut(&tenant);
        for count in of_group.into_iter().chain(of_tenant).chain([&mut self.active]) {
            *count = count.saturating_sub(1);
        }
    }
}
