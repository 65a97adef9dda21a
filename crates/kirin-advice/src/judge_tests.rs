//! Sites as attackers and careless operators have them. Each test sends requests of visitors to a
//! page, and says what may be advised.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::observation::{Freshness, Observation, ObservedBody, Route, Statement, Visitor};
use crate::own_values::OwnValues;
use crate::pieces::Splitter;
use crate::report::{Entry, Report, RouteFacts, report};
use crate::verdict::{Cause, KeyPart};

/// A site that is observed. Each request comes a second after the one before.
struct Site {
    key: RandomState,
    survey: Survey,
    demands: Demands,
    seconds: u64,
    is_protected: bool,
}

/// One request and its answer.
#[derive(Clone)]
struct Visit<'a> {
    path: &'a str,
    method_is_read: bool,
    cookies: &'a [(&'a str, &'a str)],
    authorization: &'a str,
    field: &'a str,
    address: &'a str,
    language: &'a str,
    agent: &'a str,
    status: u16,
    body: &'a str,
    statement: Statement,
}

impl Default for Visit<'_> {
    fn default() -> Self {
        Self {
            path: "/page",
            method_is_read: true,
            cookies: &[],
            authorization: "",
            field: "",
            address: "10.0.0.1",
            language: "",
            agent: "browser",
            status: 200,
            body: "",
            statement: Statement { is_html: true, ..Statement::default() },
        }
    }
}

impl Site {
    fn new() -> Self {
        Self {
            key: RandomState::new(),
            survey: Survey::default(),
            demands: Demands::default(),
            seconds: 0,
            is_protected: false,
        }
    }

    fn ask(&mut self, asked: Visit<'_>) {
        let hash = |text: &str| if text.is_empty() { 0 } else { self.key.hash_one(text) };
        let mut splitter = Splitter::new(self.key.clone());
        splitter.add(asked.body.as_bytes());
        let values = asked.cookies.iter().map(|(_, value)| value.as_bytes());
        let mut own = OwnValues::new(values.chain([asked.authorization.as_bytes()]));
        own.search(asked.body.as_bytes());
        let visitor = Visitor {
            cookies: asked
                .cookies
                .iter()
                .map(|(name, value)| ((*name).to_owned(), hash(value)))
                .collect(),
            credentials: (!asked.authorization.is_empty()).then(|| hash(asked.authorization)),
            others: match asked.field {
                "" => Vec::new(),
                field => vec![("x-api-key".into(), hash(field))],
            },
            address: hash(asked.address),
            language: hash(asked.language),
            accept: 0,
            encoding: 0,
            agent: hash(asked.agent),
        };
        let asked_at = Duration::from_secs(self.seconds);
        self.seconds += 1;
        self.survey.add(Observation {
            target: Target {
                route: 0,
                is_read: asked.method_is_read,
                secure: false,
                host: "h".into(),
                path: asked.path.into(),
                query: None,
            },
            has_request_body: false,
            visitor,
            asked: asked_at,
            answered: asked_at + Duration::from_millis(20),
            place_time: Duration::from_millis(10),
            status: asked.status,
            statement: asked.statement,
            body: ObservedBody::Complete {
                hashed: splitter.finish(),
                has_own_value: own.is_found(),
            },
        });
    }

    /// Sends requests of `count` visitors without a cookie, from different addresses.
    fn strangers(&mut self, count: usize, body: &str) {
        for number in 0..count {
            let address = format!("192.0.2.{number}");
            self.ask(Visit { address: &address, body, ..Visit::default() });
        }
    }

    /// Sends requests of `count` members. `{}` in the body is the name of the member.
    fn members(&mut self, count: usize, body: &str) {
        for number in 0..count {
            let (name, session) = (format!("name{number}"), format!("0123456789abcdef{number}"));
            let address = format!("198.51.100.{number}");
            let cookies = [("sid", session.as_str())];
            let body = body.replace("{}", &name);
            self.ask(Visit {
                cookies: &cookies,
                address: &address,
                body: &body,
                ..Visit::default()
            });
        }
    }

    fn report(&self) -> Report {
        let route = Route { path: "/".into(), place: "app:web".into(), ..Route::default() };
        let facts = RouteFacts { route, is_protected: self.is_protected };
        report(&self.survey, &self.demands, &BTreeMap::from([(0, facts)]), self.seconds as f64)
    }

