//! Judges the evidence about a target: whether its page could be in memory, for whom, and why not.
//!
//! One rule is above all: what is advised to be shared are only bytes that visitors without any
//! credentials have been given. The rest are doubts, and each doubt is a reason against.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::evidence::{BodyOf, CookieName, Evidence, Sample, Window};
use crate::gaps::{Comparison, Gap, compare};
use crate::observation::Target;
use crate::survey::{Demands, Survey};
use crate::versions::Steadiness;

/// The most gaps of a page that is the same but for them.
const MAX_GAPS: usize = 12;

/// The most values of a part of the key.
const MAX_KEY_VALUES: usize = 16;

/// Whether a page could be in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It is the same for everybody.
    Everybody,
    /// It is the same for visitors without cookies and credentials. Others get pages of their own,
    /// or too few were seen.
    WithoutCookie {
        /// Whether other visitors were seen to get something else.
        others_differ: bool,
    },
    /// It is the same but for some places.
    SameBut {
        /// The places.
        gaps: Vec<NamedGap>,
    },
    /// It is the same for visitors with the same value.
    NeedsKey {
        /// The part of the request with the value.
        key: KeyPart,
        /// The number of values that were seen.
        values: usize,
    },
    /// It changes too often.
    Changing,
    /// The application stores it already.
    Stored,
    /// It is not safe to share.
    Unsafe {
        /// Why.
        reasons: Vec<Reason>,
    },
    /// There is too little evidence.
    Unproven {
        /// What is missing.
        missing: Vec<Missing>,
    },
}

/// A place in a page, and what makes the difference there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedGap {
    /// The offset in the page of a visitor without credentials, in bytes.
    pub offset: u64,
    /// The line there, from 1.
    pub line: u64,
    /// The length of the shortest content, in bytes.
    pub shortest: u64,
    /// The length of the longest content, in bytes.
    pub longest: u64,
    /// What makes the difference.
    pub cause: Cause,
}

/// What makes the difference in a gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The value of this cookie.
    Cookie(String),
    /// Whether there is this cookie.
    HasCookie(String),
    /// It is new each time, or changes with time.
    EachTime,
    /// It is not known.
    Unknown,
}

/// A part of a request that a cache key can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPart {
    /// A field of requests.
    Field(String),
    /// A cookie with few values.
    Cookie(String),
}

/// A reason against sharing a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The method is neither GET nor HEAD.
    Method,
    /// Requests have a body.
    RequestBody,
    /// The route lets in some clients only.
    Protected,
    /// Responses set a cookie.
    SetsCookie,
    /// Responses are `private` or `no-store`.
    Private,
    /// Responses have `Vary: *`.
    VariesByAll,
    /// Visitors get different statuses.
    Statuses {
        /// The statuses that visitors without credentials get.
        anonymous: Vec<u16>,
        /// The statuses that others get.
        known: Vec<u16>,
    },
    /// The status is not that of a page.
    Status(u16),
    /// The page has a value of the visitor's own cookies.
    OwnValue,
    /// It is requested with credentials only.
    CredentialsOnly,
    /// It depends on fields of requests that no cache has in its key, and that may say who asks.
    OtherFields(Vec<String>),
    /// It says `public` where visitors with cookies get pages of their own.
    PublicButDiffers,
    /// It depends on the address.
    Address,
    /// It depends on the browser (`User-Agent`).
    Agent,
    /// It differs between requests that differ in nothing.
    Differs,
    /// It is a file.
    File,
    /// It is too long to be compared.
    TooLong,
}

/// Evidence that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// No complete response was seen.
    Body,
    /// So few visitors were seen.
    Visitors {
        /// How many.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
    /// So few addresses were seen.
    Addresses {
        /// How many.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
    /// No visitor without cookies was seen.
    Anonymous,
    /// The application has given different pages to few visitors.
    Versions,
    /// So few different values of these fields were seen, which may say who asks.
    Fields {
        /// The names.
        names: Vec<String>,
        /// How many values.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
}

/// A verdict, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// How long the page stayed the same, if it is steady.
    pub steadiness: Option<Steadiness>,
}

/// Judges the targets of a survey.
pub struct Judge<'a> {
    survey: &'a Survey,
    demands: &'a Demands,
    sessions: Vec<CookieName>,
}

