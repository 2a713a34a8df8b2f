//! An instance that stops in the middle of its work, and continues.

use std::{sync::Arc, time::Duration};

use centile::dev::local::signal;
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Group, SCORES, compare, more, read};
use crate::support::{
    TestDb, amount,
    load::{Load, key},
};

/// Maximum lag of top lists.
const MAX_LAG: Duration = Duration::from_millis(250);

/// The paused writer may hold the lane's lock, which all others need.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mostly waits for HAProxy's checks: make torture"]
async fn a_paused_instance_gives_nobody_a_wrong_or_stale_answer() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 1}')").await;
    let flags = ["--pool-wait", "60000", "--statement-timeout", "5"];
    let group = Group::start(&db, [db.url(); 3], &flags).await;
    let key = key(db.url(), "admin");
    let load = |urls: Vec<String>| Load::new(urls, &["arena"], key.clone());
    // A request that the paused instance has received may fail.
    let mut behind = load(vec![group.balancer.url.clone()]);
    behind.may_fail = true;
    // Without HAProxy, a request waits until the instance continues.
    let mut direct = load(group.instances.iter().map(|instance| instance.url.clone()).collect());
    (direct.read_only, direct.may_fail) = (true, true);
    let [behind, direct] = [behind, direct].map(Arc::new);
    let mut record = behind.begin().await;
    let stop = CancellationToken::new();
    let pauses = async {
        for pause in 0..amount(2, 12) {
            more(&[&behind, &direct]).await;
            let (n, instance) = (pause % 3, &group.instances[pause % 3]);
            signal(instance.id(), "STOP").unwrap();
            group.balancer.until(n, "DOWN").await;
            let first = group.new_first(&key, pause).await;
            sleep(MAX_LAG).await;
            let standing = read(instance.at(&format!("{SCORES}/{first}")));
            let top = read(instance.at(&format!("{SCORES}?limit=10")));
            let continued = async {
                more(&[&behind]).await;
                signal(instance.id(), "CONT").unwrap();
            };
            let (standing, top, ()) = tokio::join!(standing, top, continued);
            for (status, body) in [(standing.0, &standing.1), (top.0, &top.1["data"][0])] {
                assert_eq!((status, &body["rank"], &body["user_id"]), (StatusCode::OK, &json!(1), &json!(first)));
            }
            group.balancer.until(n, "UP").await;
        }
        more(&[&behind, &direct]).await;
        stop.cancel();
    };
    let (through, read, ()) = tokio::join!(behind.run(&stop), direct.run(&stop), pauses);
    record.join(through);
    record.join(read.renumber(1));
    compare(&db, &behind, &mut record, "pauses").await;
}
