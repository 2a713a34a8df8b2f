//! Kafka topics, through librdkafka. Most of its calls block, so they run on threads for blocking
//! work.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures::future::try_join_all;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders, OwnedMessage},
    producer::{FutureProducer, FutureRecord},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    Code, Error, Result,
    model::{board::BoardSlug, user::check_text},
    queue::{Consumer, Field, NAME_MAX_BYTES, Producer, QueueEntry, QueueMessage, Value},
};

/// Timeout of a call, except of the poll for messages.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time that a read waits for a new message.
const WAIT: Duration = Duration::from_secs(1);

/// Longest interval of the heartbeats that keep a consumer in its group.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// Maximum time between two reads of a consumer, unless its session timeout is longer.
const MAX_POLL_INTERVAL: Duration = Duration::from_mins(5);

/// Properties that Centile sets, or that would break its use of Kafka.
const OWN: [&str; 18] = [
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "message.timeout.ms",
    "metadata.broker.list",
    "session.timeout.ms",
    "socket.timeout.ms",
    "transactional.id",
];

/// Errors that no retry fixes: wrong credentials, a missing permission, or a setting or message
/// that brokers reject.
const LASTING: [RDKafkaErrorCode; 9] = [
    RDKafkaErrorCode::Authentication,
    RDKafkaErrorCode::SaslAuthenticationFailed,
    RDKafkaErrorCode::TopicAuthorizationFailed,
    RDKafkaErrorCode::GroupAuthorizationFailed,
    RDKafkaErrorCode::ClusterAuthorizationFailed,
    RDKafkaErrorCode::InconsistentGroupProtocol,
    RDKafkaErrorCode::InvalidSessionTimeout,
    RDKafkaErrorCode::MessageSizeTooLarge,
    RDKafkaErrorCode::UnsupportedFeature,
];

/// Errors of connections to brokers, from which a consumer recovers by itself.
const RECOVERING: [RDKafkaErrorCode; 3] =
    [RDKafkaErrorCode::AllBrokersDown, RDKafkaErrorCode::BrokerTransportFailure, RDKafkaErrorCode::Resolve];

/// Fields whose values may be numbers or objects.
const OTHER_THAN_TEXT: [&str; 3] = ["metadata", "points", "tiebreak"];

/// A topic, and how to reach it.
pub(crate) struct Topic {
    brokers: String,
    name: String,
    /// Properties of librdkafka, which may hold passwords.
    properties: Vec<(String, String)>,
}

impl Topic {
    /// Describes the topic at `url`, which is `kafka://HOST:PORT,HOST:PORT/TOPIC`.
    ///
    /// `properties` is a file with a property of librdkafka per line, as `name=value`.
    /// Returns [`Error::Invalid`] if the file cannot be read or sets a property in [`OWN`], or if
    /// `url` is not of this form.
    pub(crate) fn new(url: &str, properties: Option<&Path>) -> Result<Self> {
        let refused = || Error::invalid("url", "must be the URL of a topic, such as kafka://host:9092/events");
        let (brokers, name) = url.strip_prefix("kafka://").and_then(|rest| rest.split_once('/')).ok_or_else(refused)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if brokers.is_empty() || brokers.contains('@') || name.is_empty() || !name.bytes().all(is_allowed) {
            return Err(refused());
        }
        check_text("url", name, NAME_MAX_BYTES)?;
        let text = match properties {
            Some(file) => fs::read_to_string(file)
                .map_err(|error| Error::invalid("kafka_config", format!("cannot be read: {error}")))?,
            None => String::new(),
        };
        Ok(Self { brokers: brokers.to_owned(), name: name.to_owned(), properties: parse_properties(&text)? })
    }

    /// Returns a configuration with the properties of the file and others.
    fn config(&self, own: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        // A misspelled name must not create a topic.
        config.set("bootstrap.servers", &self.brokers).set("allow.auto.create.topics", "false");
        config.set("socket.timeout.ms", "10000");
        for (name, value) in own {
            config.set(*name, *value);
        }
        config
    }
}

fn parse_properties(text: &str) -> Result<Vec<(String, String)>> {
    let mut properties = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refused = |why: &str| Error::invalid("kafka_config", format!("line {}: {why}", number + 1));
        let (name, value) = line.split_once('=').ok_or_else(|| refused("must be name=value"))?;
        let (name, value) = (name.trim(), value.trim());
        if OWN.contains(&name) {
            return Err(refused(&format!("Centile sets {name} itself")));
        }
        properties.push((name.to_owned(), value.to_owned()));
    }
    Ok(properties)
}

