//! The names of shared limits on the origin. All machines with the same configuration have the same
//! names, also after a reload. Two limits that differ never have the same one.

use std::collections::HashMap;
use std::sync::Arc;

use kirin_origin::StoreOrigin;
use sha2::{Digest, Sha256};

use super::rate_limit::RateLimit;
use super::settings::{GatewayConfig, RouteConfig};

impl GatewayConfig {
    /// Gives each shared limit its name: a digest of its site, of its route and of what it allows.
    /// Of several that agree in all of that, each has its number in it.
    pub fn name_shared_limits(&self) {
        let mut counts: HashMap<[u8; 32], u64> = HashMap::new();
        for (site, route, limit) in self.rate_limits() {
            if let Some(sharing) = &limit.sharing {
                let label = self.site_label(site).unwrap_or_default();
                let digest = digest_of(&label, route, limit);
                let count = counts.entry(digest).or_default();
                let numbered = Sha256::new().chain_update(digest).chain_update(count.to_le_bytes());
                *count += 1;
                let digest: [u8; 32] = numbered.finalize().into();
                let number = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                sharing.set_name(format!("{number:016x}"));
            }
        }
    }

    /// Lets the shared limits count on an origin from now on.
    pub fn share_limits(&self, origin: &Arc<StoreOrigin>) {
        let sharing = self.rate_limits().filter_map(|(_, _, limit)| limit.sharing.as_ref());
        sharing.for_each(|sharing| sharing.set_origin(origin));
    }

    /// Returns all limits on rates, with the indexes of their sites and with their routes.
    fn rate_limits(&self) -> impl Iterator<Item = (usize, &RouteConfig, &RateLimit)> {
        let sites = self.sites.iter().enumerate();
        let routes = sites.flat_map(|(at, site)| site.routes.iter().map(move |route| (at, route)));
        routes.flat_map(|(site, route)| {
            route.rules.rate_limits.iter().map(move |limit| (site, route, &**limit))
        })
    }
}

/// Returns a digest of what decides which requests a limit counts, and how many pass.
fn digest_of(site: &str, route: &RouteConfig, limit: &RateLimit) -> [u8; 32] {
    let route = format!("{} {}", route.path, route.conditions);
    let allowed = format!("{:?} {}", limit.buckets.interval(), limit.buckets.burst());
    let mut digest = Sha256::new();
    for part in [site, &route, &limit.key.to_string(), &allowed] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
