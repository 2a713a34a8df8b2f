//! `centile demo`: runs a service with its own servers and simulated games.

use std::{fs, future::pending, num::NonZero, path::Path, time::Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    Error, Result,
    cli::{
        log,
        output::{self, thousands},
        serve::listen,
        stop::Stop,
    },
    config::{self, Config},
    dev::{
        demo::{self, Games, LAPS_BOARD, MAIN_BOARD, Servers},
        local::PostgresOptions,
    },
};

/// Runs the demo until SIGINT or SIGTERM. Its servers stop with it, however it ends.
pub(super) async fn run(config: &Config, settings: &config::Demo) -> Result<()> {
    let mut stop = Stop::listen()?;
    let dir = &settings.dir;
    // Bind first: if the port is taken, no servers have to be stopped.
    let listener = listen(settings.instance.listen)?;
    fs::create_dir_all(dir)
        .map_err(|error| Error::invalid("dir", format!("cannot create {}: {error}", dir.display())))?;
    let _log = log::to_file(config, &dir.join("centile.log"))?;
    output::print(format!("Centile demo, data folder {}\n", dir.display()))?;
    let start = async {
        let begin = Instant::now();
        let servers = Servers::start(dir, PostgresOptions::durable()).await?;
        let version = servers.postgres.version();
        let demo = demo::Demo::start(servers, dir, listener, &settings.instance).await?;
        let seconds = begin.elapsed().as_secs_f32();
        line("started", &format!("PostgreSQL {version}, Redis and Centile, in {seconds:.1} s"))?;
        Ok::<_, Error>(demo)
    };
    // Dropping the unfinished start stops the servers started so far.
    let demo = tokio::select! {
        demo = start => demo?,
        _ = stop.wait() => return line("stopping", "servers"),
    };
    let play = play(&demo, dir, settings);
    let result = tokio::select! {
        result = play => result,
        _ = stop.wait() => Ok(()),
    };
    output::print("")?;
    demo.stop().await?;
    result?;
    line("stopped", "the next start reuses the data")
}

/// Plays games, and prints addresses and commands to try. Does not return while games continue.
async fn play(demo: &demo::Demo, dir: &Path, settings: &config::Demo) -> Result<()> {
    let seed = settings.seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    let mut games = Games::new(&demo.url, &demo.key, seed)?;
    match games.players().await? {
        0 => play_first(&mut games, seed).await?,
        players => line("found", &format!("{} players on board {MAIN_BOARD}", thousands(players)))?,
    }
    introduce(demo, dir)?;
    let Some(per_second) = NonZero::new(settings.games_per_second) else {
        output::print("Ctrl-C stops everything.")?;
        return pending().await;
    };
    output::print(format!("Playing {per_second} games per second (seed {seed}). Ctrl-C stops everything."))?;
    // A terminal shows the latest game in one line.
    let ticker = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
    games.play_on(per_second, |game| ticker.set_message(game.to_string())).await;
    Ok(())
}

async fn play_first(games: &mut Games, seed: u64) -> Result<()> {
    let begin = Instant::now();
    let style = ProgressStyle::with_template("  playing     {bar:30} {pos} of {len} games");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let played = games
        .play_first(|played, total| {
            bar.set_length(total as u64);
            bar.set_position(played as u64);
        })
        .await;
    bar.finish_and_clear();
    let seconds = begin.elapsed().as_secs_f32();
    line("played", &format!("{} initial games over HTTP, in {seconds:.1} s (seed {seed})", thousands(played?)))
}

/// Prints addresses, keys and example commands.
fn introduce(demo: &demo::Demo, dir: &Path) -> Result<()> {
    let demo::Demo { url, key, admin_key, servers, .. } = demo;
    let file = |name: &str| quoted(&dir.join(name).to_string_lossy());
    output::print("")?;
    line("HTTP API", url)?;
    line("boards", &format!("{url}/"))?;
    line("API docs", &format!("{url}/docs/"))?;
    line("operators", &format!("{url}/ops/, any user name, password {admin_key}"))?;
    line("server key", key)?;
    line("board names", &format!("{MAIN_BOARD} (points add up), {LAPS_BOARD} (the best time counts)"))?;
    line("PostgreSQL", &format!("psql \"$(cat {})\"", file("database-url")))?;
    line("Redis", &servers.redis_url())?;
    line("log", &file("centile.log"))?;
    let scores = format!("{url}/v1/boards/{MAIN_BOARD}/scores");
    output::print(format!(
        "
Top ten:
  curl -s '{scores}?limit=10'
A player's rank and neighbours:
  curl -s '{scores}/player-007?around=3'
Submit a score with the server key:
  curl -s '{scores}?ranks=true' -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{\"user_id\":\"you\",\"points\":500}}'
"
    ))
}

fn line(label: &str, text: &str) -> Result<()> {
    output::print(format!("  {label:<12}{text}"))
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted(".centile/demo/log"), ".centile/demo/log");
        assert_eq!(quoted("my data/it's"), r"'my data/it'\''s'");
    }
}
