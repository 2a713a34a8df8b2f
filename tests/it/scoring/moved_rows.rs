//! `commit_batch` updates entries at the `ctid` that `begin_batch` read, but VACUUM FULL may move
//! them between the two calls.

use centile::tested::{Batches, Submitted};

use crate::support::{TestDb, audit};

const USERS: [&str; 5] = ["ann", "bob", "cyd", "dan", "eve"];

/// Returns a board where each player has a point.
async fn board() -> (TestDb, Batches) {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', p_lanes => 1::smallint, p_periods => '{all_time,day}')").await;
    let batches = Batches::new(db.url()).unwrap();
    write(&batches, &USERS).await;
    (db, batches)
}

/// Gives each player a point.
async fn write(batches: &Batches, users: &[&str]) {
    let event =
        |user_id| Submitted { user_id, points: 1, tiebreak: None, reason: None, id: None, at: None, metadata: None };
    let events: Vec<Submitted> = users.iter().copied().map(event).collect();
    let (_, answers) = batches.write(1, 0, false, &events).await.unwrap();
    assert!(answers.iter().all(|(outcome, ..)| *outcome == "accepted"), "{answers:?}");
}

#[tokio::test]
async fn a_row_that_took_the_place_of_another_is_not_overwritten() {
    let (db, batches) = board().await;
    let pool = db.pool().await;
    let ctid_of = async |user: &str| -> String {
        let ctid = "SELECT l.ctid::text FROM centile_store.leaderboard l
                    JOIN centile_store.users u ON u.id = l.user_id JOIN centile_store.periods p ON p.ranking_id = l.ranking_id
                    WHERE u.external_id = $1 AND p.kind = 'all_time'";
        sqlx::query_scalar(ctid).bind(user).fetch_one(&pool).await.unwrap()
    };
    let overwrite = async |ctid: &str| -> String {
        let overwrite = "SELECT centile_store.write_entries(0::smallint, 'desc', ARRAY[p.ranking_id], ARRAY[u.id], '{1}', ARRAY[$1::tid],
                             '{77}', '{0}', '{false}')
                         FROM centile_store.periods p, centile_store.users u WHERE u.external_id = 'eve' AND p.kind = 'all_time'";
        let error = sqlx::query(overwrite).bind(ctid).execute(&pool).await.unwrap_err();
        error.as_database_error().unwrap().code().unwrap().into_owned()
    };
    // The updates put new row versions behind eve's row. VACUUM FULL drops the old versions, so
    // eve's row moves forward, and another row takes its place.
    let read = ctid_of("eve").await;
    write(&batches, &["ann", "bob", "cyd", "dan"]).await;
    db.execute("VACUUM FULL centile_store.leaderboard").await;
    let at_place: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.leaderboard WHERE ctid = $1::tid")
        .bind(&read)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(at_place == 1 && ctid_of("eve").await != read);
    assert_eq!(overwrite(&read).await, "40001");
    db.execute("DELETE FROM centile_store.leaderboard l USING centile_store.users u WHERE u.id = l.user_id AND u.external_id = 'eve'")
        .await;
    assert_eq!(overwrite(&read).await, "CB900");
    let written: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.leaderboard WHERE rank_key = 77")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(written, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_are_written_while_vacuum_full_moves_entries() {
    let (db, batches) = board().await;
    let writing = tokio::spawn(async move {
        for number in 0..200 {
            write(&batches, &USERS[number % 3..][..3]).await;
        }
    });
    while !writing.is_finished() {
        db.execute("VACUUM FULL centile_store.leaderboard").await;
    }
    writing.await.unwrap();
    assert!(audit::rankings_are_sound(&db.pool().await).await > 0);
}
