//! The names and dates in a certificate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::error::AcmeError;

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first valid second.
    pub from: SystemTime,
    /// The last valid second.
    pub until: SystemTime,
}

/// An issued certificate.
#[derive(Clone, Debug)]
pub struct IssuedCertificate {
    /// The certificate in DER, without the certificates that lead to its authority.
    pub der: CertificateDer<'static>,
    /// The time in which it is valid.
    pub lifetime: Lifetime,
    names: Vec<String>,
}

impl IssuedCertificate {
    /// Parses the first certificate in a PEM text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AcmeError> {
        let failed = |error: String| AcmeError::Certificate(error);
        let der = CertificateDer::from_pem_slice(pem).map_err(|error| failed(error.to_string()))?;
        let (_, certificate) = X509Certificate::from_der(&der)
            .map_err(|error| failed(format!("not X.509: {error}")))?;
        let validity = certificate.validity();
        let lifetime = Lifetime {
            from: time(validity.not_before.timestamp()),
            until: time(validity.not_after.timestamp()),
        };
        let alternative_names = certificate.subject_alternative_name().ok().flatten();
        let names = alternative_names.into_iter().flat_map(|names| &names.value.general_names);
        let names = names
            .filter_map(|name| match name {
                GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        Ok(Self { lifetime, names, der: der.clone().into_owned() })
    }

    /// Returns whether the certificate is for all of these names.
    pub fn is_for(&self, domains: &[String]) -> bool {
        domains.iter().all(|domain| self.names.contains(domain))
    }

    /// Returns whether the certificate was issued later. All machines find the same one of two that
    /// were issued in the same second.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let order = |issued: &Self| (issued.lifetime.from, issued.lifetime.until);
        (order(self), &*self.der) > (order(other), &*other.der)
    }
}

fn time(unix_seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(unix_seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dates_are_read() {
        let mut params = rcgen::CertificateParams::new(["a.test".into(), "b.test".into()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = key.serialize_pem() + &params.self_signed(&key).unwrap().pem();
        let issued = IssuedCertificate::from_pem(pem.as_bytes()).unwrap();
        let life = issued.lifetime.until.duration_since(issued.lifetime.from).unwrap();
        assert_eq!(life.as_secs() / 86_400, 90);
        let is_for = |names: &[&str]| {
            issued.is_for(&names.iter().map(|&name| name.into()).collect::<Vec<_>>())
        };
        assert!(is_for(&["a.test"]) && is_for(&["b.test", "a.test"]));
        assert!(!is_for(&["a.test", "c.test"]));
        assert!(IssuedCertificate::from_pem(b"hello").is_err());
    }

    #[test]
    fn one_of_two_certificates_is_newer() {
        let issue = |from: (i32, u8, u8), until: (i32, u8, u8)| {
            let mut params = rcgen::CertificateParams::new(["a.test".into()]).unwrap();
            params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
            params.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
            let key = rcgen::KeyPair::generate().unwrap();
            IssuedCertificate::from_pem(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap()
        };
        // The authority has shortened the life of its certificates.
        let (old, new) = (issue((2026, 1, 1), (2026, 4, 1)), issue((2026, 3, 1), (2026, 3, 7)));
        assert!(new.is_newer_than(&old) && !old.is_newer_than(&new));
        assert!(!new.is_newer_than(&new.clone()));
        let same = issue((2026, 3, 1), (2026, 3, 7));
        assert_ne!(new.is_newer_than(&same), same.is_newer_than(&new), "all take the same one");
    }
}
