//! Selects a certificate by the server name that a client asks for (SNI, RFC 6066 section 3), and
//! reads certificates from files.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{CertificateFiles, TlsError};

/// The certificates of a listener. They can be exchanged while it serves.
#[derive(Debug)]
pub(crate) struct Certificates(ArcSwap<CertificateNames>);

/// A certificate that clients may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCertificate {
    /// The DNS names that it is for.
    pub names: Vec<String>,
    /// The certificate, without the intermediate certificates.
    pub der: CertificateDer<'static>,
}

/// Certificates by name. A name may have several, for clients that can verify only one kind of
/// signature.
#[derive(Debug, Default)]
struct CertificateNames {
    /// DNS names in lower case, `*.example.org` for wildcards.
    by_name: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// All of them, in the order of the settings.
    all: Vec<Arc<CertifiedKey>>,
    /// The certificates for all other names: the first certificate, and others with the same names.
    default: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    pub(crate) fn new(certificates: Vec<Arc<CertifiedKey>>) -> Self {
        Self(ArcSwap::from_pointee(CertificateNames::new(certificates)))
    }

    /// Returns the certificates, each once, with the names that they are for.
    pub(crate) fn served(&self) -> Vec<ServedCertificate> {
        let names = self.0.load();
        let named = names.by_name.values().flatten();
        let mut served: Vec<ServedCertificate> = Vec::new();
        for certificate in names.default.iter().chain(named) {
            let Some(der) = certificate.cert.first() else { continue };
            if !served.iter().any(|known| known.der == *der) {
                served.push(ServedCertificate { names: dns_names(certificate), der: der.clone() });
            }
        }
        served
    }

    /// Returns all certificates, in the order of the settings.
    pub(crate) fn all(&self) -> Vec<Arc<CertifiedKey>> {
        self.0.load().all.clone()
    }

    pub(crate) fn replace(&self, certificates: Vec<Arc<CertifiedKey>>) {
        self.0.store(Arc::new(CertificateNames::new(certificates)));
    }
}

impl CertificateNames {
    fn new(certificates: Vec<Arc<CertifiedKey>>) -> Self {
        let mut names = CertificateNames { all: certificates.clone(), ..Self::default() };
        let mut names_of_first = Vec::new();
        for (index, certificate) in certificates.into_iter().enumerate() {
            let of_this = dns_names(&certificate);
            if index == 0 {
                names_of_first.clone_from(&of_this);
            }
            if index == 0 || of_this == names_of_first {
                names.default.push(Arc::clone(&certificate));
            }
            for name in of_this {
                names.by_name.entry(name).or_default().push(Arc::clone(&certificate));
            }
        }
        names
    }

    /// Returns the certificates for the name that a client asks for.
    fn for_name(&self, name: Option<&str>) -> &[Arc<CertifiedKey>] {
        let Some(name) = name else { return &self.default };
        let name = name.to_ascii_lowercase();
        // A wildcard stands for exactly one label (RFC 9525 section 6.3).
        let wildcard = || {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        self.by_name.get(&name).or_else(wildcard).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let names = self.0.load();
        let candidates = names.for_name(client.server_name());
        let verifiable = candidates.iter().find(|certificate| {
            certificate.key.choose_scheme(client.signature_schemes()).is_some()
        });
        verifiable.or(candidates.first()).cloned()
    }
}

/// Returns the names of a certificate.
fn dns_names(certificate: &CertifiedKey) -> Vec<String> {
    let Some(der) = certificate.cert.first() else { return Vec::new() };
    match webpki::EndEntityCert::try_from(der) {
        Ok(certificate) => certificate.valid_dns_names().map(str::to_ascii_lowercase).collect(),
        Err(_) => Vec::new(),
    }
}

/// Reads a certificate and its key, and checks that they match.
pub(crate) fn load_certificate(files: &CertificateFiles) -> Result<CertifiedKey, TlsError> {
    let CertificateFiles { chain, key } = files;
    let certificates = read_certificates(chain)?;
    let private_key = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|error| TlsError::Content(key.clone(), pem_problem(&error, "private key")))?;
    warn_of_readable_key(key);
    warn_of_missing_names(chain, &certificates);
    CertifiedKey::from_der(certificates, private_key, &default_provider())
        .map_err(|error| TlsError::Pair { chain: chain.clone(), key: key.clone(), error })
}

