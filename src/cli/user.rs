//! `centile user`: shows, changes, bans and erases players.

use clap::{Args, Subcommand};

use crate::{
    Error, Result,
    cli::{
        act::ActFlags,
        by::By,
        output::{self, fields},
        with_instance,
    },
    config::{Config, value},
    http::api::user::UserResponse,
    instance::Instance,
    model::{
        board::Reading,
        json::Object,
        metadata::Metadata,
        name::{self, Named as _},
        segment::Attribute,
        user::{Profile, User, UserId},
    },
    users::{self, Editor},
};

/// Subcommands of `centile user`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the profile of a player
    Show {
        #[command(flatten)]
        player: Player,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create or change a player
    ///
    /// Fields without a flag stay unchanged.
    Set {
        #[command(flatten)]
        player: Player,
        /// Display name, up to 128 bytes [default for a new player: the id]
        #[arg(long)]
        name: Option<String>,
        /// Avatar URL, up to 1,024 bytes
        #[arg(long, value_name = "URL")]
        avatar_url: Option<String>,
        /// Remove the avatar
        #[arg(long, conflicts_with = "avatar_url")]
        no_avatar: bool,
        /// Metadata of the game: a JSON object of up to 8,192 bytes
        #[arg(long, value_name = "JSON", value_parser = metadata)]
        metadata: Option<Metadata>,
        /// Attribute by which boards have segments, such as country=DE; repeat for each. An empty value
        /// removes the attribute
        #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
        attributes: Vec<(Attribute, Option<String>)>,
        /// Readers of the profile: `public`, `key` (callers with any key), or `default` (the setting
        /// `--profiles` of `serve`)
        #[arg(long, value_name = "READERS", value_parser = reading)]
        reading: Option<ProfileReading>,
    },
    /// Ban a player
    ///
    /// Removes the player from all open rankings and rejects the player's events until
    /// `centile user unban`.
    Ban(OnPlayer),
    /// Unban a player
    ///
    /// Restores the player's entries from the ledger.
    Unban(OnPlayer),
    /// Erase the identity of a player irreversibly
    ///
    /// Replaces id, name, avatar and metadata everywhere, including frozen tops; scores stay.
    /// Prints the player's new, meaningless id. A later event with the old id creates a new player.
    /// Backups, reasons and event ids are not changed.
    Erase {
        #[command(flatten)]
        player: Player,
        /// Request id, up to 128 bytes
        ///
        /// A request with the same id returns the same result for seven days. The id must not
        /// identify the player.
        #[arg(long, value_name = "TEXT")]
        id: Option<String>,
        #[command(flatten)]
        by: By,
    },
}

/// The player.
#[derive(Debug, Args)]
pub(super) struct Player {
    /// Player id
    #[arg(value_name = "ID", value_parser = value::<UserId>)]
    user_id: UserId,
}

/// An act on a player.
#[derive(Debug, Args)]
pub(super) struct OnPlayer {
    #[command(flatten)]
    player: Player,
    #[command(flatten)]
    act: ActFlags,
}

/// Readers of a profile; `None` for the default of the service.
type ProfileReading = Option<Reading>;

fn reading(text: &str) -> Result<ProfileReading, String> {
    let reading = (text != "default").then(|| name::parse("reading", text)).transpose();
    reading.map_err(|error| format!("{error}, default"))
}

fn metadata(text: &str) -> Result<Metadata, String> {
    let object: Object = text.parse().map_err(|error| format!("must be a JSON object: {error}"))?;
    Metadata::of_player(&object).map_err(|error| error.to_string())
}

/// Parses `NAME=VALUE`; an empty value is `None`.
fn attribute(text: &str) -> Result<(Attribute, Option<String>), String> {
    let (name, value) = text.split_once('=').ok_or("give a name and a value, such as country=DE")?;
    let name = name.parse().map_err(|error: Error| error.to_string())?;
    Ok((name, Some(value.to_owned()).filter(|value| !value.is_empty())))
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Show { player, json } => {
            let user =
                with_instance(config, async |instance| users::find(&instance.store.reader, &player.user_id).await)
                    .await?;
            if json { output::print_json(&UserResponse::from(user)) } else { output::print(description(&user)) }
        }
        Command::Set { player, name, avatar_url, no_avatar, metadata, attributes, reading } => {
            // An empty URL removes the avatar.
            let avatar = if no_avatar { Some(String::new()) } else { avatar_url };
            let attributes = attributes.into_iter().collect();
            let profile = Profile { name, avatar, metadata, attributes, reading };
            let editor = Editor { actor: None, boards: &[], allows_http_avatars: true };
            let put = async |instance: &Instance| {
                users::put(&instance.store.admin, &instance.rankings, &player.user_id, profile, editor).await
            };
            let (user, is_new) = with_instance(config, put).await?;
            let done = if is_new { "created" } else { "changed" };
            output::print(format!("player {} ({}) {done}", user.user_id, user.name))
        }
        Command::Ban(on_player) => set_banned(config, on_player, true).await,
        Command::Unban(on_player) => set_banned(config, on_player, false).await,
        Command::Erase { player, id, by } => {
            let by = by.actor()?;
            let erase = async |instance: &Instance| {
                users::erase(&instance.store.admin, &instance.rankings, &player.user_id, id.as_deref(), &by).await
            };
            let erased = with_instance(config, erase).await?;
            output::print(erased)?;
            output::note("This is the player's new id. The scores remain under it; all other data is erased.");
            Ok(())
        }
    }
}

async fn set_banned(config: &Config, OnPlayer { player, act }: OnPlayer, banned: bool) -> Result<()> {
    let act = act.read()?;
    let user = with_instance(config, async |instance| {
        users::set_banned(&instance.store.admin, &instance.rankings, &player.user_id, banned, &act).await
    });
    let user = user.await?;
    output::print(format!("player {} ({}) {}", user.user_id, user.name, if banned { "banned" } else { "unbanned" }))
}

fn description(user: &User) -> String {
    fields(&[
        ("id", user.user_id.clone()),
        ("name", user.name.clone()),
        ("avatar", user.avatar.clone().unwrap_or_else(|| "none".to_owned())),
        ("metadata", user.metadata.to_string()),
        // A map of texts is always JSON.
        ("attributes", serde_json::to_string(&user.attributes).unwrap_or_default()),
        ("readers", user.reading.map_or("default", Reading::name).to_owned()),
        ("banned", if user.banned { "yes" } else { "no" }.to_owned()),
    ])
}
