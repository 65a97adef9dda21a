//! One order, from the account to the certificate (RFC 8555 section 7.1).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::{
    AuthorizationStatus, CertificateIdentifier, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};

use crate::account::{account, existing_account};
use crate::challenge_certificates::challenge_certificate;
use crate::challenge_kind::ChallengeKind;
use crate::challenges::{Challenges, name_record, token_record};
use crate::config::AcmeConfig;
use crate::error::AcmeError;
use crate::lifetime::IssuedCertificate;
use crate::sharing::Sharing;
use crate::state_directory::StateDirectory;

/// The pauses between questions whether the authority is done. They grow.
const POLLING: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).timeout(Duration::from_secs(180));

/// Orders a certificate, and proves its names by challenges of `kind`. Returns its key and chain in
/// PEM.
pub async fn certificate(
    config: &AcmeConfig,
    state: &StateDirectory,
    sharing: Option<&Sharing>,
    challenges: &Arc<Challenges>,
    kind: ChallengeKind,
) -> Result<String, AcmeError> {
    let account = account(config, state, sharing).await?;
    let identifiers: Vec<_> = config.domains.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    let mut answers = challenges.answers();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        // The name was proven not long ago.
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let challenge = authorization.challenge(kind.challenge_type());
        let Some(mut challenge) = challenge else { return Err(AcmeError::NoChallenge(name, kind)) };
        let key_authorization = challenge.key_authorization();
        let key_authorization = key_authorization.as_str();
        let record = match kind {
            ChallengeKind::Http01 => {
                answers.add(&challenge.token, key_authorization);
                token_record(&challenge.token)
            }
            ChallengeKind::TlsAlpn01 => {
                answers.add_certificate(&name, challenge_certificate(&name, key_authorization)?);
                name_record(&name)
            }
        };
        if let Some(sharing) = sharing {
            sharing.offer_answer(&record, key_authorization).await;
        }
        challenge.set_ready().await?;
    }
    match order.poll_ready(&POLLING).await {
        Ok(OrderStatus::Ready) => {}
        result => return Err(why_not(&mut order, kind).await.unwrap_or_else(|| failure(result))),
    }
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&POLLING).await?;
    Ok(key + &chain)
}

/// Returns whether the authority wants this certificate renewed now (RFC 9773). If it does not know
/// RFC 9773, it does not want that.
pub async fn should_be_renewed(
    config: &AcmeConfig,
    state: &StateDirectory,
    sharing: Option<&Sharing>,
    issued: &IssuedCertificate,
) -> Result<bool, AcmeError> {
    let Ok(identifier) = CertificateIdentifier::try_from(&issued.der) else { return Ok(false) };
    let account = match sharing {
        None => account(config, state, None).await?,
        // Only the machine that orders makes an account, or each of them would make one.
        Some(_) => match existing_account(state, sharing).await? {
            Some(account) => account,
            None => return Ok(false),
        },
    };
    match account.renewal_info(&identifier).await {
        Ok((info, _)) => Ok(SystemTime::from(info.suggested_window.start) <= SystemTime::now()),
        Err(instant_acme::Error::Unsupported(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the authority's message about the name that it could not prove.
async fn why_not(order: &mut Order, kind: ChallengeKind) -> Option<AcmeError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let name = authorization.identifier().to_string();
        let state = authorization.refresh().await.ok()?;
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.clone())
        {
            return Some(AcmeError::NotProven(name, kind, problem));
        }
    }
    None
}

fn failure(result: Result<OrderStatus, instant_acme::Error>) -> AcmeError {
    match result {
        Ok(status) => AcmeError::Certificate(format!("the order is {status:?}")),
        Err(error) => error.into(),
    }
}
