//! `centile stream` and `centile consume` with Kafka, against librdkafka's own mock cluster in the
//! test process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use futures::future::join_all;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    message::Headers as _,
    mocking::{MockCluster, MockCoordinator},
    producer::{DefaultProducerContext, FutureProducer, FutureRecord},
};
use serde_json::{Map, Value};
use tokio::task::block_in_place;

use crate::{
    delivery::copying::{Fields, Queues, Running, kill_consumers_and_copies},
    support::{TestDb, folder, run, wait::until},
};

/// The mock cluster keeps 5 MB of each partition.
const PARTITIONS: i32 = 8;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Topics of a mock cluster.
struct Topics {
    producer: FutureProducer,
    /// Reads `out` as it grows.
    reader: BaseConsumer,
    /// Each transaction at its first occurrence: a copy that was killed repeats some.
    transactions: Vec<Fields>,
    seen: BTreeSet<i64>,
    /// The highest id of each lane in each partition, by which consumers recognise repetitions.
    highest: BTreeMap<(i32, String), i64>,
    repeated: usize,
    /// Number of messages in `in`.
    sent: i64,
    /// Dropped last: a client waits for its brokers when it ends.
    cluster: MockCluster<'static, DefaultProducerContext>,
}

impl Topics {
    fn new() -> Self {
        let cluster = MockCluster::new(3).expect("a cluster");
        for topic in ["in", "in.dead", "out"] {
            cluster.create_topic(topic, PARTITIONS, 3).expect("a topic");
        }
        let reader: BaseConsumer = config(&cluster).set("group.id", "reader").create().expect("a reader");
        reader.assign(&partitions("out", Offset::Beginning)).expect("partitions");
        let producer = config(&cluster).create().expect("a producer");
        Self {
            producer,
            reader,
            transactions: Vec::new(),
            seen: BTreeSet::new(),
            highest: BTreeMap::new(),
            repeated: 0,
            sent: 0,
            cluster,
        }
    }

    /// Reads what has been added to `out`.
    fn read(&mut self) {
        while let Some(message) = block_in_place(|| self.reader.poll(Duration::from_millis(100))) {
            // An error of a broker that is down.
            let Ok(message) = message else { continue };
            let object: Map<String, Value> =
                serde_json::from_slice(message.payload().expect("a value")).expect("an object");
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let fields: Fields = object.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            assert_eq!(message.key(), Some(fields["user_id"].as_bytes()));
            let id: i64 = fields["transaction_id"].parse().expect("an id");
            let highest = self.highest.entry((message.partition(), fields["lane"].clone())).or_default();
            let is_new = id > *highest;
            *highest = id.max(*highest);
            assert_eq!(is_new, self.seen.insert(id), "{fields:?}");
            if is_new {
                self.transactions.push(fields);
            } else {
                self.repeated += 1;
            }
        }
    }

    /// Appends a message to `in`.
    async fn add(&mut self, key: &str, value: &str) {
        let record = FutureRecord::to("in").key(key).payload(value);
        self.producer.send(record, TIMEOUT).await.map_err(|(error, _)| error).expect("a sent message");
        self.sent += 1;
    }
}

fn config(cluster: &MockCluster<'_, DefaultProducerContext>) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers());
    config
}

fn partitions(topic: &str, offset: Offset) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, offset).expect("a partition");
    }
    list
}

impl Queues for Topics {
    const KEEPS_LANES: bool = false;

