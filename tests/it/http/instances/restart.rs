//! A rolling restart.

use std::{collections::BTreeSet, sync::Arc};

use centile::dev::local::signal;
use tokio_util::sync::CancellationToken;

use super::{Group, address, compare, more, serve, until_ready};
use crate::support::{
    PATIENT, TestDb, amount,
    load::{Load, key},
    record::{Change, Record},
};

impl Group {
    /// Drains and stops an instance, starts its successor, and waits until that gets requests.
    async fn restart(&mut self, n: usize, url: &str, flags: &[&str]) {
        let instance = &mut self.instances[n];
        if amount(true, false) {
            signal(instance.id(), "TERM").unwrap();
            self.balancer.until(n, "DOWN").await;
            self.balancer.until_idle(n).await;
            // The second signal, in `stop`, ends the drain.
        }
        let ended = instance.stop().await;
        assert_eq!(ended.code(), Some(0), "{}", instance.output());
        *instance = serve(url, &self.redis_prefix, address(instance), flags).await;
        until_ready(instance).await;
        let index = instance.metric(r#"centile_index_bytes{index="arena/all_time"}"#).await;
        assert!(index > 0.0, "an instance is ready with its indexes");
        self.balancer.until(n, "UP").await;
    }
}

/// Returns the ids of all acknowledged scores.
fn acknowledged(record: &Record) -> BTreeSet<i64> {
    let id = |change: &Change| match change {
        Change::Score { result, .. } => result["transaction_id"].as_i64(),
        _ => None,
    };
    record.acknowledged.iter().filter_map(|change| id(&change.what)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts six instances under load: make torture"]
async fn a_rolling_restart_fails_no_request() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 2}')").await;
    let indexed = ["--index-boards", "arena", "--ready-when-indexed", "--drain", amount("600", "10")];
    let flags = [&PATIENT[..], &indexed].concat();
    let mut group = Group::start(&db, [db.url(); 3], &flags).await;
    // Every failed request fails the test.
    let load = Arc::new(Load::new(vec![group.balancer.url.clone()], &["arena"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let restarts = async {
        for n in (0..3).cycle().take(amount(3, 15)) {
            more(&[&load]).await;
            group.restart(n, db.url(), &flags).await;
        }
        more(&[&load]).await;
        stop.cancel();
    };
    let (run, ()) = tokio::join!(load.run(&stop), restarts);
    record.join(run);
    let ledger: Vec<i64> = sqlx::query_scalar("SELECT id FROM centile_store.score_transactions WHERE kind = 'score'")
        .fetch_all(&db.pool().await)
        .await
        .unwrap();
    let acknowledged = acknowledged(&record);
    assert_eq!(ledger.len(), acknowledged.len(), "each acknowledged score counts once");
    assert_eq!(ledger.into_iter().collect::<BTreeSet<_>>(), acknowledged);
    compare(&db, &load, &mut record, "a rolling restart").await;
}
