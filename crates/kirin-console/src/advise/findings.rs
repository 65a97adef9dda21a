//! The findings of a report: what was seen of a page, what is missing, and what is against sharing
//! it.

use kirin_advice::report::Steady;
use kirin_advice::verdict::{Missing, Reason};

use super::words::{code, times};
use crate::units::number_of;

pub(super) fn steadiness(steady: &Steady) -> String {
    let observed = steady.observed_seconds;
    match (steady.changes, steady.shortest_seconds) {
        (0, _) => format!("stayed the same for {observed:.0} s"),
        (changes @ 2.., Some(shortest)) => {
            format!("changed {} in {observed:.0} s, at least {shortest:.1} s apart", times(changes))
        }
        (changes, _) => format!("changed {} in {observed:.0} s", times(changes)),
    }
}

pub(super) fn missing_text(missing: &Missing) -> String {
    match missing {
        Missing::Body => "No complete response was seen.".into(),
        Missing::Visitors { seen: 0, needed } => {
            format!("No visitor with a session was seen; {needed} are needed.")
        }
        Missing::Visitors { seen, needed } => {
            format!("Seen {} only; {needed} are needed.", number_of(*seen as u64, "visitor"))
        }
        Missing::Addresses { seen, needed } => {
            let addresses = if *seen == 1 { "address" } else { "addresses" };
            format!(
                "Seen by visitors without a cookie from {seen} {addresses} only; {needed} are needed (--addresses)."
            )
        }
        Missing::Anonymous => "No visitor without a cookie was seen.".into(),
        Missing::Versions => {
            "Each visitor without a cookie got another page, and few were seen.".into()
        }
        Missing::Fields { names, seen, needed } => {
            let names: Vec<_> = names.iter().map(|name| code(name)).collect();
            let values = number_of(*seen as u64, "value");
            format!(
                "Seen with {values} of {} only, which may name the visitor; {needed} are needed.",
                names.join(", ")
            )
        }
    }
}

pub(super) fn reason_text(reason: &Reason) -> String {
    let statuses = |statuses: &[u16]| match statuses {
        [] => "were not seen".to_owned(),
        _ => {
            let list: Vec<String> = statuses.iter().map(u16::to_string).collect();
            format!("get {}", list.join(", "))
        }
    };
    match reason {
        Reason::Method => "The method is not GET or HEAD.".into(),
        Reason::RequestBody => "Requests have a body.".into(),
        Reason::Protected => "The route asks for a password, an address or a certificate.".into(),
        Reason::SetsCookie => "Responses set a cookie.".into(),
        Reason::Private => "The application says `private` or `no-store`.".into(),
        Reason::VariesByAll => "The application says `Vary: *`.".into(),
        Reason::Statuses { anonymous, known } => format!(
            "Visitors get different statuses: those without a cookie {}, others {}.",
            statuses(anonymous),
            statuses(known)
        ),
        Reason::Status(status) => format!("The status is {status}."),
        Reason::OwnValue => "The page has a value of the visitor's own cookies.".into(),
        Reason::CredentialsOnly => "It is only requested with credentials.".into(),
        Reason::OtherFields(names) => format!(
            "It differs with fields that may name the visitor, and that no cache key has: {}.",
            names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
        ),
        Reason::PublicButDiffers => {
            "It says `public`, but visitors with a cookie get other pages. Kirin would share them."
                .into()
        }
        Reason::Address => "It depends on the address of the client.".into(),
        Reason::Agent => "It depends on the browser (`User-Agent`).".into(),
        Reason::Differs => {
            "It differs between visitors without a cookie, and nothing explains it.".into()
        }
        Reason::File => "It is a file, which Kirin sends from the disk.".into(),
        Reason::TooLong => "It is too long to be compared.".into(),
    }
}
