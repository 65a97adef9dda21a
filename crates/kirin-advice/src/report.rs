//! The report of a run: the pages by verdict, and what their place in memory would save.

use std::collections::{BTreeMap, BTreeSet};

use kirin_url_patterns::pattern_at_first_sight;
use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::judge::Judge;
use crate::observation::{AdvisedRoute, Freshness, ObservedTarget};
use crate::survey::{Demands, Survey};
use crate::verdict::PageVerdict;

/// The most entries of a report.
const MAX_ENTRIES: usize = 200;

/// How many pages of one pattern stand for themselves. More are one entry.
const MAX_ALONE: usize = 2;

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How long the run was, in seconds.
    pub seconds: f64,
    /// The requests to applications and upstreams.
    pub requests: u64,
    /// The time of the applications and upstreams, in seconds.
    pub place_seconds: f64,
    /// The requests for targets for which there was no room.
    pub left_out: u64,
    /// How many bodies were not compared piece by piece, because their pieces had no room.
    pub without_pieces: u64,
    /// The cookies that name sessions.
    pub sessions: Vec<String>,
    /// The fewest visitors that an advice needs.
    pub visitors_needed: usize,
    /// The pages, sorted by the time that their place in memory would save.
    pub entries: Vec<ReportEntry>,
    /// How many entries are not in the report.
    pub more_entries: usize,
}

/// A page, or pages with the same pattern and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportEntry {
    /// The route.
    pub route: AdvisedRoute,
    /// The label of the site. It is empty for routes at the top level.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// The host.
    pub host: String,
    /// The path and query, or the pattern of paths.
    pub target: String,
    /// The path as sent, if it is one page.
    pub path: Option<String>,
    /// How many pages it is.
    pub pages: usize,
    /// The requests.
    pub requests: u64,
    /// The time of the place, in seconds.
    pub place_seconds: f64,
    /// The most visitors of one of the pages: addresses without credentials, and others.
    pub visitors: usize,
    /// The requests that memory would answer.
    pub saved_requests: u64,
    /// The time of the place that memory would save, in seconds.
    pub saved_seconds: f64,
    /// What the evidence says.
    #[serde(flatten)]
    pub verdict: PageVerdict,
    /// How long the page stayed the same.
    pub steady: Option<Steady>,
    /// Whether the application states how long its response is fresh.
    pub freshness: StatedFreshness,
    /// Whether its media type is `text/html`.
    pub is_html: bool,
    /// Whether another request for its path got a response that is not safe to share.
    pub is_path_mixed: bool,
}

/// How long a page stayed the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// The time from the first to the last request, in seconds.
    pub observed_seconds: f64,
    /// How often it changed.
    pub changes: u64,
    /// The shortest time between changes, in seconds.
    pub shortest_seconds: Option<f64>,
    /// The freshness lifetime that suits, in seconds.
    pub ttl_seconds: Option<u64>,
}

/// What the application states about freshness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatedFreshness {
    /// Nothing. The route's `ttl` counts.
    #[default]
    None,
    /// Some seconds.
    Lifetime,
    /// It must be validated each time.
    Validate,
}

/// A route with what advice must know of it.
#[derive(Clone, Debug, Default)]
pub struct RouteFacts {
    /// The route.
    pub route: AdvisedRoute,
    /// The label of its site. It is empty for routes at the top level.
    pub site: String,
    /// Whether it lets in some clients only.
    pub is_protected: bool,
}

/// Makes the report of a survey that took `seconds`. `routes` are by their numbers.
pub fn report(
    survey: &Survey,
    demands: &Demands,
    routes: &BTreeMap<u32, RouteFacts>,
    seconds: f64,
) -> Report {
    let judge = Judge::new(survey, demands);
    let nothing = RouteFacts::default();
    let judged: Vec<(&ObservedTarget, ReportEntry)> = survey
        .targets()
        .map(|(target, evidence)| {
            let facts = routes.get(&target.route).unwrap_or(&nothing);
            (target, entry(&judge, target, evidence, facts, seconds))
        })
        .collect();
    // A route is for all hosts, schemes and queries of a path.
    let mixed: BTreeSet<(u32, &str)> = judged
        .iter()
        .filter(|(target, entry)| target.is_read && is_mixing(&entry.verdict))
        .map(|(target, _)| (target.route, target.path.as_str()))
        .collect();
    let mut groups: BTreeMap<_, Vec<ReportEntry>> = BTreeMap::new();
    for (target, mut entry) in judged {
        entry.is_path_mixed = mixed.contains(&(target.route, target.path.as_str()));
        let pattern = pattern_at_first_sight(&target.path);
        let alike = (target.route, &target.host, pattern, kind(&entry.verdict));
        groups.entry(alike).or_default().push(entry);
    }
    let mut entries = Vec::new();
    for ((_, _, pattern, _), group) in groups {
        match group.len() > MAX_ALONE {
            true => entries.extend(joined(pattern, group)),
            false => entries.extend(group),
        }
    }
    entries.sort_by(|one, other| {
        let cost = |entry: &ReportEntry| (entry.saved_seconds, entry.place_seconds);
        let (one_cost, other_cost) = (cost(one), cost(other));
        other_cost
            .0
            .total_cmp(&one_cost.0)
            .then(other_cost.1.total_cmp(&one_cost.1))
            .then(one.target.cmp(&other.target))
    });
    let more_entries = entries.len().saturating_sub(MAX_ENTRIES);
    entries.truncate(MAX_ENTRIES);
    let totals = survey.totals();
    Report {
        seconds,
        requests: totals.requests,
        place_seconds: totals.place_time.as_secs_f64(),
        left_out: totals.left_out,
        without_pieces: totals.without_pieces,
        sessions: judge.sessions(),
        visitors_needed: demands.visitors,
        entries,
        more_entries,
    }
}