/// Reads the certificates of the authorities of client certificates.
pub(crate) fn load_client_authorities(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Content(file.to_owned(), error.to_string()))?;
    }
    Ok(roots)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed =
        |error: pem::Error| TlsError::Content(file.to_owned(), pem_problem(&error, "certificate"));
    let text = read(file)?;
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(failed)?;
    if certificates.is_empty() {
        return Err(failed(pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|error| TlsError::Read(file.to_owned(), error))
}

fn pem_problem(error: &pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("there is no {wanted} in it; PEM is expected"),
        other => format!("not PEM: {other:?}"),
    }
}

fn warn_of_readable_key(key: &Path) {
    let mode = fs::metadata(key).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o004 != 0 {
        tracing::warn!("private key {} can be read by every user of this machine", key.display());
    }
}

fn warn_of_missing_names(chain: &Path, certificates: &[CertificateDer<'_>]) {
    if let Some(name) = certificates.first().and_then(common_name_only) {
        tracing::warn!(
            "certificate {} has no subjectAltName, and its common name `{name}` does not count: \
             clients refuse it, and Kirin does not choose it when they ask for that name",
            chain.display()
        );
    }
}

/// Returns the common name of a certificate that has no `subjectAltName`. RFC 9525 section 6.3 does
/// not let clients look at the common name.
fn common_name_only(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    if !matches!(certificate.subject_alternative_name(), Ok(None)) {
        return None;
    }
    let name = certificate.subject().iter_common_name().next()?;
    Some(name.as_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(names: &[&str]) -> Arc<CertifiedKey> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        Arc::new(
            CertifiedKey::from_der(vec![made.cert.der().clone()], key, &default_provider())
                .unwrap(),
        )
    }

    #[test]
    fn the_certificate_is_that_of_the_name_or_else_the_first() {
        let (first, second, wild) = (
            certificate(&["first.test", "www.first.test"]),
            certificate(&["second.test"]),
            certificate(&["*.wild.test"]),
        );
        let names =
            CertificateNames::new(vec![Arc::clone(&first), Arc::clone(&second), Arc::clone(&wild)]);
        for (asked, expected) in [
            (None, &first),
            (Some("first.test"), &first),
            (Some("WWW.First.Test"), &first),
            (Some("second.test"), &second),
            (Some("www.second.test"), &first),
            (Some("a.wild.test"), &wild),
            (Some("a.b.wild.test"), &first),
            (Some("wild.test"), &first),
            (Some("unknown"), &first),
        ] {
            let got = names.for_name(asked);
            assert!(got.len() == 1 && Arc::ptr_eq(&got[0], expected), "{asked:?}");
        }
    }

    #[test]
    fn a_name_with_two_certificates_has_both() {
        let names = CertificateNames::new(vec![certificate(&["a.test"]), certificate(&["a.test"])]);
        assert_eq!((names.for_name(Some("a.test")).len(), names.for_name(None).len()), (2, 2));
    }

    #[test]
    fn a_certificate_with_a_common_name_only_is_recognized() {
        let common_name = |alternative: &[&str], common: Option<&str>| {
            let names: Vec<String> = alternative.iter().map(|name| (*name).to_owned()).collect();
            let mut params = rcgen::CertificateParams::new(names).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            if let Some(common) = common {
                params.distinguished_name.push(rcgen::DnType::CommonName, common);
            }
            let key = rcgen::KeyPair::generate().unwrap();
            common_name_only(params.self_signed(&key).unwrap().der())
        };
        assert_eq!(common_name(&[], Some("a.test")).as_deref(), Some("a.test"));
        assert_eq!(common_name(&["a.test"], Some("a.test")), None);
        assert_eq!(common_name(&["192.0.2.1"], Some("a.test")), None);
        assert_eq!(common_name(&[], None), None);
    }

    #[test]
    fn errors_name_the_file_and_what_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (one, other) = (
            rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap(),
            rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap(),
        );
        let chain = path("a.pem", &one.cert.pem());
        let key = path("a.key", &one.signing_key.serialize_pem());
        let wrong_key = path("b.key", &other.signing_key.serialize_pem());
        let garbage = path("garbage", "hello");
        let load = |chain: &Path, key: &Path| {
            load_certificate(&CertificateFiles { chain: chain.into(), key: key.into() })
        };
        assert!(load(&chain, &key).is_ok());
        let missing = directory.path().join("missing");
        for (result, parts) in [
            (load(&chain, &wrong_key), vec!["a.pem", "b.key", "KeyMismatch"]),
            (load(&garbage, &key), vec!["garbage", "there is no certificate"]),
            (load(&chain, &garbage), vec!["garbage", "there is no private key"]),
            (load(&chain, &missing), vec!["cannot read", "missing", "No such file"]),
        ] {
            let error = result.map(|_| ()).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{error} without {part}");
            }
        }
    }
}
