//! Stores a page that took a while to make: only if nothing newer is there, and if it was not
//! purged since it was begun. A cached response and what belongs to it are written so, too.

use bytes::Bytes;
use kirin_store::{Change, Expires, NewItem, Now, StoreOutcome, StoreRequest};

use crate::error::OriginError;
use crate::near_store::{Begun, NearStore};
use crate::origin::StoreOrigin;
use crate::reading::LoadedItem;
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

    /// Stores an item on the server behind the store, unless the server has the same value for as
    /// long a time. If another machine writes it at the same moment, that one is kept.
    pub async fn store_unless_same(
        &self,
        key: &[u8],
        item: NewItem<'_>,
        now: Now,
    ) -> Result<(), OriginError> {
        let Some(origin) = &self.origin else { return Ok(()) };
        let loaded = origin.load(&[Bytes::copy_from_slice(key)]).await?;
        let Some(loaded) = loaded.first() else { return Ok(()) };
        let is_same = |there: &LoadedItem| {
            there.decoded.value == item.value.as_slice()
                && lives_as_long(there.expires, item.expires)
        };
        if loaded.item.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let content = content_of(&item);
        let version = origin.next_version(loaded.version);
        let condition = Condition::Unchanged { version: loaded.version, made: loaded.made };
        origin.write(&Write { key, content, version, condition }, now).await.map(drop)
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

/// Returns the content of a write for an item of this machine.
fn content_of<'a>(item: &'a NewItem<'_>) -> Content<'a> {
    Content::Item {
        value: item.value.as_slice(),
        flags: item.flags,
        expires: Some(item.expires),
        tags: item.tags,
        chosen_cas: None,
        is_stale: false,
        is_won: false,
    }
}

/// Returns whether what expires at `there` lives as long as what expires at `here`.
fn lives_as_long(there: Expires, here: Expires) -> bool {
    match (there.time(), here.time()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(there), Some(here)) => there >= here,
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
            let content = content_of(item);
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
