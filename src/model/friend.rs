//! Friends of players. The friend of a player need not have the player as a friend.

use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::model::user::UserId;

/// Maximum friends of a player. The database checks it too.
pub const FRIENDS_MAX: usize = 5_000;

/// A change of a player's friends by a list of players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FriendsChange {
    /// These players become friends. Unknown ones are created.
    Add,
    /// These players are no longer friends.
    Remove,
    /// These players, and no others, are friends.
    Replace,
}

/// Result of a change of a player's friends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FriendsChanged {
    /// New friends.
    pub added: u32,
    /// Former friends.
    pub removed: u32,
    /// Friends after the change.
    pub friends: u32,
}

/// A friend of a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Friend {
    /// The caller's own id of the friend.
    pub user_id: String,
    /// Name shown in lists.
    pub name: String,
    /// URL of a picture.
    pub avatar: Option<String>,
    /// Whether the friend has the player as a friend, too.
    pub is_mutual: bool,
}

/// A player and the player's friends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FriendsOf {
    /// The player.
    pub user_id: UserId,
    /// Whether only friends count who have the player as a friend, too.
    pub mutual: bool,
}
