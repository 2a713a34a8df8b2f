//! `centile key`: creates, lists and revokes API keys.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    Error, Result,
    access::key,
    cli::{
        by::By,
        output::{self, list, table},
        with_instance,
    },
    config::{Config, named, time, value},
    model::{
        board::BoardPattern,
        key::{Key, NewKey, Role},
        name::Named as _,
    },
};

/// Subcommands of `centile key`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a key
    ///
    /// Prints the key on standard output; it is not shown again.
    Create(Create),
    /// List all keys, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key
    ///
    /// All instances refuse the key within 5 seconds.
    Revoke {
        /// Key id, as shown by `centile key list`
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        by: By,
    },
}

/// A new key.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name of the client
    ///
    /// A client may have at most two active keys, so that it can switch from one to the other.
    #[arg(long)]
    name: String,
    /// Role of the key
    ///
    /// `reader` may read boards that require a key. `server` may also write scores and change
    /// players. `admin` may do everything.
    #[arg(long, value_parser = named::<Role>())]
    role: Role,
    /// Board that the key may access, or the pattern of a template; repeat for each
    #[arg(long = "board", value_name = "SLUG", value_parser = value::<BoardPattern>)]
    boards: Vec<BoardPattern>,
    /// Allow access to all boards; always set for admin keys
    #[arg(long)]
    all_boards: bool,
    /// Lifetime in minutes, hours, days or weeks, such as 90m, 12h, 30d or 2w
    #[arg(long, value_name = "TIME", value_parser = time_span, conflicts_with = "expires_at")]
    expires_in: Option<TimeDelta>,
    /// Time of expiry, such as 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_at: Option<DateTime<Utc>>,
    /// Print the key as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// Parses a time span with its unit. Months and years are not units because their length varies.
fn time_span(text: &str) -> Result<TimeDelta, String> {
    let number = text.trim_end_matches(char::is_alphabetic);
    let make = match &text[number.len()..] {
        "m" => TimeDelta::try_minutes,
        "h" => TimeDelta::try_hours,
        "d" => TimeDelta::try_days,
        "w" => TimeDelta::try_weeks,
        _ => return Err("must be a number with a unit: 90m, 12h, 30d, 2w".to_owned()),
    };
    let number: u32 = number.parse().map_err(|error| format!("{number:?} is not a whole number: {error}"))?;
    make(number.into()).filter(|span| !span.is_zero()).ok_or_else(|| "must be greater than zero".to_owned())
}

impl Create {
    fn expiry(&self) -> Result<Option<DateTime<Utc>>> {
        let now = Utc::now();
        match (self.expires_in, self.expires_at) {
            (Some(span), _) => match now.checked_add_signed(span) {
                Some(at) => Ok(Some(at)),
                None => Err(Error::invalid("expires_in", "is too long")),
            },
            (None, Some(at)) if at <= now => Err(Error::invalid("expires_at", "must be in the future")),
            (None, at) => Ok(at),
        }
    }
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let (by, expires_at) = (create.by.actor()?, create.expiry()?);
            let Create { name, role, boards, all_boards, json, .. } = create;
            let given = !boards.is_empty();
            if role != Role::Admin && !given && !all_boards {
                return Err(Error::invalid("boards", "is missing: give --board or --all-boards"));
            }
            let boards = NewKey::boards(role, given.then_some(boards), all_boards)?;
            let new = NewKey { name, role, boards, expires_at };
            let (key, text) =
                with_instance(config, async |instance| key::create(&instance.store.admin, new, None, &by).await)
                    .await?;
            if json {
                return output::print_json(&KeyJson { key: Some(&text), ..KeyJson::from(&key) });
            }
            output::print(&text)?;
            output::note(format!(
                "key {}: role {}, boards: {}, expires: {}. It is not shown again; send it as Authorization: Bearer KEY",
                key.id,
                key.role,
                list(&key.boards, "all"),
                output::time(key.expires_at)
            ));
            Ok(())
        }
        Command::List { json } => {
            let keys = with_instance(config, async |instance| instance.store.reader.keys().await).await?;
            if json {
                return output::print_json(&keys.iter().map(KeyJson::from).collect::<Vec<_>>());
            }
            if keys.is_empty() {
                output::note(
                    "There are no keys yet. Create one: centile key create --name NAME --role server --all-boards",
                );
            }
            let head = ["ID", "NAME", "ROLE", "BOARDS", "STATE", "CREATED", "EXPIRES", "LAST USED"];
            output::print(table(head, keys.iter().map(row).collect()))
        }
        Command::Revoke { id, by } => {
            let by = by.actor()?;
            with_instance(config, async |instance| key::revoke(&instance.store.admin, &instance.keys, &id, &by).await)
                .await?;
            output::print(format!("key {id} revoked"))
        }
    }
}

/// A key as JSON.
#[derive(Serialize)]
struct KeyJson<'a> {
    /// The full key, only when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    key_id: &'a str,
    name: &'a str,
    role: Role,
    boards: &'a [BoardPattern],
    state: &'static str,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl<'a> From<&'a Key> for KeyJson<'a> {
    fn from(key: &'a Key) -> Self {
        Self {
            key: None,
            key_id: &key.id,
            name: &key.name,
            role: key.role,
            boards: &key.boards,
            state: key.state().name(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

fn row(key: &Key) -> [String; 8] {
    [
        key.id.clone(),
        key.name.clone(),
        key.role.to_string(),
        list(&key.boards, "all"),
        key.state().name().to_owned(),
        output::time(Some(key.created_at)),
        output::time(key.expires_at),
        output::time(key.last_used_at),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_are_a_number_and_a_unit() {
        assert_eq!(time_span("90m"), Ok(TimeDelta::minutes(90)));
        assert_eq!(time_span("12h"), Ok(TimeDelta::hours(12)));
        assert_eq!(time_span("30d"), Ok(TimeDelta::days(30)));
        assert_eq!(time_span("2w"), Ok(TimeDelta::days(14)));
        for text in ["", "30", "d", "-1d", "1.5d", "3y", "0d", "99999999999d", "30 d", "1é"] {
            assert!(time_span(text).is_err(), "{text}");
        }
    }
}