impl<'a> Judge<'a> {
    /// Prepares to judge the targets of `survey`.
    pub fn new(survey: &'a Survey, demands: &'a Demands) -> Self {
        Self { survey, demands, sessions: survey.sessions(demands) }
    }

    /// Returns the names of the cookies that name sessions.
    pub fn sessions(&self) -> Vec<String> {
        self.sessions.iter().map(|name| self.survey.cookie_name(*name).to_owned()).collect()
    }

    /// Judges one target. `is_protected` says that its route lets in some clients only.
    pub fn judge(&self, target: &Target, evidence: &Evidence, is_protected: bool) -> Judgement {
        let of = |verdict| Judgement { verdict, steadiness: None };
        let reasons = reasons(target, evidence, is_protected);
        if !reasons.is_empty() {
            return of(Verdict::Unsafe { reasons });
        }
        if evidence.said.stored > 0 {
            return of(Verdict::Stored);
        }
        if evidence.all_versions.is_empty() {
            return of(Verdict::Unproven { missing: vec![Missing::Body] });
        }
        if evidence.anonymous_versions.is_empty() {
            return of(Verdict::Unproven { missing: self.missing_of_known(evidence) });
        }
        if let Some((key, values)) = self.key_part(evidence, &evidence.samples) {
            return of(key_verdict(key, values));
        }
        let Some(steadiness) = evidence.anonymous_versions.steadiness() else {
            return of(self.judge_unsteady(evidence));
        };
        let verdict = self.judge_steady(evidence, &steadiness);
        Judgement { verdict, steadiness: Some(steadiness) }
    }

    /// Judges a page that visitors without credentials get in the same form.
    fn judge_steady(&self, evidence: &Evidence, steadiness: &Steadiness) -> Verdict {
        if let Some(verdict) = self.judge_other_fields(evidence) {
            return verdict;
        }
        let missing_anonymous = self.missing_of_anonymous(evidence);
        // Each body that anybody got is one that a visitor without credentials got.
        let is_same = evidence.all_versions.steadiness().is_some()
            && evidence.all_versions.bodies().all(|body| evidence.anonymous_versions.has(body));
        let is_changing = steadiness.changes > 0 && steadiness.ttl_seconds().is_none();
        if is_same {
            let missing = self.missing_of_everybody(evidence);
            if is_changing {
                return Verdict::Changing;
            }
            if missing.is_empty() && evidence.said.private_to_known == 0 {
                return Verdict::Everybody;
            }
            if missing_anonymous.is_empty() {
                return Verdict::WithoutCookie { others_differ: false };
            }
            return Verdict::Unproven { missing };
        }
        if evidence.said.public_to_known > 0 {
            return Verdict::Unsafe { reasons: vec![Reason::PublicButDiffers] };
        }
        if let Some(gaps) = self.gaps(evidence) {
            return Verdict::SameBut { gaps };
        }
        match missing_anonymous.is_empty() {
            true if is_changing => Verdict::Changing,
            true => Verdict::WithoutCookie { others_differ: true },
            false => Verdict::Unproven { missing: missing_anonymous },
        }
    }

    /// Judges a page that was requested with fields that may say who asks. The cache does not know
    /// them: it would store the response to such a request for everybody.
    fn judge_other_fields(&self, evidence: &Evidence) -> Option<Verdict> {
        let with: Vec<_> =
            evidence.samples.iter().filter(|sample| sample.others.is_some()).collect();
        let names = || evidence.said.other_fields.iter().cloned().collect();
        if with.iter().any(|sample| !evidence.anonymous_versions.has(sample.body)) {
            return Some(Verdict::Unsafe { reasons: vec![Reason::OtherFields(names())] });
        }
        let seen = with.iter().map(|sample| sample.others).collect::<BTreeSet<_>>().len();
        let needed = self.demands.visitors;
        let missing = vec![Missing::Fields { names: names(), seen, needed }];
        (seen > 0 && seen < needed).then_some(Verdict::Unproven { missing })
    }

