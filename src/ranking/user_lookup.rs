//! The users in answers: external ids, names and avatars.
//!
//! They come from the directory. One statement fetches missing users for all waiting callers. The
//! directory is as fresh as the newest round: a round brings every profile that has changed since
//! the revision that the directory had reached.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::{
    Code, Error, Result,
    ranking::{
        batcher::{Batcher, Work},
        directory::{Directory, arena::ProfileRef},
    },
    store::{
        IndexReader,
        index::{ChangedProfiles, StoredProfile},
    },
};

/// Statements that fetch profiles at the same time.
const FETCHES_AT_ONCE: usize = 2;

/// The directory of this instance, and the statements that fill it.
#[derive(Debug, Clone)]
pub(super) struct UserLookup {
    index_reader: IndexReader,
    state: Arc<RwLock<State>>,
    fetches: Arc<Batcher<MissingUsers, Result<Arc<Fetched>>>>,
}

#[derive(Debug)]
struct State {
    directory: Directory,
    /// Epoch of the database that the profiles come from.
    epoch: String,
    /// Every change up to this profile revision is in the directory.
    revision: i64,
    /// While a load fills the directory from an older snapshot: users whose profiles have changed
    /// since it began.
    changed: Option<HashSet<u32>>,
}

/// Users that the directory does not have.
#[derive(Debug, Default)]
struct MissingUsers {
    user_ids: Vec<u32>,
    external_ids: Vec<String>,
}

/// Users that a statement found.
#[derive(Debug, Default)]
struct Fetched {
    epoch: String,
    by_id: HashMap<u32, StoredProfile>,
    by_external_id: HashMap<String, u32>,
}

impl UserLookup {
    pub(super) fn new(index_reader: IndexReader, max_bytes: usize, runtime: Handle, tasks: TaskTracker) -> Self {
        let directory = Directory::new(max_bytes);
        let state = Arc::new(RwLock::new(State { directory, epoch: String::new(), revision: 0, changed: None }));
        Self { index_reader, state, fetches: Batcher::new(FETCHES_AT_ONCE, runtime, tasks) }
    }

    /// Returns the profile revision that the directory has reached in this epoch of the database.
    pub(super) fn revision(&self, epoch: &str) -> i64 {
        let state = self.read();
        if state.epoch == epoch { state.revision } else { 0 }
    }

