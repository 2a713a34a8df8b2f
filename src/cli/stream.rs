//! `centile stream`: copies the transactions of a board into a Redis Stream or a Kafka topic.

#[cfg(feature = "kafka")]
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueEnum};

use crate::{
    Result, boards,
    cli::{
        output::{self, thousands},
        stop::Stop,
        with_instance,
    },
    config::{Config, value},
    delivery::{
        copying::{self, Copying},
        ledger_stream::LedgerStart,
    },
    model::{board::BoardSlug, hidden::Hidden},
    queue::{Producer, RedisProducer},
};

/// The transactions to copy, and their destination.
#[derive(Debug, Args)]
pub(super) struct Stream {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// URL of the stream, such as `redis://host:6379/events`
    ///
    /// The name of the stream comes last, after the number of the database, if it has one. A build with
    /// Kafka also accepts a topic, such as `kafka://host:9092/events`.
    #[arg(long = "to", env = "CENTILE_STREAM_URL", value_name = "URL", hide_env_values = true)]
    url: Hidden,
    /// First transaction of a new copy
    ///
    /// A copy that was interrupted continues where it ended.
    #[arg(long, value_enum, default_value_t = First::Oldest)]
    from: First,
    /// Length to which the stream is trimmed, approximately [default: not trimmed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_length: Option<u64>,
    /// File of properties of librdkafka, one `name=value` per line
    #[cfg(feature = "kafka")]
    #[arg(long, value_name = "FILE")]
    kafka_config: Option<PathBuf>,
}

/// The first transaction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum First {
    /// The oldest in the ledger
    Oldest,
    /// The next one
    Now,
}

/// Copies until SIGINT or SIGTERM, and prints the number of transactions.
pub(super) async fn run(config: &Config, stream: Stream) -> Result<()> {
    let url = stream.url.as_str();
    #[cfg(feature = "kafka")]
    if url.starts_with("kafka:") {
        if stream.max_length.is_some() {
            return Err(crate::Error::invalid("max_length", "does not apply to Kafka; set the topic's retention"));
        }
        let topic = crate::queue::Topic::new(url, stream.kafka_config.as_deref())?;
        return copy(config, &stream, crate::queue::KafkaProducer::new(topic, &stream.board)).await;
    }
    let to = RedisProducer::new(url, config.redis_ca().as_deref(), &stream.board, stream.max_length)?;
    copy(config, &stream, to).await
}

async fn copy(config: &Config, stream: &Stream, mut to: impl Producer) -> Result<()> {
    let mut stop = Stop::listen()?;
    let copied = AtomicU64::new(0);
    let text = || format!("{} transactions copied", thousands(copied.load(Ordering::Relaxed)));
    with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &stream.board).await?;
        let copying = Copying {
            streams: &instance.ledger_streams,
            board: &board,
            first: match stream.from {
                First::Oldest => LedgerStart::Oldest,
                First::Now => LedgerStart::Now,
            },
        };
        stop.around(text, async |stopping| copying::copy_transactions(&copying, &mut to, &copied, stopping).await).await
    })
    .await?;
    output::print(text())
}