    /// Judges a page that differs between visitors without credentials.
    fn judge_unsteady(&self, evidence: &Evidence) -> Verdict {
        let anonymous: Vec<Sample> =
            evidence.samples.iter().filter(|sample| sample.identity().is_none()).cloned().collect();
        if let Some((key, values)) = self.key_part(evidence, &anonymous) {
            return key_verdict(key, values);
        }
        if let Some(gaps) = self.gaps(evidence) {
            return Verdict::SameBut { gaps };
        }
        let is_repeated = evidence.anonymous_versions.has_repeated();
        if !is_repeated && evidence.counts.anonymous < self.demands.visitors as u64 {
            return Verdict::Unproven { missing: vec![Missing::Versions] };
        }
        Verdict::Unsafe { reasons: vec![Reason::Differs] }
    }

    /// Returns what is missing where no visitor without credentials was seen.
    fn missing_of_known(&self, evidence: &Evidence) -> Vec<Missing> {
        let mut missing = vec![Missing::Anonymous];
        let (seen, needed) = (evidence.visitors(), self.demands.visitors);
        if seen < needed {
            missing.push(Missing::Visitors { seen, needed });
        }
        missing
    }

    /// Returns what is missing to say that visitors without credentials get the same.
    fn missing_of_anonymous(&self, evidence: &Evidence) -> Vec<Missing> {
        let Demands { visitors, addresses, .. } = *self.demands;
        let seen = evidence.anonymous_addresses.len();
        let mut missing = Vec::new();
        if seen < addresses {
            missing.push(Missing::Addresses { seen, needed: addresses });
        }
        let requests = usize::try_from(evidence.counts.anonymous).unwrap_or(usize::MAX);
        if requests < visitors {
            missing.push(Missing::Visitors { seen: requests, needed: visitors });
        }
        missing
    }

    /// Returns what is missing to say that everybody gets the same.
    fn missing_of_everybody(&self, evidence: &Evidence) -> Vec<Missing> {
        let Demands { visitors, addresses, .. } = *self.demands;
        let mut missing = Vec::new();
        let values = |name: &CookieName| evidence.cookie_values.get(name).map_or(0, BTreeSet::len);
        let seen = self.sessions.iter().map(values).min().unwrap_or(0);
        if seen < visitors {
            missing.push(Missing::Visitors { seen, needed: visitors });
        }
        let seen = evidence.addresses.len();
        if seen < addresses {
            missing.push(Missing::Addresses { seen, needed: addresses });
        }
        missing
    }

    /// Returns the part of requests that explains all differences, and the number of its values.
    fn key_part(&self, evidence: &Evidence, samples: &[Sample]) -> Option<(Reading, usize)> {
        let differ = |samples: &[Sample]| samples.iter().any(|one| one.body != samples[0].body);
        if samples.len() < 2 || !differ(samples) {
            return None;
        }
        let varies = |name: &str| evidence.said.vary.contains(name);
        let fields: [(Reading, fn(&Sample) -> u64); 4] = [
            (Reading::Field("accept-language"), |sample| sample.language),
            (Reading::Field("accept"), |sample| sample.accept),
            (Reading::Field("user-agent"), |sample| sample.agent),
            (Reading::Address, |sample| sample.address),
        ];
        for (reading, of) in fields {
            // What is in the key already explains nothing more.
            if matches!(reading, Reading::Field(name) if varies(name)) {
                continue;
            }
            if let Some(values) = explained(samples, |sample| Some(of(sample))) {
                return Some((reading, values));
            }
        }
        let names: BTreeSet<CookieName> = samples
            .iter()
            .flat_map(|sample| sample.cookies.iter().map(|(name, _)| *name))
            .collect();
        names.into_iter().filter(|name| !self.sessions.contains(name)).find_map(|name| {
            let values = explained(samples, |sample| value_of(sample, name))?;
            Some((Reading::Cookie(self.survey.cookie_name(name).to_owned()), values))
        })
    }