    fn entry(&self) -> Entry {
        let report = self.report();
        assert_eq!(report.entries.len(), 1, "{report:#?}");
        report.entries.into_iter().next().expect("an entry")
    }

    fn verdict(&self) -> Verdict {
        self.entry().verdict
    }

    fn reasons(&self) -> Vec<Reason> {
        match self.verdict() {
            Verdict::Unsafe { reasons } => reasons,
            other => panic!("{other:?}"),
        }
    }
}

const PAGE: &str = "<!DOCTYPE html>\n<title>Today</title>\n<p>The same for all of us, today.</p>\n";

#[test]
fn a_page_is_for_everybody_after_enough_different_visitors() {
    // Strangers and members that were seen, and whether that is enough.
    for (strangers, members, expected) in
        [(3, 3, true), (1, 3, true), (3, 2, false), (0, 3, false), (3, 0, false), (9, 1, false)]
    {
        let mut site = Site::new();
        site.strangers(strangers, PAGE);
        site.members(members, PAGE);
        let verdict = site.verdict();
        assert_eq!(verdict == Verdict::Everybody, expected, "{strangers} {members} {verdict:?}");
    }
}

#[test]
fn many_requests_of_one_visitor_prove_nothing() {
    for cookies in [&[][..], &[("sid", "0123456789abcdef")]] {
        let mut site = Site::new();
        for _ in 0..100 {
            site.ask(Visit { cookies, body: PAGE, ..Visit::default() });
        }
        let verdict = site.verdict();
        assert!(matches!(verdict, Verdict::Unproven { .. }), "{cookies:?} {verdict:?}");
    }
}

