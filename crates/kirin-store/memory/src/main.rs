//! Measures the resident memory of the store. `./run.sh` builds this with each allocator and runs
//! everything.
//!
//! ```text
//! kirin-store-memory churn MEGABYTES    mixed and shifting sizes against one budget
//! kirin-store-memory items COUNT LEN    bytes an item, values of LEN bytes
//! kirin-store-memory speed COUNT LEN    nanoseconds an operation
//! kirin-store-memory memcached COUNT LEN   the same in memcached, over a unix socket
//! ```

mod churn;
mod items;

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The allocator of this build.
const ALLOCATOR_NAME: &str = if cfg!(feature = "jemalloc") {
    "jemalloc"
} else if cfg!(feature = "mimalloc") {
    "mimalloc"
} else {
    "system"
};

/// Returns the resident bytes of a process.
fn resident_bytes(process: &str) -> usize {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).expect("/proc is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS is there");
    let kilobytes: usize =
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number");
    kilobytes * 1024
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().ok();
    match words[..] {
        ["churn", megabytes] if number(megabytes).is_some() => {
            churn::run(number(megabytes).unwrap_or(256) << 20)
        }
        ["items", count, len] => {
            items::store(number(count).unwrap_or(1 << 20), number(len).unwrap_or(100))
        }
        ["speed", count, len] => {
            items::speed(number(count).unwrap_or(1 << 20), number(len).unwrap_or(100))
        }
        ["memcached", count, len] => {
            items::memcached(number(count).unwrap_or(1 << 20), number(len).unwrap_or(100))
        }
        _ => {
            eprintln!(
                "usage: kirin-store-memory churn MEGABYTES | items COUNT LEN | speed COUNT LEN | memcached COUNT LEN"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