pub(crate) struct KafkaConsumer {
    topic: Topic,
    /// Topic of messages that can never be written.
    dead: String,
    group: String,
    /// Name of a static member of the group.
    member: Option<String>,
    /// Time without heartbeats after which other consumers take over the partitions of this one.
    claim_after: Duration,
    clients: Option<(Arc<BaseConsumer>, FutureProducer)>,
    /// The messages that were read last, by id.
    received: HashMap<String, OwnedMessage>,
}

impl KafkaConsumer {
    /// Prepares to read `topic` as a member of `group`.
    pub(crate) fn new(topic: Topic, group: String, member: Option<String>, claim_after: Duration) -> Self {
        let dead = format!("{}.dead", topic.name);
        Self { topic, dead, group, member, claim_after, clients: None, received: HashMap::new() }
    }

    fn clients(&self) -> Result<&(Arc<BaseConsumer>, FutureProducer)> {
        self.clients.as_ref().ok_or_else(|| Error::Internal("the consumer has not joined its group".to_owned()))
    }
}

impl Consumer for KafkaConsumer {
    fn name(&self) -> &str {
        &self.topic.name
    }

    /// Replaces the client: a new one begins after the offsets that its group has committed.
    async fn join(&mut self) -> Result<()> {
        let session = self.claim_after.as_millis();
        let (session, heartbeat, poll) = (
            session.to_string(),
            (session / 3).min(HEARTBEAT.as_millis()).to_string(),
            session.max(MAX_POLL_INTERVAL.as_millis()).to_string(),
        );
        let mut own = vec![
            ("group.id", self.group.as_str()),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
            ("session.timeout.ms", &session),
            ("heartbeat.interval.ms", &heartbeat),
            ("max.poll.interval.ms", &poll),
        ];
        own.extend(self.member.as_deref().map(|member| ("group.instance.id", member)));
        let (consumer, producer) = (self.topic.config(&own), self.topic.config(&[("message.timeout.ms", "10000")]));
        let (name, dead, former) = (self.topic.name.clone(), self.dead.clone(), self.clients.take());
        let clients = blocking(move || {
            drop(former);
            let consumer: BaseConsumer = consumer.create()?;
            expect_topics(&consumer, &[&name, &dead])?;
            consumer.subscribe(&[&name])?;
            Ok((Arc::new(consumer), producer.create()?))
        });
        self.clients = Some(clients.await?);
        Ok(())
    }

    async fn next(&mut self, count: usize) -> Result<Vec<QueueMessage>> {
        let consumer = Arc::clone(&self.clients()?.0);
        let received = blocking(move || {
            let mut received = Vec::new();
            let mut wait = WAIT;
            while received.len() < count
                && let Some(message) = consumer.poll(wait)
            {
                match message {
                    Ok(message) => received.push(message.detach()),
                    Err(KafkaError::MessageConsumption(code)) if RECOVERING.contains(&code) => break,
                    Err(error) => return Err(error.into()),
                }
                wait = Duration::ZERO;
            }
            Ok(received)
        });
        self.received.clear();
        let mut messages = Vec::new();
        for message in received.await? {
            let id = format!("{}:{}", message.partition(), message.offset());
            messages.push(QueueMessage { fields: fields(message.payload()), id: id.clone() });
            self.received.insert(id, message);
        }
        Ok(messages)
    }

    /// Commits the offsets of these messages. If another member has taken over a partition
    /// meanwhile, this may set its offset back: messages are then delivered again, and their events
    /// count once.
    async fn acknowledge(&mut self) -> Result<()> {
        let mut ends = BTreeMap::new();
        for message in self.received.values() {
            let end = ends.entry(message.partition()).or_insert(0);
            *end = message.offset().saturating_add(1).max(*end);
        }
        self.received.clear();
        if ends.is_empty() {
            return Ok(());
        }
        let (consumer, topic) = (Arc::clone(&self.clients()?.0), self.topic.name.clone());
        blocking(move || {
            let mut offsets = TopicPartitionList::new();
            for (partition, end) in ends {
                offsets.add_partition_offset(&topic, partition, Offset::Offset(end))?;
            }
            Ok(consumer.commit(&offsets, CommitMode::Sync)?)
        })
        .await
    }

    /// Copies it to the topic `NAME.dead`, without its value if that is too large.
    async fn reject(&mut self, message: &QueueMessage, why: &[(&str, &str)]) -> Result<()> {
        let unknown = || Error::Internal(format!("message {} is not one of the last ones", message.id));
        let original = self.received.get(&message.id).ok_or_else(unknown)?;
        let mut headers = original.headers().cloned().unwrap_or_else(OwnedHeaders::new);
        for (key, value) in why {
            headers = headers.insert(Header { key, value: Some(*value) });
        }
        let (_, producer) = self.clients()?;
        for payload in [original.payload(), None] {
            let mut record = FutureRecord::<[u8], [u8]>::to(&self.dead).headers(headers.clone());
            (record.key, record.payload) = (original.key(), payload);
            match producer.send(record, TIMEOUT).await {
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge), _)) if payload.is_some() => {
                }
                Err((error, _)) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        Ok(())
    }
}

