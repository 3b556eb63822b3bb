//! Our own registration with a telephone system, so that it sends us its calls.

use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::registration::{RefreshOutcome, Registration};
use rsipstack::platform::CancellationToken;
use rsipstack::sip::Uri;
use rsipstack::transaction::endpoint::EndpointInnerRef;

use super::options::Registrar;

/// Registers, refreshes in time, tries again when it fails, and leaves at the end.
pub(super) async fn keep(registrar: Registrar, endpoint: EndpointInnerRef, token: CancellationToken) {
    let Ok(server) = Uri::try_from(registrar.server.as_str()) else {
        tracing::error!("the registrar {:?} is no SIP address", registrar.server);
        return;
    };
    let credential = Credential {
        username: registrar.user.clone(),
        password: registrar.password,
        realm: None,
        auth_username: None,
    };
    let expires = u32::try_from(registrar.expires.as_secs()).unwrap_or(3_600).max(60);
    let mut registration = Registration::new(endpoint, Some(credential));
    let user = registrar.user;
    registration
        .keep_alive(server.clone(), expires, token, |outcome| match outcome {
            RefreshOutcome::Registered(_) => tracing::info!("registered as {user} at {}", registrar.server),
            RefreshOutcome::Rejected(answer) => {
                tracing::error!("{} refuses to register {user}: {}", registrar.server, answer.status_code);
            }
            RefreshOutcome::Failed(error) => {
                tracing::error!("{} cannot be reached to register {user}: {error}", registrar.server);
            }
        })
        .await;
    if let Err(error) = registration.register(server, Some(0)).await {
        tracing::debug!("leaving the registrar: {error}");
    }
}
