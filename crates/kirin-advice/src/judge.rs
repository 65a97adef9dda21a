//! Judges the evidence about a target: whether its page could be in memory, for whom, and why not.
//!
//! One rule is above all: what is advised to be shared are only bytes that visitors without any
//! credentials have been given. The rest are doubts, and each doubt is a reason against.
use std::collections::BTreeSet;

use crate::evidence::{CookieName, Evidence, Sample};
use crate::key_part::key_verdict;
use crate::observation::ObservedTarget;
use crate::reasons::reasons;
use crate::survey::{Demands, Survey};
use crate::verdict::{Missing, PageVerdict, Reason};
use crate::versions::Steadiness;

/// A verdict, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: PageVerdict,
    /// How long the page stayed the same, if it is steady.
    pub steadiness: Option<Steadiness>,
}

/// Judges the targets of a survey.
pub struct Judge<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) demands: &'a Demands,
    /// The cookies that name sessions.
    pub(crate) sessions: Vec<CookieName>,
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
    pub fn judge(
        &self,
        target: &ObservedTarget,
        evidence: &Evidence,
        is_protected: bool,
    ) -> Judgement {
        let of = |verdict| Judgement { verdict, steadiness: None };
        let reasons = reasons(target, evidence, is_protected);
        if !reasons.is_empty() {
            return of(PageVerdict::Unsafe { reasons });
        }
        if evidence.said.stored > 0 {
            return of(PageVerdict::Stored);
        }
        if evidence.all_versions.is_empty() {
            return of(PageVerdict::Unproven { missing: vec![Missing::Body] });
        }
        if evidence.anonymous_versions.is_empty() {
            return of(PageVerdict::Unproven { missing: self.missing_of_known(evidence) });
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
    fn judge_steady(&self, evidence: &Evidence, steadiness: &Steadiness) -> PageVerdict {
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
                return PageVerdict::Changing;
            }
            if missing.is_empty() && evidence.said.private_to_known == 0 {
                return PageVerdict::Everybody;
            }
            if missing_anonymous.is_empty() {
                return PageVerdict::WithoutCookie { others_differ: false };
            }
            return PageVerdict::Unproven { missing };
        }
        if evidence.said.public_to_known > 0 {
            return PageVerdict::Unsafe { reasons: vec![Reason::PublicButDiffers] };
        }
        if let Some(gaps) = self.gaps(evidence) {
            return PageVerdict::SameBut { gaps };
        }
        match missing_anonymous.is_empty() {
            true if is_changing => PageVerdict::Changing,
            true => PageVerdict::WithoutCookie { others_differ: true },
            false => PageVerdict::Unproven { missing: missing_anonymous },
        }
    }

    /// Judges a page that was requested with fields that may name the visitor. The cache does
    /// not know them: it would store the response to such a request for everybody.
    fn judge_other_fields(&self, evidence: &Evidence) -> Option<PageVerdict> {
        let with: Vec<_> =
            evidence.samples.iter().filter(|sample| sample.others.is_some()).collect();
        let names = || evidence.said.other_fields.iter().cloned().collect();
        if with.iter().any(|sample| !evidence.anonymous_versions.has(sample.body)) {
            return Some(PageVerdict::Unsafe { reasons: vec![Reason::OtherFields(names())] });
        }
        let seen = with.iter().map(|sample| sample.others).collect::<BTreeSet<_>>().len();
        let needed = self.demands.visitors;
        let missing = vec![Missing::Fields { names: names(), seen, needed }];
        (seen > 0 && seen < needed).then_some(PageVerdict::Unproven { missing })
    }

    /// Judges a page that differs between visitors without credentials.
    fn judge_unsteady(&self, evidence: &Evidence) -> PageVerdict {
        let anonymous: Vec<Sample> =
            evidence.samples.iter().filter(|sample| sample.identity().is_none()).cloned().collect();
        if let Some((key, values)) = self.key_part(evidence, &anonymous) {
            return key_verdict(key, values);
        }
        if let Some(gaps) = self.gaps(evidence) {
            return PageVerdict::SameBut { gaps };
        }
        let is_repeated = evidence.anonymous_versions.has_repeated();
        if !is_repeated && evidence.counts.anonymous < self.demands.visitors as u64 {
            return PageVerdict::Unproven { missing: vec![Missing::Versions] };
        }
        PageVerdict::Unsafe { reasons: vec![Reason::Differs] }
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
    pub(crate) fn missing_of_anonymous(&self, evidence: &Evidence) -> Vec<Missing> {
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
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
