//! Prints what it costs to observe a page, and the memory and the report of a survey with all of
//! its bounds reached: `cargo run --release -p kirin-advice --example survey_cost`.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::time::{Duration, Instant};

use kirin_advice::observation::{Observation, ObservedBody, ObservedTarget, Visitor};
use kirin_advice::own_values::OwnValues;
use kirin_advice::pieces::Splitter;
use kirin_advice::report::report;
use kirin_advice::survey::{Demands, Survey};

/// How often a page is hashed for one figure.
const ROUNDS: u32 = 1000;

fn main() {
    let key = RandomState::new();
    let page: String =
        (0..400).map(|n| format!("<li><a href=\"/memo/{n}\">Memo {n}</a></li>\n")).collect();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let mut splitter = Splitter::new(key.clone());
        let mut own = OwnValues::new([&b"0123456789abcdef0123456789abcdef"[..]].into_iter());
        splitter.add(page.as_bytes());
        own.search(page.as_bytes());
        black_box((splitter.finish(), own.is_found()));
    }
    println!("a page of {} bytes: {:?}", page.len(), start.elapsed() / ROUNDS);

    let before = resident_bytes();
    let survey = full_survey(&key);
    let pieces = survey.targets().map(|(_, evidence)| evidence.pieces()).sum::<usize>();
    let memory = resident_bytes().saturating_sub(before) >> 20;
    println!("{} targets, {pieces} pieces: {memory} MB", survey.targets().count());

    let start = Instant::now();
    let report = report(&survey, &Demands::default(), &BTreeMap::new(), 60.0);
    println!("report of {} entries: {:?}", report.entries.len(), start.elapsed());
}

/// Returns a survey of 1,000 long targets, each asked for by 80 visitors.
fn full_survey(key: &RandomState) -> Survey {
    let mut survey = Survey::default();
    let names: Vec<String> = (0..16).map(|number| format!("cookie{number}")).collect();
    let mut asked = Duration::ZERO;
    for path in 0..1000 {
        for number in 0..80 {
            let hash = key.hash_one(number);
            let cookies = names.iter().map(|name| (name.clone(), hash));
            // One visitor in four has no cookie.
            let cookies = cookies.filter(|_| number % 4 > 0).collect();
            let mut splitter = Splitter::new(key.clone());
            splitter.add(format!("{}{}", ",".repeat(300), number / 2).as_bytes());
            let path = format!("{}/page{path}", "/x".repeat(500));
            survey.add(Observation {
                target: ObservedTarget { is_read: true, path, ..ObservedTarget::default() },
                visitor: Visitor { cookies, address: hash, ..Visitor::default() },
                asked,
                answered: asked + Duration::from_millis(20),
                place_time: Duration::from_millis(10),
                status: 200,
                body: ObservedBody::Complete { hashed: splitter.finish(), has_own_value: false },
                ..Observation::default()
            });
            asked += Duration::from_secs(1);
        }
    }
    survey
}

/// Returns the resident memory of this process (proc_pid_statm(5)).
fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
