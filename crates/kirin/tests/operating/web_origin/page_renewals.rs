//! Stale pages, which one of several machines has made again.

use kirin_tests::wait_for;

use super::cached_stampedes::application_of;
use super::{Machine, Two};

/// A page that stays after a soft purge.
const KEPT: &str = "X-Fields: Kirin-Store: ttl=300, tags=\"t\"\r\n";

/// Lets the application of `a` store the page `target`, which both machines then have.
fn store(two: &Two, target: &str) -> String {
    let reply = two.a.ask("GET", target, KEPT);
    assert_eq!(reply.status, 200, "{}", reply.head);
    let text = reply.text();
    for machine in [&two.a, &two.b] {
        assert_eq!(machine.get(target), text);
    }
    text
}

fn runs(two: &Two) -> usize {
    two.a.runs() + two.b.runs()
}

/// Waits until a machine serves another page, which one more call has made.
fn wait_for_another(two: &Two, target: &str, stale: &str) {
    let [a, b] = [&two.a, &two.b].map(|machine| {
        wait_for("the new page", || {
            let text = machine.ask("GET", target, KEPT).text();
            (text != stale).then_some(text)
        })
    });
    assert_eq!(a, b, "one page");
}

#[test]
fn a_stale_page_is_renewed_by_one_machine() {
    let two = Two::start();
    for round in 0..3 {
        let target = "/pages/renewed";
        let stale = if round == 0 { store(&two, target) } else { two.a.get(target) };
        two.b.wait_for_text(target, &stale);
        assert_eq!(two.b.purge("tags=\"t\", soft").status, 200);
        let before = runs(&two);
        wait_for_another(&two, target, &stale);
        assert_eq!(runs(&two), before + 1, "round {round}");
    }
}

#[test]
fn while_a_machine_renews_a_page_the_others_serve_it() {
    let two = Two::start();
    let (a, b) = (&two.a, &two.b);
    let target = "/pages/wait";
    a.go();
    let stale = store(&two, target);
    let again = |machine: &Machine| {
        for name in ["begun", "go"] {
            drop(std::fs::remove_file(machine.site.path(name)));
        }
    };
    again(a);
    // The machine of a purge knows of it at once.
    assert_eq!(a.purge("tags=\"t\", soft").status, 200);
    let mut renewing = a.connect();
    renewing.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{KEPT}\r\n"));
    a.wait_until_begun();
    let before = runs(&two);
    for _ in 0..5 {
        assert_eq!(b.ask("GET", target, KEPT).text(), stale);
        assert_eq!(a.ask("GET", target, KEPT).text(), stale);
    }
    assert_eq!(runs(&two), before);
    a.go();
    let new = renewing.read_reply().text();
    assert_ne!(new, stale);
    for machine in [a, b] {
        machine.wait_for_text(target, &new);
    }
}

#[test]
fn a_machine_that_dies_while_it_renews_a_page_leaves_it_to_another() {
    let two = Two::start();
    let (a, b) = (&two.a, &two.b);
    let target = "/pages/wait";
    [a, b].iter().for_each(|machine| machine.go());
    let stale = store(&two, target);
    for name in ["begun", "go"] {
        drop(std::fs::remove_file(a.site.path(name)));
    }
    assert_eq!(a.purge("tags=\"t\", soft").status, 200);
    let mut renewing = a.connect();
    renewing.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{KEPT}\r\n"));
    a.wait_until_begun();
    let processes = application_of(a);
    a.kirin.signal(rustix::process::Signal::KILL);
    let new = wait_for("another page", || {
        let text = b.ask("GET", target, KEPT).text();
        (text != stale).then_some(text)
    });
    assert!(new.starts_with("b "), "{new}");
    a.go();
    let are_gone = || !processes.iter().any(|process| process.exists());
    wait_for("the end of the application", || are_gone().then_some(()));
}