    /// Returns the gaps of a page of which the rest is the same for enough visitors.
    fn gaps(&self, evidence: &Evidence) -> Option<Vec<NamedGap>> {
        let windows = [Some(&evidence.window), evidence.best_window.as_ref()];
        let windows = windows.into_iter().flatten().filter(|window| !window.anonymous.is_empty());
        let window = windows.max_by_key(|window| (window.known.len(), window.anonymous.len()))?;
        let window = self.at_one_time(evidence, window);
        if self.different_visitors(evidence, &window) < self.demands.visitors {
            return None;
        }
        let bodies: Vec<&BodyOf> = window.anonymous.iter().chain(&window.known).collect();
        let pieces: Vec<&[_]> = bodies.iter().map(|body| body.pieces.as_ref()).collect();
        let Comparison { gaps, common_bytes } = compare(&pieces);
        let longest: u64 = bodies.iter().map(|body| length(body)).max().unwrap_or(0);
        let is_like = !gaps.is_empty() && gaps.len() <= MAX_GAPS && common_bytes * 2 >= longest;
        is_like.then(|| gaps.into_iter().map(|gap| self.named(gap, &bodies, &window)).collect())
    }

    /// Returns the bodies of a window that were got while visitors without credentials got the
    /// same one: their differences are not those of time. Returns all if these are too few.
    fn at_one_time(&self, evidence: &Evidence, window: &Window) -> Window {
        let base = window.anonymous.first().map(|body| body.sample.body);
        let Some((first, last)) = base.and_then(|body| evidence.anonymous_versions.time_of(body))
        else {
            return window.clone();
        };
        let is_in = |body: &&BodyOf| body.sample.first >= first && body.sample.last <= last;
        let known: Vec<BodyOf> = window.known.iter().filter(is_in).cloned().collect();
        let anonymous = window.anonymous.iter().take(1).cloned().collect();
        let narrow = Window { anonymous, known };
        match self.different_visitors(evidence, &narrow) >= self.demands.visitors {
            true if !narrow.known.is_empty() => narrow,
            _ => window.clone(),
        }
    }

    /// Returns how many different visitors a window has: by the cookie that names sessions, or by
    /// address if nobody has one.
    fn different_visitors(&self, evidence: &Evidence, window: &Window) -> usize {
        if window.known.is_empty() {
            let is_proven = self.missing_of_anonymous(evidence).is_empty();
            return if is_proven { self.demands.visitors } else { 0 };
        }
        let sessions = self.sessions.iter().map(|name| {
            let values = window.known.iter().filter_map(|body| value_of(&body.sample, *name));
            values.collect::<BTreeSet<_>>().len()
        });
        sessions.max().unwrap_or(0)
    }

    /// Finds what makes the difference in a gap.
    fn named(&self, gap: Gap, bodies: &[&BodyOf], window: &Window) -> NamedGap {
        let Gap { offset, line, shortest, longest, contents } = gap;
        let anonymous = contents.iter().take(window.anonymous.len()).collect::<BTreeSet<_>>();
        let names =
            bodies.iter().flat_map(|body| body.sample.cookies.iter().map(|(name, _)| *name));
        let names: BTreeSet<CookieName> = names.collect();
        // The cookies that name sessions come first.
        let (first, rest): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| self.sessions.contains(name));
        let name = |name: CookieName| self.survey.cookie_name(name).to_owned();
        let values = |name: CookieName| bodies.iter().map(move |body| value_of(&body.sample, name));
        let follows = |keys: Vec<Option<u64>>| follows(&keys, &contents);
        let cause = if anonymous.len() > 1 {
            Cause::EachTime
        } else {
            let mut all = first.iter().chain(&rest).copied();
            let has = |name: CookieName| values(name).map(|value| value.map(|_| 1)).collect();
            let by_presence = rest.iter().chain(&first).copied().find(|name| follows(has(*name)));
            match by_presence {
                Some(found) => Cause::HasCookie(name(found)),
                None => match all.find(|name| follows(values(*name).collect())) {
                    Some(found) => Cause::Cookie(name(found)),
                    None => Cause::Unknown,
                },
            }
        };
        NamedGap { offset, line, shortest, longest, cause }
    }
}

