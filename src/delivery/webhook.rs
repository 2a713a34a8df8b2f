//! Webhooks of boards.

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::BoardPattern,
        encryption::MasterKeys,
        webhook::{Secret, Webhook, WebhookUrl},
    },
    store::{Administrator, Reader},
};

/// Sets the webhook of a board and the secret that signs its messages. Replaces any earlier ones.
pub async fn set(
    admin: &Administrator,
    master_keys: Option<&MasterKeys>,
    board: &BoardPattern,
    url: &WebhookUrl,
    secret: &Secret,
    by: &Actor,
) -> Result<()> {
    let board = board.to_string();
    let secret = secret.encrypt(master_keys, &board)?;
    admin.set_webhook(&board, url.as_str(), &secret, by).await
}

/// Returns the webhook of a board or template. Returns [`Error::NotFound`] when there is none.
pub async fn find(reader: &Reader, board: &BoardPattern) -> Result<Webhook> {
    let webhook = reader.webhook(&board.to_string()).await?;
    webhook.ok_or_else(|| Error::not_found(Resource::Webhook, board.to_string()))
}
