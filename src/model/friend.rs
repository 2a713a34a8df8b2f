//! Friends of players. The friend of a player need not have the player as a friend.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

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

/// The result of a change of a player's friends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FriendsChangedResponse)]
pub struct FriendsChanged {
    /// Number of new friends.
    #[schema(example = 2)]
    pub added: u32,
    /// Number of former friends.
    #[schema(example = 0)]
    pub removed: u32,
    /// Number of friends after the change, at most 5,000.
    #[schema(example = 2, maximum = 5000)]
    pub friends: u32,
}

/// A friend of a player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FriendResponse)]
pub struct Friend {
    /// The caller's own id of the friend.
    #[schema(example = "bob")]
    pub user_id: String,
    /// Name shown in lists.
    #[schema(example = "Bob")]
    pub name: String,
    /// URL of the friend's avatar.
    #[schema(required = true)]
    pub avatar_url: Option<String>,
    /// Whether the friend has the player as a friend, too.
    pub mutual: bool,
}

/// A player and the player's friends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FriendsOf {
    pub user_id: UserId,
    /// Whether only friends count who have the player as a friend, too.
    pub mutual: bool,
}