/// A part of a request that explains differences.
enum Reading {
    Field(&'static str),
    Address,
    Cookie(String),
}

fn key_verdict(reading: Reading, values: usize) -> Verdict {
    let key = match reading {
        Reading::Field("user-agent") => return Verdict::Unsafe { reasons: vec![Reason::Agent] },
        Reading::Address => return Verdict::Unsafe { reasons: vec![Reason::Address] },
        Reading::Field(name) => KeyPart::Field(name.to_owned()),
        Reading::Cookie(name) => KeyPart::Cookie(name),
    };
    Verdict::NeedsKey { key, values }
}

/// Returns the reasons against sharing a page whatever its bodies are.
fn reasons(target: &Target, evidence: &Evidence, is_protected: bool) -> Vec<Reason> {
    let Evidence { counts, said, statuses, .. } = evidence;
    let mut reasons = Vec::new();
    let mut add = |holds: bool, reason: Reason| {
        if holds {
            reasons.push(reason);
        }
    };
    if !target.is_read {
        return vec![Reason::Method];
    }
    add(is_protected, Reason::Protected);
    add(counts.with_body > 0, Reason::RequestBody);
    let of = |known: bool| {
        let seen = statuses.iter().filter(
            move |(_, (anonymous, others))| {
                if known { *others > 0 } else { *anonymous > 0 }
            },
        );
        seen.map(|(status, _)| *status).collect::<Vec<u16>>()
    };
    let (anonymous, known) = (of(false), of(true));
    match statuses.len() {
        0 => {}
        1 => {
            let status = statuses.keys().copied().next().unwrap_or(0);
            add(!matches!(status, 200 | 203 | 301 | 308), Reason::Status(status));
        }
        _ => add(true, Reason::Statuses { anonymous: anonymous.clone(), known }),
    }
    add(said.sets_cookie > 0, Reason::SetsCookie);
    let is_private =
        said.private_to_anonymous > 0 || anonymous.is_empty() && said.private_to_known > 0;
    add(is_private, Reason::Private);
    add(said.varies_by_all > 0, Reason::VariesByAll);
    let is_own = said.own_values.iter().any(|body| !evidence.anonymous_versions.has(*body));
    add(is_own, Reason::OwnValue);
    let has_credentials = |sample: &Sample| sample.credentials.is_some();
    let all = !evidence.samples.is_empty() && evidence.samples.iter().all(has_credentials);
    add(all, Reason::CredentialsOnly);
    add(counts.files > 0, Reason::File);
    add(counts.too_long > 0, Reason::TooLong);
    reasons
}

/// Returns the number of values of a part of requests, if it explains all differences between
/// samples: those with one value get one body after the other, and each of two values or more was
/// seen with several visitors.
fn explained(samples: &[Sample], of: impl Fn(&Sample) -> Option<u64>) -> Option<usize> {
    let mut groups: BTreeMap<Option<u64>, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        groups.entry(of(sample)).or_default().push(sample);
    }
    let mut shared = 0;
    let mut bodies: BTreeSet<Vec<u64>> = BTreeSet::new();
    for group in groups.values_mut() {
        group.sort_by_key(|sample| (sample.variant, sample.first));
        let is_mixed = |pair: &[&Sample]| {
            pair[0].variant == pair[1].variant
                && pair[0].body != pair[1].body
                && (pair[0].last > pair[1].first || pair[0].count + pair[1].count < 3)
        };
        if group.windows(2).any(|pair| is_mixed(pair)) {
            return None;
        }
        let who = group.iter().map(|sample| (sample.identity(), sample.address, sample.agent));
        let visitors = who.collect::<BTreeSet<_>>().len();
        let requests: u64 = group.iter().map(|sample| sample.count).sum();
        // One visitor with a page of his own does not show that others get it, too.
        if visitors > 1 || requests > 2 && group[0].identity().is_none() {
            shared += 1;
            bodies.insert(group.iter().map(|sample| sample.body).collect());
        }
    }
    (groups.len() <= MAX_KEY_VALUES && shared > 1 && bodies.len() > 1).then_some(groups.len())
}

/// Returns whether equal keys have equal contents, and different contents are there.
fn follows(keys: &[Option<u64>], contents: &[u64]) -> bool {
    let mut of_key: BTreeMap<Option<u64>, u64> = BTreeMap::new();
    let is_function = keys
        .iter()
        .zip(contents)
        .all(|(key, content)| *of_key.entry(*key).or_insert(*content) == *content);
    is_function && of_key.values().collect::<BTreeSet<_>>().len() > 1
}

fn value_of(sample: &Sample, name: CookieName) -> Option<u64> {
    sample.cookies.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}

fn length(body: &BodyOf) -> u64 {
    body.pieces.iter().map(|piece| piece.length()).sum()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
