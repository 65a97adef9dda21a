//! Compares eviction policies on synthetic traces: `cargo run --release -p kirin-store --example
//! eviction`.
//!
//! Prints the share of requests that miss, as the Markdown table of `docs/store.md`. A miss inserts
//! the object, as an application does. Each object counts with its size in bytes against the
//! capacity. The capacity is a share of the bytes of all distinct objects of the trace.
//!
//! There are two variants of S3-FIFO. An object moves from the small to the main queue after two
//! hits, as in the simulator of its authors, or after one.

mod lru;
mod policy;
mod s3fifo;
mod sieve;
mod trace;

use policy::Policy;

fn miss_ratio(policy: &mut dyn Policy, trace: &[trace::Request]) -> f64 {
    let misses = trace.iter().filter(|request| !policy.request(request.key, request.bytes)).count();
    misses as f64 / trace.len() as f64
}

fn main() {
    println!("| trace | capacity | LRU | SIEVE | S3-FIFO, two hits | S3-FIFO, one hit |");
    println!("|---|---|---|---|---|---|");
    let mut sums = [0.0; 4];
    let mut rows = 0.0;
    for trace in trace::all() {
        for share in [0.01, 0.1, 0.3] {
            let capacity = (trace.distinct_bytes() as f64 * share) as u64;
            let mut policies: [Box<dyn Policy>; 4] = [
                Box::new(lru::Lru::new(capacity)),
                Box::new(sieve::Sieve::new(capacity)),
                Box::new(s3fifo::S3Fifo::new(capacity, 2)),
                Box::new(s3fifo::S3Fifo::new(capacity, 1)),
            ];
            let ratios =
                policies.each_mut().map(|policy| miss_ratio(policy.as_mut(), &trace.requests));
            rows += 1.0;
            for (sum, ratio) in sums.iter_mut().zip(ratios) {
                *sum += ratio;
            }
            let best = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let cells = ratios.map(|ratio| {
                if ratio <= best * 1.005 {
                    format!("**{ratio:.4}**")
                } else {
                    format!("{ratio:.4}")
                }
            });
            println!("| {} | {:.0} % | {} |", trace.name, share * 100.0, cells.join(" | "));
        }
    }
    let means = sums.map(|sum: f64| format!("{:.4}", sum / rows));
    println!("| mean | | {} |", means.join(" | "));
}
