//! The account at the authority: that of all machines, that of this one, or a new one.

use instant_acme::{Account, AccountCredentials, NewAccount};

use crate::config::AcmeConfig;
use crate::error::AcmeError;
use crate::external_account::ExternalAccount;
use crate::sharing::Sharing;
use crate::state_directory::StateDirectory;

/// The account that machines share, as far as this one knows.
enum SharedAccount {
    /// This one.
    Known(Box<AccountCredentials>),
    /// They have none yet.
    None,
    /// The origin does not say, or machines share nothing.
    Unknown,
}

/// Returns the account, or creates one. One that machines do not share yet is shared from now on.
pub async fn account(
    config: &AcmeConfig,
    state: &StateDirectory,
    sharing: Option<&Sharing>,
) -> Result<Account, AcmeError> {
    let shared = shared_account(sharing).await;
    let is_unshared = matches!(shared, SharedAccount::None);
    let credentials = match known_account(state, shared)? {
        Some(known) => known,
        None => new_account(config, state).await?,
    };
    if let (Some(sharing), true) = (sharing, is_unshared) {
        sharing.share_account(&credentials).await;
    }
    Ok(Account::builder()?.from_credentials(credentials).await?)
}

/// Returns the account, if there is one. This asks the authority for none.
pub async fn existing_account(
    state: &StateDirectory,
    sharing: Option<&Sharing>,
) -> Result<Option<Account>, AcmeError> {
    let shared = shared_account(sharing).await;
    match known_account(state, shared)? {
        Some(known) => Ok(Some(Account::builder()?.from_credentials(known).await?)),
        None => Ok(None),
    }
}

/// Forgets an account that the authority does not know any more.
pub async fn forget_account(
    state: &StateDirectory,
    sharing: Option<&Sharing>,
) -> Result<(), AcmeError> {
    state.forget_account()?;
    if let Some(sharing) = sharing {
        sharing.forget_account().await;
    }
    Ok(())
}

async fn shared_account(sharing: Option<&Sharing>) -> SharedAccount {
    let Some(sharing) = sharing else { return SharedAccount::Unknown };
    match sharing.account().await {
        Ok(Some(account)) => SharedAccount::Known(Box::new(account)),
        Ok(None) => SharedAccount::None,
        Err(error) => {
            tracing::debug!(%error, "the account that machines share is not known");
            SharedAccount::Unknown
        }
    }
}

/// Returns the account that machines share, and keeps a copy, or else that of this machine.
fn known_account(
    state: &StateDirectory,
    shared: SharedAccount,
) -> Result<Option<AccountCredentials>, AcmeError> {
    let SharedAccount::Known(shared) = shared else { return Ok(state.account()) };
    state.copy_account(&shared)?;
    Ok(Some(*shared))
}

async fn new_account(
    config: &AcmeConfig,
    state: &StateDirectory,
) -> Result<AccountCredentials, AcmeError> {
    let email = config.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = email.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let external = config.external_account.as_ref();
    let binding = external.map(ExternalAccount::binding);
    let created =
        Account::builder()?.create(&new, config.directory.clone(), binding.as_ref()).await;
    let (_, credentials) = created.map_err(|error| match external {
        Some(_) => AcmeError::from(error).of_external_account(),
        None => error.into(),
    })?;
    state.keep_account(&credentials)?;
    Ok(credentials)
}