    fn url(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.cluster.bootstrap_servers())
    }

    async fn send(&mut self, events: &[Vec<(&str, String)>]) {
        let records: Vec<(String, String)> = events
            .iter()
            .map(|fields| {
                let member = |(name, text): &(&str, String)| {
                    let value = if *name == "points" { text.parse().expect("a number") } else { text.as_str().into() };
                    ((*name).to_owned(), value)
                };
                let (_, user) = fields.iter().find(|(name, _)| *name == "user_id").expect("a player");
                (user.clone(), Value::Object(fields.iter().map(member).collect()).to_string())
            })
            .collect();
        let sent = records.iter().map(|(user, json)| {
            self.producer
                .send_result(FutureRecord::to("in").key(user).payload(json))
                .map_err(|(error, _)| error)
                .expect("a queued message")
        });
        for delivered in join_all(sent.collect::<Vec<_>>()).await {
            delivered.expect("a report").map_err(|(error, _)| error).expect("a sent message");
            self.sent += 1;
        }
    }

    async fn are_consumed(&mut self) -> bool {
        let group: BaseConsumer = config(&self.cluster).set("group.id", "centile").create().expect("a client");
        let committed = block_in_place(|| group.committed_offsets(partitions("in", Offset::Invalid), TIMEOUT));
        let offset = |offset: Offset| if let Offset::Offset(offset) = offset { offset } else { 0 };
        committed.is_ok_and(|list| list.elements().iter().map(|one| offset(one.offset())).sum::<i64>() == self.sent)
    }

    async fn copied(&mut self) -> usize {
        self.read();
        self.transactions.len()
    }

    async fn transactions(&mut self) -> Vec<Fields> {
        self.read();
        self.transactions.clone()
    }

    async fn dead(&mut self) -> usize {
        let count = |partition| {
            let (low, high) = self.reader.fetch_watermarks("in.dead", partition, TIMEOUT).expect("the ends");
            usize::try_from(high - low).expect("a count")
        };
        block_in_place(|| (0..PARTITIONS).map(count).sum())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_consumers_and_copies_of_kafka_lose_nothing() {
    let db = TestDb::new().await;
    let mut topics = Topics::new();
    kill_consumers_and_copies(&db, &mut topics, &["--claim-after", "6", "--consumer", "one"]).await;
    // A copy continues at its cursor: it does not begin again.
    eprintln!("{} of {} transactions repeated", topics.repeated, topics.seen.len());
    assert!(topics.repeated < topics.seen.len(), "{} repeated", topics.repeated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kafka_messages_that_cannot_be_written_become_dead_letters() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena", "--points-max", "100"]).well();
    let mut topics = Topics::new();
    let bad = [
        ("nonsense", "malformed_body", "not a JSON object"),
        (r#"{"points": 5}"#, "invalid_value", "user_id: is missing"),
        (r#"{"user_id": "ann", "points": 5.5}"#, "invalid_value", "points: must be a whole number"),
        (r#"{"user_id": "ann", "points": 101}"#, "points_out_of_bounds", "points: board arena allows"),
    ];
    for (value, ..) in bad {
        topics.add("ann", value).await;
    }
    // The second message repeats the first. The last has no event id: it gets its message's id.
    let good = r#"{"user_id": "ann", "points": 5, "event_id": "e1", "reason": null, "metadata": {"a": 1}}"#;
    for value in [good, good, r#"{"user_id": "ann", "points": 7}"#] {
        topics.add("ann", value).await;
    }
    let consumer = Running::start(&db, &["consume", &topics.url("in"), "--board", "arena", "--claim-after", "6"]);
    until("all messages are consumed", async || topics.are_consumed().await).await;
    assert_eq!(consumer.stop().well(), "2 events accepted, 1 repeated, 0 quarantined, 4 dead letters\n");
    let score: Vec<(String, i64)> =
        sqlx::query_as("SELECT user_id, score FROM centile.standings WHERE kind = 'all_time'")
            .fetch_all(&db.pool().await)
            .await
            .expect("the standings");
    assert_eq!(score, [("ann".to_owned(), 12)]);

    assert_eq!(topics.dead().await, bad.len());
    let reader: BaseConsumer = config(&topics.cluster).set("group.id", "dead").create().expect("a reader");
    reader.assign(&partitions("in.dead", Offset::Beginning)).expect("partitions");
    for (value, code, words) in bad {
        let letter = block_in_place(|| reader.poll(TIMEOUT)).expect("a letter").expect("a letter");
        let headers: Fields = letter
            .headers()
            .expect("headers")
            .iter()
            .map(|header| {
                (header.key.to_owned(), String::from_utf8_lossy(header.value.unwrap_or_default()).into_owned())
            })
            .collect();
        assert_eq!((letter.key(), letter.payload()), (Some(&b"ann"[..]), Some(value.as_bytes())));
        assert_eq!(headers["error_code"], code, "{headers:?}");
        assert!(headers["error"].contains(words) && headers["entry_id"].contains(':'), "{headers:?}");
    }
}

/// Partitions of a broker that is down wait; the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_down_loses_nothing() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    let mut topics = Topics::new();
    for group in ["centile", "centile-stream:out:arena"] {
        topics.cluster.coordinator(MockCoordinator::Group(group.to_owned()), 2).expect("a coordinator");
    }
    for partition in 0..PARTITIONS {
        for topic in ["in", "out"] {
            let leader = if topic == "in" { 1 + partition % 3 } else { 2 };
            topics.cluster.partition_leader(topic, partition, Some(leader)).expect("a leader");
        }
    }
    let players: Vec<String> = (0..60).map(|player| format!("p{player}")).collect();
    let events = || players.iter().map(|player| vec![("user_id", player.clone()), ("points", "1".to_owned())]);
    topics.send(&events().collect::<Vec<_>>()).await;
    topics.cluster.broker_down(1).expect("a stopped broker");
    let commands = [
        Running::start(&db, &["consume", &topics.url("in"), "--board", "arena", "--claim-after", "6"]),
        Running::start(&db, &["stream", "--board", "arena", "--to", &topics.url("out")]),
    ];
    until("other partitions are consumed and copied", async || topics.copied().await > 0).await;
    assert!(topics.copied().await < players.len(), "messages of the broker that is down were read");
    topics.cluster.broker_up(1).expect("a broker");
    until("all messages are consumed", async || topics.are_consumed().await).await;
    until("all transactions are copied", async || topics.copied().await == players.len()).await;
    for command in commands {
        command.stop().well();
    }
    let found: BTreeSet<String> = topics.transactions().await.iter().map(|fields| fields["user_id"].clone()).collect();
    assert_eq!(found, players.into_iter().collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_topics_and_properties_are_refused() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    let topics = Topics::new();
    let (unknown, out) = (topics.url("unknown"), topics.url("out"));
    run(&db, &["consume", &unknown, "--board", "arena"]).refused(1, &["no topic unknown"]);
    run(&db, &["stream", "--board", "arena", "--to", &unknown]).refused(1, &["no topic unknown"]);
    // The topic of dead letters is missing.
    run(&db, &["consume", &out, "--board", "arena"]).refused(1, &["no topic out.dead"]);
    run(&db, &["consume", "kafka://127.0.0.1:1", "--board", "arena"]).refused(1, &["kafka://host:9092/events"]);
    run(&db, &["stream", "--board", "arena", "--to", &out, "--max-length", "9"]).refused(1, &["--max-length: "]);
    let folder = folder("kafka");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("properties");
    for (text, words) in [("group.id=other", "Centile sets group.id"), ("no.such.property=1", "no.such.property")] {
        fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("a path");
        run(&db, &["stream", "--board", "arena", "--to", &out, "--kafka-config", file])
            .refused(1, &["--kafka-config: ", words]);
    }
    fs::remove_dir_all(folder).expect("removed");
}
