//! `centile cluster`: distributes boards over several servers.

use clap::{Args, Subcommand};

use crate::{
    Error, Result,
    cli::{
        output::{self, table},
        with_instance,
    },
    config::Config,
    store::{cluster::Server, migrate},
};

/// Subcommands of `cluster`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a cluster of an empty database with Citus; `--from` copies a single server into it
    ///
    /// The database URL names the coordinator. Its workers must be registered with Citus. Safe to
    /// interrupt and to run again.
    Init(Init),
    /// Show the servers of a cluster and their lanes
    Status,
}

/// Options of a new cluster.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Lanes of each board. All boards of a cluster have the same number, which cannot change later
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: u16,
    /// Groups of lanes: the lanes of a group are on one server, and move together
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    groups: u16,
    /// URL of a single server's database: copy its boards and players into the cluster
    ///
    /// Stop its instances first. The copy does not change this database.
    #[arg(long, env = "CENTILE_CLUSTER_FROM", value_name = "URL", hide_env_values = true)]
    from: Option<String>,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Init(Init { lanes, groups, from }) => {
            migrate::init_cluster(config.database_url()?, lanes, groups, from.as_deref()).await?;
            output::print("the database is a cluster")
        }
        Command::Status => with_instance(config, async |instance| show(&instance.store.cluster_status().await?)).await,
    }
}

/// Prints a line for each server.
fn show(servers: &[Server]) -> Result<()> {
    if servers.is_empty() {
        return Err(Error::other_conflict("the database is not a cluster: see `centile cluster init`"));
    }
    let headings = ["SERVER", "STATE", "LANES", "SIZE", "LAG", "GROUPS"];
    output::print(table(headings, servers.iter().map(Server::cells).collect()))
}
