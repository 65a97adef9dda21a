//! Prints what the pattern of a path costs: `cargo run --release -p kirin-url-patterns --example
//! path_cost`.

use std::hint::black_box;
use std::time::Instant;

use kirin_url_patterns::{PatternLimits, UrlPatterns};

const PATHS: usize = 100_000;
const ROUNDS: usize = 20;

/// Makes a path of a number.
type Shape = fn(usize) -> String;

fn main() {
    let shapes: [(&str, Shape); 4] = [
        ("/memo/NUMBER", |n| format!("/memo/{n}")),
        ("/api/v1/WORD/NUMBER/comments?page=N", |n| {
            format!("/api/v1/kind{}s/{n}/comments?page={}&sort=date", n % 30, n % 7)
        }),
        ("/USER/posts/NUMBER", |n| format!("/user{}x/posts/{n}", n % 5000)),
        ("2,000 static pages", |n| {
            format!("/section{}/part{}/page{}x.html", n % 10, n / 10 % 10, n / 100 % 20)
        }),
    ];
    for (name, shape) in shapes {
        let paths: Vec<_> = (0..PATHS).map(shape).collect();
        let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for path in &paths {
                black_box(patterns.pattern_of(black_box(path.as_bytes()), |_| {}));
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / PATHS as f64);
        }
        println!(
            "{name}: {best:.0} ns, {} patterns, {} bytes",
            patterns.iter().count(),
            patterns.memory_bytes()
        );
    }
}
