//! A site for tests: visitors send requests to its pages, and a survey observes the answers.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::observation::{
    AdvisedRoute, Observation, ObservedBody, ObservedTarget, Statement, Visitor,
};
use crate::own_values::OwnValues;
use crate::pieces::Splitter;
use crate::report::{Report, ReportEntry, RouteFacts, report};
use crate::survey::{Demands, Survey};
use crate::verdict::{PageVerdict, Reason};

/// A site that is observed. Each request comes a second after the one before.
pub(crate) struct TestSite {
    key: RandomState,
    /// What was observed.
    pub(crate) survey: Survey,
    /// How much evidence is needed.
    pub(crate) demands: Demands,
    seconds: u64,
    /// Whether the route lets in some clients only.
    pub(crate) is_protected: bool,
}

/// One request and its answer.
#[derive(Clone)]
pub(crate) struct Visit<'a> {
    /// The path.
    pub(crate) path: &'a str,
    /// Whether the method is GET.
    pub(crate) method_is_read: bool,
    /// The names and values of cookies.
    pub(crate) cookies: &'a [(&'a str, &'a str)],
    /// `Authorization`. Empty for none.
    pub(crate) authorization: &'a str,
    /// `X-Api-Key`. Empty for none.
    pub(crate) field: &'a str,
    /// The address of the client.
    pub(crate) address: &'a str,
    /// `Accept-Language`. Empty for none.
    pub(crate) language: &'a str,
    /// `User-Agent`.
    pub(crate) agent: &'a str,
    /// The status of the answer.
    pub(crate) status: u16,
    /// The body of the answer.
    pub(crate) body: &'a str,
    /// What the head of the answer says.
    pub(crate) statement: Statement,
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

impl TestSite {
    /// Creates a site with one route.
    pub(crate) fn new() -> Self {
        Self {
            key: RandomState::new(),
            survey: Survey::default(),
            demands: Demands::default(),
            seconds: 0,
            is_protected: false,
        }
    }

    /// Sends a request, a second after the one before.
    pub(crate) fn ask(&mut self, asked: Visit<'_>) {
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
            target: ObservedTarget {
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
    pub(crate) fn strangers(&mut self, count: usize, body: &str) {
        for number in 0..count {
            let address = format!("192.0.2.{number}");
            self.ask(Visit { address: &address, body, ..Visit::default() });
        }
    }

    /// Sends requests of `count` members. `{}` in the body is the name of the member.
    pub(crate) fn members(&mut self, count: usize, body: &str) {
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

    /// Returns the report of all pages.
    pub(crate) fn report(&self) -> Report {
        let route =
            AdvisedRoute { path: "/".into(), place: "app:web".into(), ..AdvisedRoute::default() };
        let facts = RouteFacts { route, site: String::new(), is_protected: self.is_protected };
        report(&self.survey, &self.demands, &BTreeMap::from([(0, facts)]), self.seconds as f64)
    }

    /// Returns the entry of the only page.
    pub(crate) fn entry(&self) -> ReportEntry {
        let report = self.report();
        assert_eq!(report.entries.len(), 1, "{report:#?}");
        report.entries.into_iter().next().expect("an entry")
    }

    /// Returns the verdict about the only page.
    pub(crate) fn verdict(&self) -> PageVerdict {
        self.entry().verdict
    }

    /// Returns the reasons against sharing the only page.
    pub(crate) fn reasons(&self) -> Vec<Reason> {
        match self.verdict() {
            PageVerdict::Unsafe { reasons } => reasons,
            other => panic!("{other:?}"),
        }
    }
}

/// The body of a page.
pub(crate) const PAGE: &str =
    "<!DOCTYPE html>\n<title>Today</title>\n<p>The same for all of us, today.</p>\n";
