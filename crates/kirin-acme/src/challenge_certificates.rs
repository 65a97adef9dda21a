//! The tls-alpn-01 challenge (RFC 8737), by which an authority checks that a name leads here.
//!
//! The authority makes a TLS handshake and expects a certificate for the name which nobody has
//! signed. It contains the digest of the key authorization. The machine that orders makes it
//! beforehand. Another machine finds the key authorization on the origin, and makes one itself.

use kirin_server::{ChallengeCertificate, ChallengeCertificates, FoundCertificate};
use rcgen::{Certificate, CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use ring::digest;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::challenges::Challenges;
use crate::error::AcmeError;

/// Returns the certificate that proves `name`, for its handshake.
pub fn challenge_certificate(
    name: &str,
    key_authorization: &str,
) -> Result<ChallengeCertificate, AcmeError> {
    let (certificate, key) =
        signed(name, key_authorization).map_err(|error| AcmeError::Proof(name.into(), error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(ChallengeCertificate::new(certificate.der().clone(), key)?)
}

/// Makes the certificate and its key (RFC 8737 section 3).
fn signed(name: &str, key_authorization: &str) -> Result<(Certificate, KeyPair), rcgen::Error> {
    let proof = digest::digest(&digest::SHA256, key_authorization.as_bytes());
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(proof.as_ref())];
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?, key))
}

impl ChallengeCertificates for Challenges {
    fn find<'a>(&'a self, name: &'a str) -> FoundCertificate<'a> {
        Box::pin(async {
            let name = name.to_ascii_lowercase();
            if let Some(certificate) = self.own_certificate(&name) {
                return Some(certificate);
            }
            let key_authorization = self.lookup_name(&name)?.key_authorization().await?;
            let certificate = challenge_certificate(&name, &key_authorization);
            certificate.inspect_err(|error| tracing::warn!(%error, "no proof of {name}")).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    /// The id of the extension `acmeIdentifier`.
    const ACME_IDENTIFIER: &str = "1.3.6.1.5.5.7.1.31";

    #[test]
    fn the_certificate_has_one_name_and_the_digest_of_the_key_authorization() {
        let (certificate, _) = signed("a.test", "token.print").unwrap();
        let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        let names: Vec<_> = names.value.general_names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["DNSName(a.test)"]);
        let extension = parsed.extensions().iter();
        let extension =
            extension.filter(|extension| extension.oid.to_id_string() == ACME_IDENTIFIER);
        let extension: Vec<_> = extension.collect();
        let digest = digest::digest(&digest::SHA256, b"token.print");
        // An OCTET STRING of 32 bytes.
        let expected = [&[4, 32], digest.as_ref()].concat();
        assert_eq!(extension.len(), 1);
        assert_eq!((extension[0].critical, extension[0].value), (true, &expected[..]));
        assert_eq!(parsed.subject(), parsed.issuer());
    }

    #[tokio::test]
    async fn a_certificate_is_found_while_its_order_goes_on() {
        let challenges = Arc::new(Challenges::default());
        let found = async |name: &str| challenges.find(name).await.is_some();
        assert!(!found("a.test").await);
        let (mut first, mut second) = (challenges.answers(), challenges.answers());
        first.add_certificate("a.test", challenge_certificate("a.test", "a.print").unwrap());
        assert!(found("a.test").await && found("A.Test").await && !found("b.test").await);
        // Another authority wants proof of the same name.
        second.add_certificate("a.test", challenge_certificate("a.test", "b.print").unwrap());
        drop(first);
        assert!(found("a.test").await, "the second order goes on");
        drop(second);
        assert!(!found("a.test").await);
    }
}
