//! Consistent hashing: a key always belongs to the same server, and a server that comes or goes
//! moves only its own keys.
//!
//! This is weighted rendezvous hashing (Thaler and Ravishankar 1998; the logarithmic weighting of
//! Schindelhauer and Schomaker 2005). Every server has a number for the key. The highest number
//! wins, and the next highest follows when that server fails. All loops, and all Kirins with the
//! same servers, agree without communication.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Returns the key for `bytes`. It is the same in every process.
pub fn key_of(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Returns the number of a server for a key.
pub(crate) fn draw(key: u64, server: u64, weight: u64) -> f64 {
    let hash = xxh3_64_with_seed(&key.to_le_bytes(), server);
    // A double holds 53 bits. Adding a half avoids 0 and 1.
    let uniform = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -(weight as f64) / uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winner(key: u64, servers: &[(u64, u64)]) -> u64 {
        let best =
            servers.iter().max_by(|a, b| draw(key, a.0, a.1).total_cmp(&draw(key, b.0, b.1)));
        best.unwrap().0
    }

    #[test]
    fn keys_are_spread_by_weight() {
        let servers = [(11, 1), (22, 1), (33, 2)];
        let heavy = (0..40_000).filter(|key| winner(*key, &servers) == 33).count();
        assert!((19_000..21_000).contains(&heavy), "{heavy}");
    }

    #[test]
    fn a_removed_server_moves_only_its_own_keys() {
        let all = [(11, 1), (22, 1), (33, 1), (44, 1)];
        for key in 0..10_000 {
            let before = winner(key, &all);
            let after = winner(key, &all[..3]);
            assert!(before == after || before == 44, "key {key} went from {before} to {after}");
        }
    }
}
