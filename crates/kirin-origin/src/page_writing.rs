//! Stores a page that took a while to make: only if nothing newer is there, and if it was not
//! purged since it was begun.

use kirin_store::{Change, NewItem, Now, StoreOutcome, StoreRequest};

use crate::error::OriginError;
use crate::near_store::{Begun, NearStore};
use crate::origin::StoreOrigin;
use crate::writing::{Condition, Content, Write, Written};

/// How often a page is written under a greater version.
const TRIES: u32 = 4;

/// Why a page was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// It was purged.
    #[error("its page has been purged since it was asked for")]
    Purged,
    /// It may have been purged.
    #[error("more has been purged since it was asked for than is remembered")]
    PurgesForgotten,
    /// Another one is there.
    #[error("a newer one has been stored since it was asked for")]
    Newer,
    /// The store has no memory for it.
    #[error("there is no room in the store")]
    NoRoom,
    /// The server behind the store has not taken it.
    #[error("{0}")]
    Origin(#[from] OriginError),
}

impl NearStore {
    /// Stores a page that was begun at `begun`. When this returns without an error, the server
    /// behind the store has it, if there is one. Otherwise it does not wait.
    pub async fn store_page(
        &self,
        key: &[u8],
        item: NewItem<'_>,
        begun: &Begun,
        now: Now,
    ) -> Result<(), NotStored> {
        match &self.origin {
            Some(origin) => origin.write_page(key, &item, begun, now).await,
            None => self.store_page_here(key, item, begun, now),
        }
    }

    fn store_page_here(
        &self,
        key: &[u8],
        item: NewItem<'_>,
        begun: &Begun,
        now: Now,
    ) -> Result<(), NotStored> {
        let tags = item.tags;
        let request =
            StoreRequest { unchanged_since: Some(&begun.moment), ..StoreRequest::default() };
        match self.store.store(key, item, &request, now) {
            StoreOutcome::Stored { .. } => Ok(()),
            StoreOutcome::NotStored => {
                Err(match self.store.change_since(&begun.moment, key, tags) {
                    Some(Change::Invalidated) => NotStored::Purged,
                    Some(Change::Unknown) => NotStored::PurgesForgotten,
                    None => NotStored::Newer,
                })
            }
            _ => Err(NotStored::NoRoom),
        }
    }
}

impl StoreOrigin {
    async fn write_page(
        &self,
        key: &[u8],
        item: &NewItem<'_>,
        begun: &Begun,
        now: Now,
    ) -> Result<(), NotStored> {
        let condition = Condition::NotNewer(begun.page.unwrap_or_default());
        let mut after = 0;
        for _ in 0..TRIES {
            let content = Content::Item {
                value: item.value.as_slice(),
                flags: item.flags,
                expires: Some(item.expires),
                tags: item.tags,
                chosen_cas: None,
                is_stale: false,
                is_won: false,
            };
            let version = self.next_version(after);
            match self.write(&Write { key, content, version, condition }, now).await? {
                Written::Done => return Ok(()),
                Written::Conflict { .. } => return Err(NotStored::Newer),
                Written::Purged { .. } => return Err(NotStored::Purged),
                Written::Behind { version } => after = version,
            }
        }
        Err(OriginError::Contended.into())
    }
}
