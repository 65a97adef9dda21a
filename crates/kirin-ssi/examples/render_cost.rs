//! Measures compiling and rendering: `cargo run --release -p kirin-ssi --example render_cost`.
//!
//! Each figure is the best of many rounds, so that other work on the machine matters little.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kirin_ssi::{
    FoundItem, RenderProgress, RenderSource, Rendering, Requested, Requesting, Scope, Syntax,
    Template, Zone,
};

/// A fragment under every key, and a value for every variable.
struct Site(Arc<Template>);

impl RenderSource for Site {
    fn item(&mut self, _: &[u8]) -> FoundItem {
        FoundItem::Template(Arc::clone(&self.0))
    }

    fn variable(&mut self, _: &str) -> Option<Bytes> {
        Some(Bytes::from_static(b"<value>"))
    }

    fn date(&mut self, _: Zone, _: &str) -> Bytes {
        Bytes::new()
    }

    fn request(&mut self, _: Requesting<'_>, _: &Scope, _: usize) -> Requested {
        Requested::Failed
    }
}

fn best_of(rounds: usize, mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..rounds).map(time).min().unwrap_or_default()
}

fn main() {
    const REPEATS: u32 = 1000;
    let both = Syntax { ssi: true, esi: true };
    let compile =
        |page: &str| Arc::new(Template::compile(&Bytes::copy_from_slice(page.as_bytes()), both));
    let text = "<p>Some text of a page, as pages have it.</p>\n".repeat(10);
    let part = format!("{text}<!--# include part -->");
    let nested = compile(&format!("{text}<!--# set var=\"a\" value=\"1\" -->{text}"));
    for (what, page, item) in [
        ("no includes", text.clone(), compile("fragment")),
        ("3 includes", part.repeat(3), compile("fragment")),
        ("30 includes", part.repeat(30), compile("fragment")),
        ("30 includes, each with a directive", part.repeat(30), nested),
        (
            "3 includes, 3 echoes, 3 conditions",
            format!(
                "{part}<!--# echo var=\"a\" --><!--# if expr=\"$a = /v(.)l/\" -->x<!--# endif -->"
            )
            .repeat(3),
            compile("fragment"),
        ),
    ] {
        let template = compile(&page);
        let mut site = Site(item);
        let time = best_of(200, || {
            for _ in 0..REPEATS {
                let mut rendering = Rendering::new(Arc::clone(&template));
                assert_eq!(rendering.run(&mut site), RenderProgress::Done);
                black_box(rendering.take_ready());
            }
        });
        println!("render, {what}: {} ns", (time / REPEATS).as_nanos());
    }
    for (what, page) in [
        ("text", text.repeat(2000)),
        ("includes", part.repeat(2000)),
        ("openings without an end", "<!--# include <esi:include ".repeat(40_000)),
        ("bare parameters without an end", format!("<!--# {}", "a ".repeat(500_000))),
        ("directives in quotes in directives", "<!--#x a='--><!--#x b=c' ".repeat(40_000)),
        ("nested ifs", "<!--# if expr=\"$a\" -->".repeat(45_000)),
        ("else after else", format!("<!--# if expr=\"$a\" -->{}", "<!--# else -->".repeat(70_000))),
        (
            "conditions with long expressions",
            "<!--# if expr=\"$a = /\\w{40}/\" --><!--# endif -->".repeat(20_000),
        ),
    ] {
        let page = Bytes::from(page);
        let time = best_of(5, || {
            black_box(Template::compile(&page, both));
        });
        let megabytes = page.len() as f64 / 1e6;
        println!("compile, {what}: {:.1} ms for {megabytes:.1} MB", time.as_secs_f64() * 1e3);
    }
}
