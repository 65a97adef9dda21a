//! Buckets that all machines fill together: a limit on the rate of their requests.
//!
//! A machine decides about each request at once, from a bucket of its own. What it has let pass is
//! added to the bucket on the server behind the back of the requests, and the server says what the
//! bucket lacks by all machines together.

use futures_util::future::try_join_all;

use crate::engine_scripts::COUNT;
use crate::error::OriginError;
use crate::origin::StoreOrigin;

/// The most buckets that one script changes: the server answers nobody else meanwhile.
const BUCKETS_AT_ONCE: usize = 256;

/// How many times its whole content a bucket may lack. That many machines may each let all of it
/// pass before they know of each other.
const MOST_CONTENTS: u64 = 64;

/// The name of a bucket among those of its limit, which is a digest.
pub type BucketName = u128;

impl StoreOrigin {
    /// Adds to buckets of a limit what each lacks more from now on, in microseconds. `limit` is the
    /// name of the limit, without braces. A bucket that lacks `full_micros` is empty.
    ///
    /// Returns what each bucket lacks by now, in microseconds and in the same order. It may be more
    /// than `full_micros`, because machines learn of each other afterwards. Takes one trip for any
    /// number of buckets. After an error, any of them may have been added.
    pub async fn count(
        &self,
        limit: &str,
        full_micros: u64,
        added: &[(BucketName, u64)],
    ) -> Result<Vec<u64>, OriginError> {
        let parts = added.chunks(BUCKETS_AT_ONCE);
        let counted = try_join_all(parts.map(|part| self.count_part(limit, full_micros, part)));
        let counted = counted.await.map_err(|error| self.failed(error))?;
        Ok(counted.concat())
    }

    async fn count_part(
        &self,
        limit: &str,
        full_micros: u64,
        added: &[(BucketName, u64)],
    ) -> Result<Vec<u64>, OriginError> {
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let names = &self.config.names;
        let key_of = |bucket| names.count(limit.as_bytes(), format!("{bucket:032x}").as_bytes());
        let keys: Vec<_> = added.iter().map(|(bucket, _)| key_of(*bucket)).collect();
        // All are in one slot, by the name of the limit.
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let most = full_micros.saturating_mul(MOST_CONTENTS);
        let numbers = std::iter::once(most).chain(added.iter().map(|(_, micros)| *micros));
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let numbers: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
        let lacking = servers.of(first).run(COUNT, &keys, &numbers).await?;
        let converted: Vec<u64> =
            lacking.iter().filter_map(|lacking| u64::try_from(*lacking).ok()).collect();
        if converted.len() != added.len() {
            let count = added.len();
            let message = format!("{lacking:?} of a script for {count} buckets");
            return Err(OriginError::Unexpected(message));
        }
        Ok(converted)
    }
}
