//! `verify` of closed periods.

use super::*;

const WEEK: &[&str] = &["--period", "week:2024-01-01"];

/// Replaces the week's archive by one of the same name: its original rows after `statement`, which
/// changes the table `x`.
async fn damage_archive(db: &TestDb, statement: &str) {
    db.execute(&format!(
        "SET search_path = centile_archive;
         CREATE TABLE IF NOT EXISTS first AS SELECT * FROM arena_week_2024_01_01;
         DROP MATERIALIZED VIEW arena_week_2024_01_01;
         DROP TABLE IF EXISTS x;
         CREATE TABLE x AS SELECT * FROM first;
         {statement};
         CREATE MATERIALIZED VIEW arena_week_2024_01_01 AS SELECT * FROM x"
    ))
    .await;
}

#[tokio::test]
async fn a_damaged_archive_is_named() {
    let db = with_past().await;
    run(&db, &["close", "--due"]).well();
    for (statement, wanted, words) in [
        ("UPDATE x SET score = score + 1 WHERE user_id = 7", "archive row different", "player p007 (7)"),
        ("UPDATE x SET rank = rank + 1 WHERE user_id = 7", "archive row different", "\"rank\""),
        ("DELETE FROM x WHERE user_id = 7", "archive row missing", "player p007 (7)"),
        (
            "INSERT INTO x SELECT position + 1000, rank, user_id + 1000, score, reached_at FROM x WHERE user_id = 7",
            "archive row unexpected",
            "player unknown (1007)",
        ),
    ] {
        damage_archive(&db, statement).await;
        let found = verify(&db, &[]);
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from([wanted])), "{statement}: {found:?}");
        assert!(found.out.contains(words), "{statement}: {found:?}");
        assert_eq!(found.out.lines().filter(|line| line.ends_with("  ok")).count(), 2, "{found:?}");
    }
    damage_archive(&db, "SELECT").await;
    verify(&db, &[]).well();
    // From now on only a whole verification reads it, until damage is known.
    damage_archive(&db, "DELETE FROM x WHERE user_id = 7").await;
    verify(&db, WEEK).well();
    for more in [&["--whole"][..], &[]] {
        let found = verify(&db, &[WEEK, more].concat());
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["archive row missing"])), "{found:?}");
    }
    // The same for damage that cannot be read.
    damage_archive(&db, "SELECT").await;
    verify(&db, WEEK).well();
    damage_archive(&db, "ALTER TABLE x RENAME score TO points").await;
    verify(&db, WEEK).well();
    for more in [&["--whole"][..], &[]] {
        let found = verify(&db, &[WEEK, more].concat());
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["unreadable"])), "{found:?}");
    }
}

#[tokio::test]
async fn values_derived_from_an_archive_are_compared() {
    let db = with_past().await;
    run(&db, &["close", "--due"]).well();
    let pool = db.pool().await;
    let top = "UPDATE centile_store.periods SET frozen_top =
        convert_to(jsonb_set(convert_from(frozen_top, 'UTF8')::jsonb, $PATH, $VALUE)::text, 'UTF8') WHERE label = '2024-01-01'";
    for (statement, wanted, words) in [
        (top.replace("$PATH", "'{rows,2,score}'").replace("$VALUE", "'5'"), "frozen top", "position 3"),
        (top.replace("$PATH", "'{players}'").replace("$VALUE", "'5'"), "archive players", "frozen top"),
        (
            "UPDATE centile_store.periods SET archive_players = archive_players - 1 WHERE label = '2024-01-01'"
                .to_owned(),
            "archive players",
            "of the period",
        ),
    ] {
        db.execute(&statement).await;
        let found = verify(&db, &[WEEK, &["--whole"]].concat());
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from([wanted])), "{statement}: {found:?}");
        assert!(found.out.contains(words), "{statement}: {found:?}");
        assert!(found.err.contains("centile refresh"), "{found:?}");
        run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01", "--by", "dora"]).well();
        verify(&db, WEEK).well();
    }
    // A correction that waits for a refresh is after the cut-off.
    let correct =
        ["correct", "p007", "500", "--board", "arena", "--at", "2024-01-03T00:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &correct).well();
    verify(&db, &[]).well();
    // An archive beyond the board's retention is not compared; an archive that somebody dropped is
    // a difference.
    run(&db, &["board", "change", "arena", "--keep", "week=1"]).well();
    run(&db, &["maintain"]).well();
    assert_eq!(verify(&db, &[]).well().lines().count(), 2);
    db.execute("DROP MATERIALIZED VIEW centile_archive.arena_week_2024_01_08").await;
    let found = verify(&db, &[]);
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["archive missing"])), "{found:?}");
    assert!(found.out.contains("centile_archive.arena_week_2024_01_08"), "{found:?}");
    pool.close().await;
}
