//! Tests of the contest with sites that have one flaw each. The contest must find every flaw.

mod site;

use std::time::Duration;

use crate::contest::{Plan, run};
use crate::facts::{Facts, File, SeededMemo};
use crate::tally::Verdict;
use site::Flaw;

fn facts() -> Facts {
    Facts {
        memos: (1..=site::SEEDED)
            .map(|id| SeededMemo { id, words: site::words(id), author: site::AUTHOR.to_owned() })
            .collect(),
        names: (0..50).map(|number| format!("guest{number:02}")).collect(),
        password: site::PASSWORD.to_owned(),
        files: vec![File {
            path: "/memo.css",
            media_type: "text/css",
            bytes: site::STYLE.to_vec(),
        }],
    }
}

fn contest(flaw: Flaw) -> Verdict {
    let plan = Plan {
        address: site::start(flaw),
        length: Duration::from_secs(2),
        readers: 2,
        members: 2,
        seed: 7,
        appears_within: match flaw {
            // A busy machine must not make it late.
            Flaw::None => Duration::from_secs(60),
            _ => Duration::from_secs(1),
        },
        answer_limit: Duration::from_secs(10),
    };
    run(plan, facts()).expect("a verdict")
}

/// Returns the reason for which a site with this flaw is disqualified.
fn reason(flaw: Flaw) -> String {
    let Verdict { score, disqualified, requests, .. } = contest(flaw);
    assert_eq!(score, 0, "{requests} requests, {disqualified:?}");
    disqualified.expect("disqualified")
}

#[test]
fn a_site_that_does_everything_right_has_points_for_every_kind_of_request() {
    let verdict = contest(Flaw::None);
    assert_eq!(verdict.disqualified, None);
    assert_eq!((verdict.faults, verdict.score), (0, verdict.points), "{:?}", verdict.reasons);
    for kind in &verdict.kinds {
        assert!(kind.latency.count > 0, "nobody asked for: {}", kind.name);
    }
    assert!(verdict.appeared.count > 0);
}

#[test]
fn a_site_that_shows_a_private_memo_to_others_is_disqualified() {
    let reason = reason(Flaw::ShowsPrivate);
    assert!(reason.contains("a private memo is shown to somebody else"), "{reason}");
}

#[test]
fn a_site_that_lists_a_private_memo_is_disqualified() {
    let reason = reason(Flaw::ListsPrivate);
    assert!(reason.contains("a private memo is on a page for everybody"), "{reason}");
}

#[test]
fn a_site_that_serves_an_old_front_page_is_disqualified() {
    let reason = reason(Flaw::OldFront);
    assert!(reason.contains("a public memo is not on the front page after 1 s"), "{reason}");
}

#[test]
fn a_site_that_forgets_that_somebody_has_signed_out_is_disqualified() {
    let reason = reason(Flaw::KeepsSession);
    assert!(reason.contains("has signed out and is still named"), "{reason}");
}

#[test]
fn a_site_that_gives_one_visitors_page_to_another_is_disqualified() {
    let reason = reason(Flaw::MixesVisitors);
    assert!(reason.contains("somebody"), "{reason}");
}

#[test]
fn a_site_with_a_wrong_file_is_disqualified() {
    let reason = reason(Flaw::CutsFile);
    assert!(reason.contains("/memo.css is not the file"), "{reason}");
}

#[test]
fn a_site_that_answers_errors_is_disqualified() {
    let reason = reason(Flaw::Fails);
    assert!(
        // Which of the pages fails most often is chance.
        reason.contains("answers were wrong, most often: ")
            && reason.contains(": status 500 and not 200"),
        "{reason}"
    );
}

#[test]
fn nobody_is_there() {
    let gone =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let plan = Plan {
        address: gone.expect("a port"),
        length: Duration::from_millis(200),
        readers: 1,
        members: 1,
        seed: 7,
        appears_within: Duration::from_secs(1),
        answer_limit: Duration::from_secs(10),
    };
    let verdict = run(plan, facts()).expect("a verdict");
    let reason = verdict.disqualified.unwrap_or_default();
    assert!(reason.contains("no answer"), "{reason}");
}