#[test]
fn identical_cookies_are_one_visitor() {
    let mut site = Site::new();
    site.strangers(1, PAGE);
    for number in 0..20 {
        let address = format!("10.0.0.{number}");
        let cookies = [("sid", "the same for all of them")];
        site.ask(Visit { cookies: &cookies, address: &address, body: PAGE, ..Visit::default() });
    }
    let verdict = site.verdict();
    assert!(matches!(verdict, Verdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn cookies_of_analytics_are_no_sessions() {
    let mut site = Site::new();
    site.strangers(1, PAGE);
    for number in 0..20 {
        let (address, value) = (format!("10.0.0.{}", number % 2), format!("GA1.2.{number}"));
        let cookies = [("_ga", value.as_str())];
        site.ask(Visit { cookies: &cookies, address: &address, body: PAGE, ..Visit::default() });
    }
    let verdict = site.verdict();
    assert!(matches!(verdict, Verdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn two_empty_carts_do_not_make_a_cart_public() {
    let mut site = Site::new();
    site.strangers(5, "<p>Your cart is empty.</p>");
    site.members(2, "<p>Your cart is empty.</p>");
    assert_eq!(site.verdict(), Verdict::WithoutCookie { others_differ: false });
}

#[test]
fn a_cart_that_one_of_many_members_has_filled_is_not_for_everybody() {
    let mut site = Site::new();
    site.strangers(5, "<p>Your cart is empty.</p>");
    site.members(7, "<p>Your cart is empty.</p>");
    let cookies = [("sid", "0123456789abcdef99")];
    site.ask(Visit { cookies: &cookies, body: "<p>One cow, for mari.</p>", ..Visit::default() });
    site.strangers(5, "<p>Your cart is empty.</p>");
    assert_eq!(site.verdict(), Verdict::WithoutCookie { others_differ: true });
}

#[test]
fn a_page_for_members_only_is_never_shared() {
    for (status, body) in [(302, ""), (403, "no"), (404, "no"), (401, "no"), (200, "sign in first")]
    {
        for strangers_first in [true, false] {
            let mut site = Site::new();
            let ask = |site: &mut Site| {
                site.ask(Visit { status, body, ..Visit::default() });
            };
            if strangers_first {
                ask(&mut site);
            }
            site.members(6, PAGE);
            ask(&mut site);
            let verdict = site.verdict();
            let is_safe = matches!(verdict, Verdict::Unsafe { .. } | Verdict::Unproven { .. });
            assert!(is_safe, "{status} {strangers_first} {verdict:?}");
        }
    }
    let mut site = Site::new();
    site.members(8, PAGE);
    assert!(
        matches!(site.verdict(), Verdict::Unproven { missing } if missing.contains(&Missing::Anonymous))
    );
}

#[test]
fn a_page_that_depends_on_the_address_is_never_shared() {
    let mut site = Site::new();
    for _ in 0..3 {
        for number in 0..4 {
            let address = format!("10.0.0.{number}");
            let body = if number == 0 { "<p>for the office</p>" } else { PAGE };
            site.ask(Visit { address: &address, body, ..Visit::default() });
        }
    }
    assert_eq!(site.reasons(), [Reason::Address]);
    // From one address alone nobody can know.
    let mut site = Site::new();
    for number in 0..9 {
        let agent = format!("browser {number}");
        site.ask(Visit { agent: &agent, body: PAGE, ..Visit::default() });
    }
    assert!(matches!(site.verdict(), Verdict::Unproven { .. }));
    site.demands.addresses = 1;
    assert_eq!(site.verdict(), Verdict::WithoutCookie { others_differ: false });
}

#[test]
fn a_page_that_depends_on_the_browser_is_not_shared() {
    let mut site = Site::new();
    for number in 0..8 {
        let (address, is_phone) = (format!("10.0.0.{number}"), number % 2 == 0);
        let (agent, body) = if is_phone { ("phone", "<p>small</p>") } else { ("desk", PAGE) };
        site.ask(Visit { address: &address, agent, body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Agent]);
}

#[test]
fn a_page_that_is_new_each_time_is_not_shared() {
    let mut site = Site::new();
    for number in 0..30 {
        let (address, body) = (format!("10.0.0.{number}"), format!("{number}"));
        site.ask(Visit { address: &address, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Differs]);
}

#[test]
fn the_clock_in_a_page_is_a_gap() {
    let mut site = Site::new();
    for number in 0..30 {
        let address = format!("10.0.0.{number}");
        let body = format!("{PAGE}<time>{number:02}</time>\n");
        site.ask(Visit { address: &address, body: &body, ..Visit::default() });
    }
    let verdict = site.verdict();
    let Verdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
    assert_eq!((gaps.len(), gaps[0].line, &gaps[0].cause), (1, 4, &Cause::EachTime), "{gaps:?}");
}

#[test]
fn a_page_that_changes_has_the_lifetime_that_suits() {
    let mut site = Site::new();
    for version in 0..3 {
        let body = format!("{PAGE}{version}");
        site.strangers(5, &body);
        site.members(5, &body);
        site.strangers(5, &body);
    }
    let entry = site.entry();
    assert_eq!(entry.verdict, Verdict::Everybody);
    let steady = entry.steady.expect("a steady page");
    assert_eq!((steady.changes, steady.ttl_seconds), (2, Some(5)), "{steady:?}");
    assert!(entry.saved_requests > 30 && entry.saved_requests < entry.requests, "{entry:?}");
}

#[test]
fn the_name_of_a_member_is_a_gap_with_its_cookie() {
    let mut site = Site::new();
    let with = |bar: &str| format!("<header>news</header>\n<nav>\n{bar}</nav>\n{PAGE}");
    let stranger = with("<a href=\"/signin\">Sign in</a>\n");
    site.strangers(3, &stranger);
    site.members(4, &with("signed in as <b>{}</b>\n"));
    site.strangers(1, &stranger);
    let verdict = site.verdict();
    let Verdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
    assert_eq!((gaps.len(), gaps[0].line), (1, 3), "{gaps:?}");
    assert_eq!(gaps[0].cause, Cause::Cookie("sid".into()), "{gaps:?}");
    // What all have is in the page of strangers, so nobody learns anything new.
    assert!(gaps[0].offset >= 21 && gaps[0].longest < 60, "{gaps:?}");
}

#[test]
fn a_page_with_the_visitors_own_cookie_is_never_shared() {
    let mut site = Site::new();
    site.strangers(3, &format!("{PAGE}<p></p>"));
    for number in 0..5 {
        let session = format!("0123456789abcdef{number}");
        let cookies = [("sid", session.as_str())];
        let body = format!("{PAGE}<p>{session}</p>");
        site.ask(Visit { cookies: &cookies, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::OwnValue]);
}

#[test]
fn a_value_that_strangers_get_too_is_nobodys_own() {
    let mut site = Site::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    let cookies = [("sid", "0123456789abcdef9"), ("theme", "DOCTYPE")];
    site.ask(Visit { cookies: &cookies, body: PAGE, ..Visit::default() });
    site.strangers(1, PAGE);
    assert_eq!(site.verdict(), Verdict::Everybody);
}

#[test]
fn languages_need_a_key_unless_they_are_in_it() {
    for vary in [&[][..], &["accept-language"]] {
        let mut site = Site::new();
        for number in 0..12 {
            let address = format!("10.0.0.{number}");
            let (language, body) = [("de", "<p>Guten Tag</p>"), ("en", PAGE)][number % 2];
            let vary = vary.iter().map(|name| (*name).to_owned()).collect();
            let statement = Statement { vary, ..Statement::default() };
            site.ask(Visit { address: &address, language, body, statement, ..Visit::default() });
        }
        let expected = match vary {
            [] => Verdict::NeedsKey { key: KeyPart::Field("accept-language".into()), values: 2 },
            _ => Verdict::WithoutCookie { others_differ: false },
        };
        assert_eq!(site.verdict(), expected);
    }
}

#[test]
fn a_cookie_with_few_values_that_explains_all_is_a_key() {
    let mut site = Site::new();
    for number in 0..16 {
        let (address, session) = (format!("10.0.0.{number}"), format!("0123456789abcdef{number}"));
        let (language, body) = [("de", "<p>Guten Tag</p>"), ("en", "<p>Good day</p>")][number % 2];
        let cookies = [("lang", language), ("sid", session.as_str())];
        site.ask(Visit { cookies: &cookies, address: &address, body, ..Visit::default() });
    }
    site.strangers(4, "<p>Good day</p>");
    let key = KeyPart::Cookie("lang".into());
    assert_eq!(site.verdict(), Verdict::NeedsKey { key, values: 3 });
}

#[test]
fn a_session_is_never_a_key() {
    let mut site = Site::new();
    site.strangers(3, PAGE);
    for _ in 0..5 {
        site.members(6, "<p>This is the page of {} alone.</p>");
    }
    assert_eq!(site.verdict(), Verdict::WithoutCookie { others_differ: true });
}

#[test]
fn a_field_of_the_applications_own_counts_as_a_credential() {
    // The cache would store the response to a request with the key, and give it to everybody.
    let mut site = Site::new();
    site.strangers(5, PAGE);
    site.ask(Visit { field: "key of mari", body: "{\"name\": \"mari\"}", ..Visit::default() });
    site.strangers(5, PAGE);
    assert_eq!(site.reasons(), [Reason::OtherFields(vec!["x-api-key".into()])]);
    let mut site = Site::new();
    site.strangers(5, PAGE);
    site.ask(Visit { field: "key of mari", body: PAGE, ..Visit::default() });
    let verdict = site.verdict();
    assert!(matches!(verdict, Verdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn what_heads_say_against_sharing_counts() {
    let statement = |change: fn(&mut Statement)| {
        let mut statement = Statement { is_html: true, ..Statement::default() };
        change(&mut statement);
        statement
    };
    for (statement, reason) in [
        (statement(|said| said.sets_cookie = true), Reason::SetsCookie),
        (statement(|said| said.is_private = true), Reason::Private),
        (statement(|said| said.vary = vec!["*".into()]), Reason::VariesByAll),
    ] {
        let mut site = Site::new();
        site.strangers(3, PAGE);
        site.members(3, PAGE);
        site.ask(Visit { statement, body: PAGE, ..Visit::default() });
        assert_eq!(site.reasons(), [reason]);
    }
    // `private` to members only: the application decides.
    let mut site = Site::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    let private =
        Statement { is_private: true, freshness: Freshness::Unstated, ..Statement::default() };
    let cookies = [("sid", "0123456789abcdef8")];
    site.ask(Visit { cookies: &cookies, statement: private, body: PAGE, ..Visit::default() });
    assert_eq!(site.verdict(), Verdict::WithoutCookie { others_differ: false });
}

#[test]
fn public_pages_that_differ_are_not_given_to_a_cache() {
    // With `cache`, Kirin would believe `public`, and share the page of a member.
    let mut site = Site::new();
    site.strangers(4, PAGE);
    for number in 0..4 {
        let session = format!("0123456789abcdef{number}");
        let cookies = [("sid", session.as_str())];
        let statement = Statement { is_public: true, is_html: true, ..Statement::default() };
        let body = format!("{PAGE}<b>member {number}</b>");
        site.ask(Visit { cookies: &cookies, statement, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::PublicButDiffers]);
}

#[test]
fn methods_passwords_and_statuses_are_reasons() {
    let mut site = Site::new();
    site.ask(Visit { method_is_read: false, body: PAGE, ..Visit::default() });
    assert_eq!(site.reasons(), [Reason::Method]);
    let mut site = Site::new();
    site.is_protected = true;
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    assert_eq!(site.reasons(), [Reason::Protected]);
    let mut site = Site::new();
    for number in 0..5 {
        let address = format!("10.0.0.{number}");
        site.ask(Visit { address: &address, status: 302, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Status(302)]);
    let mut site = Site::new();
    site.ask(Visit { authorization: "Basic bWFyaQ==", body: PAGE, ..Visit::default() });
    let reasons = site.reasons();
    assert_eq!(reasons, [Reason::CredentialsOnly]);
}

#[test]
fn errors_and_parts_say_nothing_about_a_page() {
    let mut site = Site::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    for status in [206, 304, 412, 416, 429, 500, 503] {
        site.ask(Visit { status, body: "other", ..Visit::default() });
    }
    assert_eq!(site.verdict(), Verdict::Everybody);
}

#[test]
fn what_strangers_send_takes_bounded_memory() {
    let mut site = Site::new();
    for number in 0..3000 {
        let (path, address) =
            (format!("/x{number}"), format!("10.0.{}.{}", number / 256, number % 256));
        let (name, value) = (format!("cookie{number}"), format!("value {number}"));
        let cookies: Vec<_> = (0..40).map(|_| (name.as_str(), value.as_str())).collect();
        let body = "<b>".repeat(2000);
        site.ask(Visit {
            path: &path,
            cookies: &cookies,
            address: &address,
            body: &body,
            ..Visit::default()
        });
    }
    assert_eq!(site.survey.targets().count(), crate::survey::MAX_TARGETS);
    let pieces = site.survey.targets().map(|(_, evidence)| evidence.pieces()).sum::<usize>();
    assert!(pieces <= crate::survey::MAX_PIECES, "{pieces}");
    assert!(site.survey.totals().left_out >= 2000);
    assert!(site.report().entries.len() <= 200);
    // One page with many visitors.
    let mut site = Site::new();
    for number in 0..1000 {
        let (value, body) = (format!("value {number}"), format!("{PAGE}{number}"));
        let cookies = [("sid", value.as_str())];
        site.ask(Visit { cookies: &cookies, body: &body, ..Visit::default() });
    }
    for (_, evidence) in site.survey.targets() {
        assert!(evidence.samples.len() <= crate::evidence::MAX_SAMPLES);
        let bodies = evidence.window.known.len() + evidence.window.anonymous.len();
        assert!(bodies <= crate::evidence::MAX_BODIES);
    }
}

#[test]
fn paths_that_do_not_exist_take_no_room() {
    let mut site = Site::new();
    for number in 0..100 {
        let path = format!("/x{number}");
        site.ask(Visit { path: &path, status: 404, ..Visit::default() });
    }
    assert_eq!(site.survey.targets().count(), 0);
    assert_eq!(site.report().requests, 100);
}

#[test]
fn one_unsafe_host_or_query_keeps_a_path_out_of_the_configuration() {
    let mut site = Site::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    assert!(!site.entry().is_path_mixed);
    let mut other = Observation {
        target: Target {
            is_read: true,
            host: "other".into(),
            path: "/page".into(),
            ..Target::default()
        },
        has_request_body: false,
        visitor: Visitor::default(),
        asked: Duration::ZERO,
        answered: Duration::ZERO,
        place_time: Duration::ZERO,
        status: 200,
        statement: Statement { sets_cookie: true, ..Statement::default() },
        body: ObservedBody::Missing,
    };
    site.survey.add(other.clone());
    assert!(site.report().entries.iter().all(|entry| entry.is_path_mixed));
    other.target.path = "/elsewhere".into();
    site.survey.add(other);
    assert_eq!(site.report().entries.len(), 3);
}

proptest! {
    /// Shows that, however visitors come, a page of which each member has another one is never
    /// for everybody, and a page that no stranger got is never shared at all.
    #[test]
    fn pages_of_members_are_never_shared(order in prop::collection::vec(0usize..8, 1..60), strangers in any::<bool>()) {
        let mut site = Site::new();
        for member in order {
            if member == 7 {
                if strangers {
                    site.ask(Visit { body: "<p>Welcome, whoever you are</p>", ..Visit::default() });
                }
                continue;
            }
            let (session, address) = (format!("0123456789abcdef{member}"), format!("10.0.0.{}", member % 3));
            let cookies = [("sid", session.as_str())];
            let body = format!("<p>All that belongs to member number {member}, and nobody else</p>");
            site.ask(Visit { cookies: &cookies, address: &address, body: &body, ..Visit::default() });
        }
        for entry in site.report().entries {
            let is_shared = matches!(entry.verdict, Verdict::Everybody | Verdict::SameBut { .. } | Verdict::NeedsKey { .. });
            prop_assert!(!is_shared, "{entry:?}");
            let all_strangers = matches!(entry.verdict, Verdict::WithoutCookie { .. });
            prop_assert!(!all_strangers, "one address only: {entry:?}");
        }
    }
}

#[test]
fn a_change_between_visitors_is_no_gap() {
    let mut site = Site::new();
    let page = |version: usize, bar: &str| {
        format!("<nav>{bar}</nav>\n<p>Item {version} of the list, which changes</p>\n{PAGE}")
    };
    for version in 0..3 {
        let stranger = page(version, "Sign in");
        site.strangers(2, &stranger);
        // Of the last version fewer members are seen than of those before.
        site.members(5 - version, &page(version, "<b>{}</b>"));
        site.strangers(2, &stranger);
    }
    let verdict = site.verdict();
    let Verdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
    assert_eq!((gaps.len(), gaps[0].line), (1, 1), "{gaps:?}");
}

/// Prints the cost of a page, and the memory of the worst survey: `cargo test --release -p
/// kirin-advice -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let key = RandomState::new();
    let page: String =
        (0..400).map(|n| format!("<li><a href=\"/memo/{n}\">Memo {n}</a></li>\n")).collect();
    let began = std::time::Instant::now();
    for _ in 0..1000 {
        let mut splitter = Splitter::new(key.clone());
        let mut own = OwnValues::new(["0123456789abcdef0123456789abcdef".as_bytes()].into_iter());
        splitter.add(page.as_bytes());
        own.search(page.as_bytes());
        std::hint::black_box((splitter.finish(), own.is_found()));
    }
    println!("{} bytes: {:?}", page.len(), began.elapsed() / 1000);
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
        let pages: usize =
            pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
        pages * 4096
    };
    let before = resident();
    let mut site = Site::new();
    let names: Vec<String> = (0..16).map(|n| format!("cookie{n}")).collect();
    for path in 0..1000 {
        let path = format!("/{}{path}", "x".repeat(1000));
        for visitor in 0..80 {
            let (value, address) = (format!("{visitor}"), format!("10.0.0.{visitor}"));
            let cookies: Vec<_> =
                names.iter().map(|name| (name.as_str(), value.as_str())).collect();
            let body = format!("{}{}", ",".repeat(300), visitor / 2);
            let cookies = if visitor % 4 == 0 { &[][..] } else { &cookies };
            site.ask(Visit {
                path: &path,
                cookies,
                address: &address,
                body: &body,
                ..Visit::default()
            });
        }
    }
    let pieces = site.survey.targets().map(|(_, evidence)| evidence.pieces()).sum::<usize>();
    println!("{pieces} pieces: {} MB", (resident() - before) >> 20);
    let began = std::time::Instant::now();
    let report = site.report();
    println!("report of {} entries: {:?}", report.entries.len(), began.elapsed());
}
