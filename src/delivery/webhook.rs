//! Where events of a board are sent.

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::Board,
        seal::MasterKeys,
        webhook::{Secret, StoredSecret, Webhook, WebhookUrl},
    },
    store::Store,
};

/// Has the events of a board sent to `url`, signed with `secret`. In place of an earlier address and secret, if there were any.
pub async fn set(
    store: &Store,
    master_keys: Option<&MasterKeys>,
    board: &Board,
    url: &WebhookUrl,
    secret: &Secret,
    by: &Actor,
) -> Result<()> {
    let board = board.slug.as_str();
    let secret = StoredSecret::of(secret, master_keys, board)?;
    store.set_webhook(board, url.as_str(), &secret, by).await
}

/// Where the events of a board go. [`Error::NotFound`] when it has no webhook.
pub async fn find(store: &Store, board: &Board) -> Result<Webhook> {
    let webhook = store.webhook(board.slug.as_str()).await?;
    webhook.ok_or_else(|| Error::not_found("webhook of board", board.slug.as_str()))
}

/// Has the events of a board sent nowhere. [`Error::NotFound`] when it has no webhook.
pub async fn remove(store: &Store, board: &Board, by: &Actor) -> Result<()> {
    store.remove_webhook(board.slug.as_str(), by).await
}
