//! Prints what a line of each format costs: `cargo run --release -p kirin-log-summary --example
//! line_cost`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use kirin_log_summary::input::{LogOptions, read_log};
use kirin_log_summary::summary::Summary;

const LINES: usize = 200_000;
const ROUNDS: usize = 10;
const AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0";

/// Writes the line of a number.
type Shape = fn(&mut String, usize) -> std::fmt::Result;

fn main() {
    let shapes: [(&str, Shape); 3] = [
        ("combined", |out, n| {
            writeln!(
                out,
                "192.0.2.{} - - [22/Nov/2026:18:40:01 +0000] \"GET /memo/{n}?page={} HTTP/1.1\" 200 {n} \
                 \"https://example.org/recent/{}\" \"{AGENT}\" app:web 0.{:06}",
                n % 256,
                n % 9,
                n % 50,
                n * 7 % 500_000
            )
        }),
        ("ltsv", |out, n| {
            writeln!(
                out,
                "time:2026-11-22T18:40:01.123+00:00\thost:192.0.2.{}\tuser:-\tmethod:GET\t\
                 uri:/memo/{n}?page={}\tprotocol:HTTP/1.1\tstatus:200\tsize:{n}\treqtime:0.{:06}\t\
                 referer:https://example.org/recent/{}\tua:{AGENT}\tplace:app:web\tend:whole",
                n % 256,
                n % 9,
                n * 7 % 500_000,
                n % 50
            )
        }),
        ("json", |out, n| {
            writeln!(
                out,
                "{{\"time\":\"2026-11-22T18:40:01.123+00:00\",\"host\":\"192.0.2.{}\",\"method\":\"GET\",\
                 \"uri\":\"/memo/{n}?page={}\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"size\":{n},\
                 \"reqtime\":0.{:06},\"referer\":\"https://example.org/recent/{}\",\"ua\":\"{AGENT}\",\
                 \"place\":\"app:web\",\"end\":\"whole\"}}",
                n % 256,
                n % 9,
                n * 7 % 500_000,
                n % 50
            )
        }),
    ];
    for (name, shape) in shapes {
        let mut log = String::new();
        for number in 0..LINES {
            let _ = shape(&mut log, number);
        }
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut summary = Summary::new(Vec::new(), 1);
            let report = read_log(log.as_bytes(), &LogOptions::default(), |record| {
                summary.add(0, "", record);
            });
            best = best.min(start.elapsed().as_secs_f64());
            assert!(report.is_ok_and(|report| report.malformed == 0));
            black_box(summary);
        }
        println!(
            "{name}: {:.0} ns a line of {} bytes, {:.0} MB/s",
            best * 1e9 / LINES as f64,
            log.len() / LINES,
            log.len() as f64 / best / 1e6
        );
    }
}