/// The members of a JSON object, also repeated ones.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Returns the members of a JSON object: texts as they are, other values as JSON. Omits members
/// that are null.
fn fields(payload: Option<&[u8]>) -> Result<Vec<Field>> {
    let malformed = |why: String| Error::Malformed(format!("the value of the message is not a JSON object: {why}"));
    let payload = payload.ok_or_else(|| malformed("it is null".to_owned()))?;
    let Members(members) = serde_json::from_slice(payload).map_err(|error| malformed(error.to_string()))?;
    let mut fields = Vec::new();
    for (name, value) in members {
        let text = match value.get() {
            "null" => continue,
            text if text.starts_with('"') => {
                serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?
            }
            json if OTHER_THAN_TEXT.contains(&name.as_str()) => json.to_owned(),
            _ => return Err(Error::invalid(name, "must be a text")),
        };
        fields.push((name.into_bytes(), text.into_bytes()));
    }
    Ok(fields)
}

/// A producer of a topic.
///
/// The cursor is the metadata of an offset of a consumer group that has no consumers. It is stored
/// after the entries, so a copy that was killed in between repeats them.
pub(crate) struct KafkaProducer {
    topic: Topic,
    group: String,
    place: String,
    clients: Option<(FutureProducer, Arc<BaseConsumer>)>,
}

impl KafkaProducer {
    /// Prepares to write transactions of a board to `topic`.
    pub(crate) fn new(topic: Topic, board: &BoardSlug) -> Self {
        let group = format!("centile-stream:{}:{board}", topic.name);
        Self { place: format!("the Kafka group {group}"), topic, group, clients: None }
    }
}

impl Producer for KafkaProducer {
    fn cursor_location(&self) -> &str {
        &self.place
    }

    async fn begin(&mut self) -> Result<String> {
        // No entry of a partition may fail or time out alone: the entries after it would be stored, and
        // its repetition would come after them.
        let producer = self.topic.config(&[
            ("enable.idempotence", "true"),
            ("enable.gapless.guarantee", "true"),
            ("message.timeout.ms", "0"),
            // Without the warning that the guarantee is experimental.
            ("log_level", "3"),
        ]);
        let group = self.topic.config(&[
            ("group.id", &self.group),
            ("enable.auto.commit", "false"),
            ("session.timeout.ms", "10000"),
        ]);
        let (name, former) = (self.topic.name.clone(), self.clients.take());
        let begun = blocking(move || {
            drop(former);
            let (producer, group): (FutureProducer, BaseConsumer) = (producer.create()?, group.create()?);
            expect_topics(&group, &[&name])?;
            let mut offsets = TopicPartitionList::new();
            offsets.add_partition(&name, 0);
            let offsets = group.committed_offsets(offsets, TIMEOUT)?;
            let mut cursor = String::new();
            for stored in offsets.elements() {
                stored.error()?;
                stored.metadata().clone_into(&mut cursor);
            }
            Ok((cursor, producer, Arc::new(group)))
        });
        let (cursor, producer, group) = begun.await?;
        self.clients = Some((producer, group));
        Ok(cursor)
    }

    async fn append(&mut self, entries: &[QueueEntry], cursor: String) -> Result<bool> {
        let unprepared = || Error::Internal("the producer has not begun".to_owned());
        let (producer, group) = self.clients.as_ref().ok_or_else(unprepared)?;
        let mut reports = Vec::with_capacity(entries.len());
        for (user, json) in entries.iter().map(record) {
            let record = FutureRecord::to(&self.topic.name).key(&user).payload(&json);
            reports.push(producer.send_result(record).map_err(|(error, _)| error)?);
        }
        let stored = timeout(TIMEOUT, try_join_all(reports)).await;
        let stored = stored.map_err(|_| Error::retry(Code::Unavailable, "Kafka does not answer"))?;
        let reports = stored.map_err(|_| KafkaError::Canceled)?;
        let mut errors: Vec<KafkaError> =
            reports.into_iter().filter_map(|report| report.err().map(|(error, _)| error)).collect();
        // The entries after one that fails are discarded: prefer its error to theirs.
        errors.sort_by_key(|error| !is_lasting(error));
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        let (group, name) = (Arc::clone(group), self.topic.name.clone());
        blocking(move || {
            let mut offsets = TopicPartitionList::new();
            offsets.add_partition_offset(&name, 0, Offset::Offset(0))?;
            if let Some(mut stored) = offsets.find_partition(&name, 0) {
                stored.set_metadata(cursor);
            }
            Ok(group.commit(&offsets, CommitMode::Sync)?)
        })
        .await?;
        Ok(true)
    }
}