    /// Returns the bytes of the directory and the number of users in it.
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.read();
        (state.directory.bytes(), state.directory.len())
    }

    /// Sets the memory bound of the directory.
    ///
    /// A lower bound is reached in steps. Between them the lock and the thread are free for others.
    pub(super) async fn set_max_bytes(&self, max_bytes: usize) {
        const STEP: usize = 64 << 10;
        loop {
            {
                let mut state = self.write();
                let least = state.directory.bytes().saturating_sub(STEP);
                state.directory.set_max_bytes(max_bytes.max(least));
                if max_bytes >= least {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Applies the profiles that changed up to a revision.
    ///
    /// `asked` is the revision from which the round listed changes. `changed` is `None` if too many
    /// profiles changed or the revision went back; the directory is then emptied.
    pub(super) fn apply(&self, epoch: &str, asked: i64, revision: i64, changed: Option<Vec<StoredProfile>>) {
        let went_back = changed.is_none() && revision <= asked;
        let is_known = |state: &State| state.epoch == epoch && state.revision >= revision && !went_back;
        if is_known(&self.read()) {
            return;
        }
        let mut state = self.write();
        if is_known(&state) {
            return;
        }
        // A directory that went back lacks changes before `asked`.
        let (true, Some(changed)) = (state.epoch == epoch && state.revision >= asked, changed) else {
            state.directory.clear();
            epoch.clone_into(&mut state.epoch);
            state.revision = revision;
            state.changed = None;
            return;
        };
        state.revision = revision;
        for profile in changed {
            let Ok(user_id) = u32::try_from(profile.id) else { continue };
            if let Some(changed) = &mut state.changed {
                changed.insert(user_id);
            }
            state.directory.put(profile_of(user_id, &profile));
        }
    }

    /// Brings the directory to a profile revision, as a round does.
    pub(super) async fn catch_up(&self, epoch: &str, revision: i64) -> Result<()> {
        let asked = {
            let state = self.read();
            match state.epoch == epoch {
                true if state.revision >= revision => return Ok(()),
                true => state.revision,
                false => 0,
            }
        };
        let ChangedProfiles { epoch: reached, revision: to, profiles } =
            self.index_reader.changed_profiles(asked).await?;
        self.apply(&reached, asked, to, profiles);
        if reached == epoch && to >= revision { Ok(()) } else { Err(Error::Replaced) }
    }

    /// Returns the internal id of each user, `None` for an unknown one. [`Error::Replaced`] if the
    /// directory is of another epoch. Call it after a round.
    pub(super) async fn find(&self, epoch: &str, external_ids: &[String]) -> Result<Vec<Option<u32>>> {
        let mut found: Vec<Option<u32>> = {
            let state = self.read();
            if state.epoch != epoch {
                return Err(Error::Replaced);
            }
            external_ids.iter().map(|id| state.directory.user_id(id)).collect()
        };
        let is_missing = |(_, found): &(&String, &Option<u32>)| found.is_none();
        let missing: Vec<String> =
            external_ids.iter().zip(&found).filter(is_missing).map(|(id, _)| id.clone()).collect();
        if !missing.is_empty() {
            let fetched = self.fetch(MissingUsers { external_ids: missing, ..MissingUsers::default() }).await?;
            if fetched.epoch != epoch {
                return Err(Error::Replaced);
            }
            for (id, found) in external_ids.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = fetched.by_external_id.get(id).copied();
            }
        }
        Ok(found)
    }

    /// Returns the profiles of users in the database of this epoch, in their order.
    /// [`Error::Replaced`] if the directory is of another epoch.
    pub(super) async fn profiles(&self, epoch: &str, user_ids: &[u32]) -> Result<Vec<StoredProfile>> {
        let mut found: Vec<Option<StoredProfile>> = {
            let state = self.read();
            if state.epoch != epoch {
                return Err(Error::Replaced);
            }
            state.directory.profiles(user_ids).map(|profile| profile.as_ref().map(stored)).collect()
        };
        let missing: Vec<u32> =
            user_ids.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(&id, _)| id).collect();
        if !missing.is_empty() {
            let fetched = self.fetch(MissingUsers { user_ids: missing, ..MissingUsers::default() }).await?;
            if fetched.epoch != epoch {
                return Err(Error::Replaced);
            }
            for (id, found) in user_ids.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = fetched.by_id.get(id).cloned();
            }
        }
        let missing = || {
            Error::Internal("a ranking has a player without a user; run `centile verify` to find the damage".to_owned())
        };
        found.into_iter().map(|found| found.ok_or_else(missing)).collect()
    }

    async fn fetch(&self, missing: MissingUsers) -> Result<Arc<Fetched>> {
        let fetch = || Fetch { index_reader: self.index_reader.clone(), state: Arc::clone(&self.state) };
        let fetched = self.fetches.ask(missing, fetch).await;
        fetched.unwrap_or_else(|| {
            Err(Error::retry(Code::Unavailable, "the statement that fetches profiles was cancelled"))
        })
    }

    /// Returns how many of these users the directory contains.
    pub(super) async fn count(&self, mut user_ids: impl Iterator<Item = u32> + Send) -> usize {
        // Count in chunks. A writer that waits for the lock blocks all readers. A task that never
        // yields blocks the connections that this thread serves.
        const AT_ONCE: usize = 4_096;
        let mut found = 0;
        loop {
            let some: Vec<u32> = user_ids.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return found;
            }
            found += self.read().directory.profiles(&some).flatten().count();
            tokio::task::yield_now().await;
        }
    }

    /// Starts a bulk load from a snapshot that is taken afterwards.
    ///
    /// Only one load may run at a time. It ends when the guard is dropped.
    pub(super) fn begin_load(&self) -> LoadGuard<'_> {
        self.write().changed = Some(HashSet::new());
        LoadGuard(self)
    }

    pub(super) fn clear(&self) {
        let mut state = self.write();
        state.directory.clear();
        state.epoch.clear();
        state.revision = 0;
        state.changed = None;
    }

    /// Empties the directory if it belongs to another epoch than a load's snapshot.
    pub(super) fn start_epoch(&self, epoch: &str, revision: i64) {
        let mut state = self.write();
        if state.epoch != epoch {
            state.directory.clear();
            epoch.clone_into(&mut state.epoch);
            state.revision = revision;
        }
    }

    /// Reserves memory for this many more users, as far as the bound allows.
    pub(super) async fn reserve(&self, users: usize) {
        let users = self.read().directory.capacity_for(users);
        for shard in 0..Directory::SHARDS {
            self.write().directory.reserve_shard(shard, users);
            tokio::task::yield_now().await;
        }
    }

    /// Puts users of the snapshot into the directory. Returns `false` if the directory is full, or
    /// was emptied during the load.
    pub(super) fn load(&self, profiles: &mut Vec<StoredProfile>) -> bool {
        let mut state = self.write();
        let State { directory, changed: Some(changed), .. } = &mut *state else { return false };
        for profile in profiles.drain(..) {
            let Ok(user_id) = u32::try_from(profile.id) else { continue };
            if !changed.contains(&user_id) {
                directory.put(profile_of(user_id, &profile));
            }
        }
        !directory.is_full()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a bulk load of the directory.
pub(super) struct LoadGuard<'a>(&'a UserLookup);

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.0.write().changed = None;
    }
}

