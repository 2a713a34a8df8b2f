//! Webhooks of boards.

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::Board,
        encryption::MasterKeys,
        webhook::{Secret, Webhook, WebhookUrl},
    },
    store::{Administrator, Reader},
};

/// Sets the webhook of a board and the secret that signs its messages. Replaces any earlier ones.
pub async fn set(
    admin: &Administrator,
    master_keys: Option<&MasterKeys>,
    board: &Board,
    url: &WebhookUrl,
    secret: &Secret,
    by: &Actor,
) -> Result<()> {
    let board = board.slug.as_str();
    let secret = secret.encrypt(master_keys, board)?;
    admin.set_webhook(board, url.as_str(), &secret, by).await
}

/// Returns the webhook of a board. Returns [`Error::NotFound`] when there is none.
pub async fn find(reader: &Reader, board: &Board) -> Result<Webhook> {
    let webhook = reader.webhook(board.slug.as_str()).await?;
    webhook.ok_or_else(|| Error::not_found(Resource::Webhook, board.slug.as_str()))
}
