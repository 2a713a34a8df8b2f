//! Instances that cannot reach PostgreSQL.

use std::{sync::Arc, time::Duration};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Group, SCORES, compare, more, read};
use crate::support::{
    TestDb,
    load::{Load, key},
    proxy::{Proxy, Way},
    wait::until,
};

/// Maximum lag of top lists.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Fails unless a top list is refused or marked as stale.
fn expect_marked((status, top): &(StatusCode, Value)) {
    let is_refused = *status == StatusCode::SERVICE_UNAVAILABLE;
    assert!(is_refused || *status == StatusCode::OK && top["stale"] == true, "{status}: {top}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mostly waits for HAProxy's checks: make torture"]
async fn an_instance_without_postgresql_gets_no_requests_and_gives_no_stale_answer() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 2}')").await;
    let proxies = [Proxy::to(db.port()).await, Proxy::to(db.port()).await, Proxy::to(db.port()).await];
    let urls = proxies.each_ref().map(|proxy| proxy.instead(db.url()));
    let group = Group::start(&db, urls.each_ref().map(String::as_str), &["--statement-timeout", "2"]).await;
    let key = key(db.url(), "admin");
    let mut writers = Load::new(vec![group.balancer.url.clone()], &["arena"], key.clone());
    writers.may_fail = true;
    let mut direct = Load::new(group.instances.iter().map(|i| i.url.clone()).collect(), &["arena"], key.clone());
    (direct.read_only, direct.may_fail) = (true, true);
    let [writers, direct] = [writers, direct].map(Arc::new);
    let mut record = writers.begin().await;
    let stop = CancellationToken::new();
    let cuts = async {
        let (cut, top) = (&group.instances[2], format!("{SCORES}?limit=10"));
        for (number, way) in [Way::Reset, Way::Silent].into_iter().enumerate() {
            more(&[&writers, &direct]).await;
            proxies[2].set(way);
            group.balancer.until(2, "DOWN").await;
            assert_eq!(read(cut.at("/readyz")).await.0, StatusCode::SERVICE_UNAVAILABLE);
            let first = group.new_first(&key, number).await;
            sleep(MAX_LAG).await;
            assert_eq!(read(cut.at(&format!("{SCORES}/{first}"))).await.0, StatusCode::SERVICE_UNAVAILABLE);
            expect_marked(&read(cut.at(&top)).await);
            more(&[&writers]).await;
            proxies[2].set(Way::Open);
            group.balancer.until(2, "UP").await;
            until("the instance answers again", async || {
                let (status, standing) = read(cut.at(&format!("{SCORES}/{first}"))).await;
                let is_right = status == StatusCode::OK && standing["rank"] == 1;
                assert!(is_right || status == StatusCode::SERVICE_UNAVAILABLE, "{status}: {standing}");
                is_right
            })
            .await;
        }
        // Without any ready instance, HAProxy still sends requests, for marked lists and reasons.
        for instance in &group.instances {
            until("the list is cached", async || read(instance.at(&top)).await.0 == StatusCode::OK).await;
        }
        for proxy in &proxies {
            proxy.set(Way::Reset);
        }
        for instance in 0..3 {
            group.balancer.until(instance, "DOWN").await;
        }
        let (status, list) = read(group.balancer.at(&top)).await;
        assert_eq!((status, &list["stale"]), (StatusCode::OK, &json!(true)), "{list}");
        let (status, problem) = read(group.balancer.at(&format!("{SCORES}/p1"))).await;
        assert_eq!((status, &problem["status"]), (StatusCode::SERVICE_UNAVAILABLE, &json!(503)), "{problem}");
        for proxy in &proxies {
            proxy.set(Way::Open);
        }
        for instance in 0..3 {
            group.balancer.until(instance, "UP").await;
        }
        more(&[&writers, &direct]).await;
        stop.cancel();
    };
    let (written, read, ()) = tokio::join!(writers.run(&stop), direct.run(&stop), cuts);
    record.join(written);
    record.join(read.renumber(1));
    compare(&db, &writers, &mut record, "cuts").await;
}
