//! VACUUM FULL may move the rows of players between the two calls of a batch.

use centile::tested::{Batches, Event};

use crate::support::{TestDb, audit};

const USERS: [&str; 5] = ["ann", "bob", "cyd", "dan", "eve"];

/// Returns a board where each player has a point.
async fn board() -> (TestDb, Batches) {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1, \"periods\": [\"all_time\", \"day\"]}')").await;
    let batches = Batches::new(db.url()).unwrap();
    write(&batches, &USERS).await;
    (db, batches)
}

/// Gives each player a point.
async fn write(batches: &Batches, users: &[&str]) {
    let event = |user_id: &&str| Event {
        user_id: user_id.parse().unwrap(),
        points: 1,
        tiebreak: None,
        reason: None,
        id: None,
        occurred_at: None,
        metadata: None,
    };
    let events: Vec<Event> = users.iter().map(event).collect();
    let (_, answers) = batches.write(1, 0, false, &events).await.unwrap();
    assert!(answers.iter().all(|(outcome, ..)| *outcome == "accepted"), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_are_written_while_vacuum_full_moves_rows() {
    let (db, batches) = board().await;
    let writing = tokio::spawn(async move {
        for number in 0..200 {
            write(&batches, &USERS[number % 3..][..3]).await;
        }
    });
    while !writing.is_finished() {
        db.execute("VACUUM FULL centile_store.players").await;
    }
    writing.await.unwrap();
    assert!(audit::rankings_are_sound(&db.pool().await).await > 0);
}
