//! `centile consume`: writes the score events of a Redis Stream or a Kafka topic.

#[cfg(feature = "kafka")]
use std::path::PathBuf;
use std::{sync::atomic::Ordering, time::Duration};

use clap::{Args, value_parser};
use sysinfo::System;

use crate::{
    Result,
    cli::{
        output::{self, thousands},
        stop::Stop,
        with_instance,
    },
    config::{Config, value},
    import::stream::{self, Consumed, Consuming},
    model::{board::BoardSlug, hidden::Hidden},
    queue::{Consumer, RedisConsumer},
};

/// The messages to consume, and how.
#[derive(Debug, Args)]
pub(super) struct Consume {
    /// URL of the stream, such as `redis://host:6379/events`
    ///
    /// The name of the stream comes last, after the number of the database, if it has one. A build with
    /// Kafka also accepts a topic, such as `kafka://host:9092/events`.
    #[arg(env = "CENTILE_STREAM_URL", value_name = "URL", hide_env_values = true)]
    url: Hidden,
    /// The board of messages that name none
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Consumer group; created if it does not exist, at the start of the stream
    #[arg(long, value_name = "NAME", default_value = "centile")]
    group: String,
    /// Name in the group, different for each process [default: name of the machine; none in Kafka]
    ///
    /// A process that restarts with the same name continues with the messages that it has not
    /// acknowledged.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Seconds after which messages of a consumer that has ended are taken over
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u32).range(1..=86_400))]
    claim_after: u32,
    /// Messages per transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u16).range(1..=5_000))]
    batch_size: u16,
    /// File of properties of librdkafka, one `name=value` per line
    #[cfg(feature = "kafka")]
    #[arg(long, value_name = "FILE")]
    kafka_config: Option<PathBuf>,
}

/// Consumes until SIGINT or SIGTERM, and prints the number of messages.
pub(super) async fn run(config: &Config, mut consume: Consume) -> Result<()> {
    let (url, group, name) = (consume.url.as_str(), consume.group.clone(), consume.consumer.take());
    let claim_after = Duration::from_secs(consume.claim_after.into());
    #[cfg(feature = "kafka")]
    if url.starts_with("kafka:") {
        let topic = crate::queue::Topic::new(url, consume.kafka_config.as_deref())?;
        return write(config, &consume, crate::queue::KafkaConsumer::new(topic, group, name, claim_after)).await;
    }
    let machine = || System::host_name().filter(|name| !name.is_empty()).unwrap_or_else(|| "centile".to_owned());
    let name = name.unwrap_or_else(machine);
    let from = RedisConsumer::new(url, config.redis_ca().as_deref(), group, name, claim_after)?;
    write(config, &consume, from).await
}

async fn write(config: &Config, consume: &Consume, mut from: impl Consumer) -> Result<()> {
    let mut stop = Stop::listen()?;
    let consumed = Consumed::default();
    with_instance(config, async |instance| {
        let consuming = Consuming {
            boards: &instance.boards,
            writers: &instance.writers,
            rankings: &instance.rankings,
            board: &consume.board,
            batch: consume.batch_size.into(),
        };
        let text = || text(&consumed);
        stop.around(text, async |stopping| stream::consume_events(&consuming, &mut from, &consumed, stopping).await)
            .await
    })
    .await?;
    output::print(text(&consumed))
}

fn text(consumed: &Consumed) -> String {
    let Consumed { accepted, repeated, quarantined, dead } = consumed;
    let [accepted, repeated, quarantined, dead] =
        [accepted, repeated, quarantined, dead].map(|count| thousands(count.load(Ordering::Relaxed)));
    format!("{accepted} events accepted, {repeated} repeated, {quarantined} quarantined, {dead} dead letters")
}
