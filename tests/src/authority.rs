//! A certificate authority for tests.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::Site;

/// A certificate authority that only the test trusts.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key in PEM.
pub struct Issued {
    /// The certificate in PEM.
    pub chain: String,
    /// The private key in PEM.
    pub key: String,
}

impl Authority {
    /// Creates an authority.
    ///
    /// # Panics
    /// Panics if there is no randomness.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority") }
    }

    /// Returns the authority's own certificate in PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate for a server, valid from some days ago until some days ahead.
    ///
    /// # Panics
    /// Panics if the name is invalid.
    pub fn issue_for_days(&self, name: &str, since: u32, rest: u32) -> Issued {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        let day = Duration::from_secs(86_400);
        params.not_before = (SystemTime::now() - day * since).into();
        params.not_after = (SystemTime::now() + day * rest).into();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { chain: certificate.pem(), key: key.serialize_pem() }
    }

    /// Issues a certificate for each name. All have the same key, so a thousand take less than a
    /// second.
    ///
    /// # Panics
    /// Panics if a name is invalid.
    pub fn issue_each(&self, names: &[String]) -> Vec<Issued> {
        let key = KeyPair::generate().expect("a key");
        let issue = |name: &String| {
            let params = CertificateParams::new([name.clone()]).expect("a name");
            let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
            Issued { chain: certificate.pem(), key: key.serialize_pem() }
        };
        names.iter().map(issue).collect()
    }

    /// Issues a certificate for servers of these names. The first name is also that of its holder.
    ///
    /// # Panics
    /// Panics if a name is invalid.
    pub fn issue(&self, names: &[&str]) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Kirin, tests");
        params
            .distinguished_name
            .push(DnType::CommonName, names.first().cloned().unwrap_or_default());
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { chain: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes `NAME.pem` and `NAME.key` into a site.
    ///
    /// # Panics
    /// Panics if they cannot be written.
    pub fn write(&self, site: &Site, name: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(site.path(&format!("{name}.pem")), &self.chain).expect("a chain");
        let key = site.path(&format!("{name}.key"));
        std::fs::write(&key, &self.key).expect("a key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))
            .expect("permissions");
    }
}