/// Fetches users that are missing in the directory, for a batch of callers.
struct Fetch {
    index_reader: IndexReader,
    state: Arc<RwLock<State>>,
}

impl Work<MissingUsers, Result<Arc<Fetched>>> for Fetch {
    async fn answer(&mut self, missing: Vec<MissingUsers>) -> Result<Arc<Fetched>> {
        let mut user_ids: Vec<i64> = missing.iter().flat_map(|one| &one.user_ids).map(|&id| i64::from(id)).collect();
        let mut external_ids: Vec<String> = missing.into_iter().flat_map(|one| one.external_ids).collect();
        user_ids.sort_unstable();
        user_ids.dedup();
        external_ids.sort_unstable();
        external_ids.dedup();
        let (epoch, revision, profiles) = self.index_reader.profiles(&user_ids, &external_ids).await?;
        let mut fetched = Fetched { epoch, ..Fetched::default() };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // A statement that began before the newest round may lack its changes.
        let is_fresh = fetched.epoch == state.epoch && revision >= state.revision;
        for profile in profiles {
            let Ok(user_id) = u32::try_from(profile.id) else { continue };
            if is_fresh {
                state.directory.put(profile_of(user_id, &profile));
            }
            fetched.by_external_id.insert(profile.external_id.clone(), user_id);
            fetched.by_id.insert(user_id, profile);
        }
        Ok(Arc::new(fetched))
    }
}

fn profile_of(user_id: u32, profile: &StoredProfile) -> ProfileRef<'_> {
    ProfileRef { user_id, external_id: &profile.external_id, name: &profile.name, avatar: profile.avatar.as_deref() }
}

fn stored(profile: &ProfileRef<'_>) -> StoredProfile {
    StoredProfile {
        id: i64::from(profile.user_id),
        external_id: profile.external_id.to_owned(),
        name: profile.name.to_owned(),
        avatar: profile.avatar.map(str::to_owned),
    }
}
