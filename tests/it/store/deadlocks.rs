//! Concurrent calls that lock the same rows.

use futures::future::join_all;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::support::{TestDb, amount};

/// Runs each statement in a session of its own, all at the same time. None of them may fail.
async fn run_at_once(sessions: &mut [PgConnection], statements: &[String]) {
    let run = |(session, statement): (_, &String)| sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(session);
    for (result, statement) in join_all(sessions.iter_mut().zip(statements).map(run)).await.iter().zip(statements) {
        assert!(result.is_ok(), "{statement}: {result:?}");
    }
}

async fn sessions(db: &TestDb, count: usize) -> Vec<PgConnection> {
    let connect = (0..count).map(|_| async { PgConnection::connect(db.url()).await.unwrap() });
    join_all(connect).await
}

#[tokio::test]
async fn two_new_players_befriend_each_other_at_the_same_moment() {
    let db = TestDb::new().await;
    let mut sessions = sessions(&db, 2).await;
    for n in 0..100 {
        let add = |user, friend| format!("SELECT centile.change_friends('{user}-{n}', 'add', '{{{friend}-{n}}}')");
        run_at_once(&mut sessions, &[add("ann", "bob"), add("bob", "ann")]).await;
    }
}

#[tokio::test]
async fn friends_of_each_other_are_erased_at_the_same_moment() {
    const FRIENDS: usize = 8;
    let db = TestDb::new().await;
    let mut sessions = sessions(&db, FRIENDS).await;
    for n in 0..amount(8, 40) {
        let all: Vec<String> = (0..FRIENDS).map(|friend| format!("p{n}-{friend}")).collect();
        let mut erase = Vec::new();
        for user in &all {
            let others: Vec<&str> = all.iter().filter(|other| *other != user).map(String::as_str).collect();
            db.execute(&format!("SELECT centile.change_friends('{user}', 'add', '{{{}}}')", others.join(","))).await;
        }
        for user in &all {
            db.execute(&format!(
                "SELECT centile.erase_user('{user}', p_request => 'request-{user}', p_in_steps => true)"
            ))
            .await;
        }
        for user in &all {
            erase.push(format!(
                "SELECT centile_store.erase_from_tops(u.external_id) FROM centile_store.erasures e JOIN centile_store.users u ON u.id = e.user_id
                 WHERE e.request_id = 'request-{user}'"
            ));
        }
        run_at_once(&mut sessions, &erase).await;
    }
}
