//! Takes over the certificate that another Kirin got, from the state directory or from the origin,
//! and shares a newer one of this machine.

use std::time::SystemTime;

use crate::error::AcmeError;
use crate::lifetime::IssuedCertificate;
use crate::renewer::CertificateRenewer;
use crate::schedule::{self, BETWEEN_CERTIFICATES, Failures};
use crate::sharing::SharedCertificate;

/// How often this machine looks again if others share a certificate at the same moment.
const LOOKS: usize = 4;

impl CertificateRenewer {
    /// Looks at the certificate that machines share. A newer one is served from now on. An older
    /// one, or none, is replaced by that of this machine. Returns whether another one is served.
    pub(crate) async fn look(&mut self) -> bool {
        for _ in 0..LOOKS {
            let Some(sharing) = &mut self.sharing else { return false };
            let Ok(shared) = sharing.certificate().await else { return false };
            let own = self.issued.as_ref().filter(|own| self.is_usable(own));
            let other = shared.as_ref().filter(|shared| self.is_usable(&shared.issued));
            if let Some(other) = other
                && own.is_none_or(|own| other.issued.is_newer_than(own))
            {
                return self.take_over(other);
            }
            let Some(own) = own else { return false };
            let is_shared = other.is_some_and(|other| other.issued.der == own.der);
            if is_shared || self.share_own(own, shared.as_ref()).await {
                return false;
            }
        }
        false
    }

    /// Serves the certificate in the directory if another Kirin has put a new one there that need
    /// not be renewed yet. Returns whether it does.
    pub(crate) fn serve_what_another_got(&mut self) -> bool {
        let Ok(kept) = std::fs::read(self.file())
            .map_err(drop)
            .and_then(|pem| IssuedCertificate::from_pem(&pem).map_err(drop))
        else {
            return false;
        };
        let is_new = self.issued.as_ref().is_none_or(|issued| issued.der != kept.der);
        let is_due = schedule::renewal(kept.lifetime, 1.0) <= SystemTime::now();
        if !is_new || is_due || !kept.is_for(&self.config.domains) || self.serve_kept().is_err() {
            return false;
        }
        let until = httpdate::fmt_http_date(kept.lifetime.until);
        tracing::info!(
            "serving a certificate that another Kirin got for {}, good until {until}",
            self.first_domain()
        );
        true
    }

    /// Returns whether a certificate is for all names, and has not expired.
    fn is_usable(&self, issued: &IssuedCertificate) -> bool {
        issued.is_for(&self.config.domains) && SystemTime::now() < issued.lifetime.until
    }

    /// Serves a certificate of another machine, and keeps a copy. Returns whether it does.
    fn take_over(&mut self, shared: &SharedCertificate) -> bool {
        if let Err(error) = self.copy(shared) {
            tracing::error!("cannot serve the certificate that another machine got: {error}");
            return false;
        }
        let until = httpdate::fmt_http_date(shared.issued.lifetime.until);
        tracing::info!(
            "serving a certificate that another machine got for {}, good until {until}",
            self.config.domains.join(", ")
        );
        // The authority may issue certificates that are due at once. The pause is for all machines.
        self.earliest = SystemTime::now() + BETWEEN_CERTIFICATES;
        self.failures = Failures::default();
        self.state.keep_failures(self.first_domain(), self.failures);
        true
    }

    fn copy(&mut self, shared: &SharedCertificate) -> Result<(), AcmeError> {
        self.state.keep_certificate(self.first_domain(), &shared.pem)?;
        self.serve_kept()
    }

    /// Shares the certificate of this machine in place of an older one. Returns whether there is
    /// nothing more to do: another machine has not shared one at the same moment.
    async fn share_own(&self, own: &IssuedCertificate, older: Option<&SharedCertificate>) -> bool {
        let Some(sharing) = &self.sharing else { return true };
        let Ok(pem) = std::fs::read_to_string(self.file()) else { return true };
        let record = older.map(|older| &*older.record);
        match sharing.replace_certificate(record, &pem, own.lifetime).await {
            Ok(is_shared) => is_shared,
            Err(error) => {
                tracing::warn!(%error, "the certificate is not shared yet");
                true
            }
        }
    }
}
