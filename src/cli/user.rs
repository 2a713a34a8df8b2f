//! `centile user`: players, whom all boards share.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Result,
    cli::{
        act::Act,
        by::By,
        output::{self, fields},
        with_instance,
    },
    config::{Config, value},
    instance::Instance,
    model::user::{Profile, User, UserId},
    users::{self, Editor},
};

/// What can be done with players.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what is known of a player
    Show {
        #[command(flatten)]
        player: Player,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make or change a player; what is not given stays
    Set {
        #[command(flatten)]
        player: Player,
        /// Name shown in lists, up to 128 bytes; a new player's is the id
        #[arg(long)]
        name: Option<String>,
        /// Address of a picture, up to 1,024 bytes
        #[arg(long, value_name = "URL")]
        avatar: Option<String>,
        /// Removes the picture
        #[arg(long, conflicts_with = "avatar")]
        no_avatar: bool,
        /// Whatever the game keeps with a player: a JSON object of up to 8,192 bytes
        #[arg(long, value_name = "JSON", value_parser = object)]
        metadata: Option<Map<String, Value>>,
    },
    /// Take a player out of every open ranking, and refuse the player's events, until unbanned
    Ban(OnPlayer),
    /// Put a banned player back where the ledger says
    Unban(OnPlayer),
    /// Forget who a player was: id, name, picture and metadata are replaced everywhere, frozen tops included; scores stay
    ///
    /// There is no way back. Prints the id that the player has from now on, which says nothing. Whoever comes with the old one is a new
    /// player. Backups, and the reasons and event ids that the game itself has written, are not touched.
    Erase {
        #[command(flatten)]
        player: Player,
        /// An id of this request, up to 128 bytes that say nothing of the player: the same again gives the same answer, for seven days
        #[arg(long, value_name = "TEXT")]
        id: Option<String>,
        #[command(flatten)]
        by: By,
    },
}

/// Whom a command is about.
#[derive(Debug, Args)]
pub(super) struct Player {
    /// The game's own id of the player
    #[arg(value_name = "ID", value_parser = value::<UserId>)]
    user_id: UserId,
}

/// An act on a player.
#[derive(Debug, Args)]
pub(super) struct OnPlayer {
    #[command(flatten)]
    player: Player,
    #[command(flatten)]
    act: Act,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("must be a JSON object: {error}"))
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Show { player, json } => {
            let user =
                with_instance(config, async |instance| users::find(&instance.store, &player.user_id).await).await?;
            if json { output::print_json(&Line::from(&user)) } else { output::print(description(&user)) }
        }
        Command::Set { player, name, avatar, no_avatar, metadata } => {
            // An empty address is none.
            let avatar = if no_avatar { Some(String::new()) } else { avatar };
            let profile = Profile { name, avatar, metadata: metadata.map(Value::Object) };
            let editor = Editor { actor: None, boards: &[], allows_http_avatars: true };
            let put = async |instance: &Instance| users::put(&instance.store, &player.user_id, profile, editor).await;
            let (user, is_new) = with_instance(config, put).await?;
            let done = if is_new { "made" } else { "changed" };
            output::print(format!("player {} ({}) {done}", user.user_id, user.name))
        }
        Command::Ban(OnPlayer { player, act }) => {
            let act = act.read()?;
            let ban = async |instance: &Instance| users::ban(&instance.rankings, &player.user_id, &act).await;
            let user = with_instance(config, ban).await?;
            output::print(format!("player {} ({}) is banned", user.user_id, user.name))
        }
        Command::Unban(OnPlayer { player, act }) => {
            let act = act.read()?;
            let unban = async |instance: &Instance| users::unban(&instance.rankings, &player.user_id, &act).await;
            let user = with_instance(config, unban).await?;
            output::print(format!("player {} ({}) is not banned", user.user_id, user.name))
        }
        Command::Erase { player, id, by } => {
            let by = by.actor()?;
            let erase =
                async |instance: &Instance| users::erase(&instance.rankings, &player.user_id, id.as_deref(), &by).await;
            let erased = with_instance(config, erase).await?;
            output::print(erased)?;
            output::note("That is the player's id from now on. Scores are kept under it; the rest is gone.");
            Ok(())
        }
    }
}

/// A player as JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    user_id: &'a str,
    name: &'a str,
    avatar: Option<&'a str>,
    metadata: &'a Value,
    banned: bool,
}

impl<'a> From<&'a User> for Line<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            user_id: &user.user_id,
            name: &user.name,
            avatar: user.avatar.as_deref(),
            metadata: &user.metadata,
            banned: user.banned,
        }
    }
}

fn description(user: &User) -> String {
    fields(&[
        ("id", user.user_id.clone()),
        ("name", user.name.clone()),
        ("avatar", user.avatar.clone().unwrap_or_else(|| "none".to_owned())),
        ("metadata", user.metadata.to_string()),
        ("banned", if user.banned { "yes" } else { "no" }.to_owned()),
    ])
}