fn entry(
    judge: &Judge<'_>,
    target: &ObservedTarget,
    evidence: &Evidence,
    facts: &RouteFacts,
    seconds: f64,
) -> ReportEntry {
    let judgement = judge.judge(target, evidence, facts.is_protected);
    let counts = &evidence.counts;
    let steady = judgement.steadiness.map(|steadiness| Steady {
        observed_seconds: steadiness.observed.as_secs_f64(),
        changes: steadiness.changes,
        shortest_seconds: steadiness.shortest.map(|shortest| shortest.as_secs_f64()),
        ttl_seconds: steadiness.ttl_seconds(),
    });
    let ttl = steady.and_then(|steady| steady.ttl_seconds);
    // The requests that still reach the place: one for each lifetime, or for each change.
    let renewals = |per: u64| (seconds / per as f64).ceil().max(1.0) as u64;
    let saved_requests = match &judgement.verdict {
        PageVerdict::Everybody => {
            ttl.map_or(0, |ttl| counts.requests.saturating_sub(renewals(ttl)))
        }
        PageVerdict::WithoutCookie { .. } => {
            ttl.map_or(0, |ttl| counts.anonymous.saturating_sub(renewals(ttl)))
        }
        PageVerdict::SameBut { .. } => {
            counts.requests.saturating_sub(1 + steady.map_or(0, |steady| steady.changes))
        }
        PageVerdict::NeedsKey { values, .. } => counts.requests.saturating_sub(*values as u64),
        _ => 0,
    };
    let place_seconds = counts.place_time.as_secs_f64();
    let share = saved_requests as f64 / counts.requests.max(1) as f64;
    ReportEntry {
        route: facts.route.clone(),
        site: facts.site.clone(),
        host: target.host.clone(),
        target: match &target.query {
            Some(query) => format!("{}?{query}", target.path),
            None => target.path.clone(),
        },
        path: Some(target.path.clone()),
        pages: 1,
        requests: counts.requests,
        place_seconds,
        visitors: evidence.visitors(),
        saved_requests,
        saved_seconds: place_seconds * share,
        verdict: judgement.verdict,
        steady,
        freshness: match evidence.said.freshness {
            Freshness::Unstated => StatedFreshness::None,
            Freshness::Validate | Freshness::Seconds(0) => StatedFreshness::Validate,
            Freshness::Seconds(_) => StatedFreshness::Lifetime,
        },
        is_html: evidence.said.html > 0,
        is_path_mixed: false,
    }
}

/// Returns whether a verdict about one target of a path forbids a cache for all of the path.
fn is_mixing(verdict: &PageVerdict) -> bool {
    matches!(
        verdict,
        PageVerdict::Unsafe { .. } | PageVerdict::NeedsKey { .. } | PageVerdict::SameBut { .. }
    )
}

/// Returns one word for verdicts that can be told together.
fn kind(verdict: &PageVerdict) -> String {
    match verdict {
        PageVerdict::Everybody => "everybody".into(),
        PageVerdict::WithoutCookie { others_differ } => format!("without cookie {others_differ}"),
        PageVerdict::SameBut { .. } => "same but".into(),
        PageVerdict::NeedsKey { key, .. } => format!("key {key:?}"),
        PageVerdict::Changing => "changing".into(),
        PageVerdict::Stored => "stored".into(),
        PageVerdict::Unsafe { reasons } => format!("unsafe {reasons:?}"),
        PageVerdict::Unproven { .. } => "unproven".into(),
    }
}

/// Joins pages with the same pattern and verdict. The page that costs most speaks for all.
fn joined(pattern: String, mut group: Vec<ReportEntry>) -> Option<ReportEntry> {
    group.sort_by(|one, other| other.place_seconds.total_cmp(&one.place_seconds));
    let mut group = group.into_iter();
    let mut all = group.next()?;
    all.target = pattern;
    all.path = None;
    for entry in group {
        all.pages += 1;
        all.requests += entry.requests;
        all.place_seconds += entry.place_seconds;
        all.saved_requests += entry.saved_requests;
        all.saved_seconds += entry.saved_seconds;
        all.visitors = all.visitors.max(entry.visitors);
        all.is_path_mixed |= entry.is_path_mixed;
        all.steady = match (all.steady, entry.steady) {
            (Some(one), Some(other)) => Some(least(one, other)),
            _ => None,
        };
    }
    Some(all)
}

/// Returns what is true of two pages.
fn least(one: Steady, other: Steady) -> Steady {
    let shortest = one.shortest_seconds.into_iter().chain(other.shortest_seconds);
    Steady {
        observed_seconds: one.observed_seconds.min(other.observed_seconds),
        changes: one.changes.max(other.changes),
        shortest_seconds: shortest.min_by(f64::total_cmp),
        ttl_seconds: one.ttl_seconds.min(other.ttl_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Observation, Statement};
    use crate::test_site::{PAGE, TestSite};

    #[test]
    fn one_unsafe_host_or_query_keeps_a_path_out_of_the_configuration() {
        let mut site = TestSite::new();
        site.strangers(3, PAGE);
        site.members(3, PAGE);
        assert!(!site.entry().is_path_mixed);
        let mut other = Observation {
            target: ObservedTarget {
                is_read: true,
                host: "other".into(),
                path: "/page".into(),
                ..ObservedTarget::default()
            },
            status: 200,
            statement: Statement { sets_cookie: true, ..Statement::default() },
            ..Observation::default()
        };
        site.survey.add(other.clone());
        assert!(site.report().entries.iter().all(|entry| entry.is_path_mixed));
        other.target.path = "/elsewhere".into();
        site.survey.add(other);
        assert_eq!(site.report().entries.len(), 3);
    }
}