/// Returns the player and the JSON of an entry. The player's entries share a partition, and so keep
/// their order.
fn record(entry: &QueueEntry) -> (String, String) {
    let (mut user, mut members) = (String::new(), Vec::new());
    for (name, value) in entry {
        let json = match value {
            Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Value::Json(json) => json.clone(),
        };
        members.push(format!("\"{name}\":{json}"));
        if let ("user_id", Value::Text(text)) = (*name, value) {
            user.clone_from(text);
        }
    }
    (user, format!("{{{}}}", members.join(",")))
}

/// Returns an error unless all topics exist.
fn expect_topics(consumer: &BaseConsumer, names: &[&str]) -> Result<()> {
    for name in names {
        let found = consumer.fetch_metadata(Some(name), TIMEOUT)?;
        match found.topics().first().and_then(rdkafka::metadata::MetadataTopic::error).map(RDKafkaErrorCode::from) {
            None => {}
            // A broker that starts may not know it yet.
            Some(RDKafkaErrorCode::UnknownTopicOrPartition) => {
                let message = format!("Kafka has no topic {name}; create it first");
                return Err(Error::retry(Code::Unavailable, message));
            }
            Some(code) => return Err(KafkaError::MetadataFetch(code).into()),
        }
    }
    Ok(())
}

/// Runs a job on a thread for blocking work.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(job).await.map_err(|error| Error::Internal(format!("a call of Kafka failed: {error}")))?
}

fn is_lasting(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| LASTING.contains(&code))
}

impl From<KafkaError> for Error {
    /// A retry may fix every error except those of the setup.
    fn from(error: KafkaError) -> Self {
        if let KafkaError::ClientConfig(_, why, name, _) = &error {
            return Self::invalid("kafka_config", format!("{name}: {why}"));
        }
        if let KafkaError::MessageConsumptionFatal(_) = &error {
            return Self::conflict(Code::Conflict, format!("another process may have this --consumer: {error}"));
        }
        if is_lasting(&error) {
            return Self::invalid("url", format!("Kafka refused the request: {error}"));
        }
        Self::retry(Code::Unavailable, format!("Kafka cannot be used now: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_brokers_and_a_topic() {
        let topic = |url: &str| Topic::new(url, None).map(|topic| (topic.brokers, topic.name));
        let named = |brokers: &str, name: &str| Some((brokers.to_owned(), name.to_owned()));
        assert_eq!(topic("kafka://a:1,b:2/my.events-1").ok(), named("a:1,b:2", "my.events-1"));
        for url in ["kafka://a", "kafka:///t", "kafka://a/", "kafka://a/b/c", "kafka://u:sesame@a/t", "redis://a/t"] {
            let refused = topic(url).map_err(|error| error.to_string());
            assert!(refused.is_err_and(|text| text.starts_with("url: ") && !text.contains("sesame")), "{url}");
        }
    }

    #[test]
    fn properties_of_centile_are_refused() -> Result<()> {
        let properties = parse_properties("# TLS\n\n security.protocol = SASL_SSL\nsasl.password=a=b\n")?;
        let wanted = [("security.protocol", "SASL_SSL"), ("sasl.password", "a=b")];
        assert_eq!(properties, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (text, words) in [("a=b\nnonsense", "line 2: must be"), ("group.id=x", "line 1: Centile sets group.id")] {
            let refused = parse_properties(text).map_err(|error| error.to_string());
            assert!(refused.as_ref().is_err_and(|text| text.contains(words)), "{refused:?}");
        }
        Ok(())
    }

    #[test]
    fn a_json_object_has_fields() {
        let text = |json: &str| -> Result<Vec<(String, String)>> {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            Ok(fields(Some(json.as_bytes()))?.iter().map(|(name, value)| (text(name), text(value))).collect())
        };
        let found = text(r#"{"user_id": "\u00e9\"", "points": -5, "reason": null, "metadata": {"a": [1.50]}}"#);
        let wanted = [("user_id", "é\""), ("points", "-5"), ("metadata", r#"{"a": [1.50]}"#)];
        assert_eq!(found.ok(), Some(wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()));
        assert_eq!(text(r#"{"points": 1, "points": 2}"#).map(|fields| fields.len()).ok(), Some(2));
        for bad in ["", "[1]", "5", "{\"points\": }", "{\"points\": 1} x", "{\"user_id\": true}", "{\"user_id\": {}}"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(fields(None).is_err());
    }
}
