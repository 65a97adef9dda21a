//! The reasons against sharing a page that do not depend on how its bodies differ.

use crate::evidence::{Evidence, Sample};
use crate::observation::ObservedTarget;
use crate::verdict::Reason;

/// Returns the reasons against sharing a page whatever its bodies are.
pub(crate) fn reasons(
    target: &ObservedTarget,
    evidence: &Evidence,
    is_protected: bool,
) -> Vec<Reason> {
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

#[cfg(test)]
#[path = "reasons_tests.rs"]
mod tests;
