-- The sample data of sql/README.md, for a database that `centile migrate` has just set up. Times
-- are fixed or relative to this week and month, so that the outputs stay the same.
SET TimeZone = 'UTC';

SELECT centile.create_board('main', '{"title": "Main board", "lanes": 1, "first_layout": {"bounds": [50,100]}}');
SELECT centile.ensure_users('{ann,bob,cyd,dan,eve}', '{Ann,Bob,Cyd,Dan,Eve}');
SELECT centile.ensure_ledger_months();
SELECT centile.ensure_ledger_months('2024-01-15', '2024-01-17');
SELECT centile_store.open_periods(board_id, '{2024-01-15 12:00Z,2024-01-16 12:00Z,2024-01-17 12:00Z}')
FROM centile.boards WHERE slug = 'main';

SELECT r AS transaction_id
FROM (SELECT array_agg(user_id ORDER BY at) AS users, array_agg(points ORDER BY at) AS points,
             array_agg(reason ORDER BY at) AS reasons, array_agg(at ORDER BY at) AS times
      FROM (VALUES ('ann', 120::bigint, 'won a match', timestamptz '2024-01-15 10:00Z'),
                   ('bob', 90, 'won a match', '2024-01-15 10:05Z'),
                   ('cyd', 150, 'won a cup', '2024-01-15 20:30Z'),
                   ('dan', 40, 'won a match', '2024-01-16 09:00Z'),
                   ('ann', 30, 'daily bonus', '2024-01-16 12:00Z'),
                   ('eve', 15, 'daily bonus', '2024-01-17 18:00Z'),
                   ('bob', 25, 'daily bonus', '2024-01-17 19:15Z')) AS v (user_id, points, reason, at)) e
CROSS JOIN LATERAL testing.record_scores(1, 0::smallint, e.users, e.points, e.reasons, '{}', '{}', e.times) r;

-- The week of January 15 is closed, as by `centile close`.
SELECT centile_store.build_archive(c.id), centile_store.compare_archive(c.id) AS differences, centile_store.finish_close(c.id, c.at)
FROM (SELECT period_id AS id, centile_store.cut_off_period(period_id) AS at
      FROM centile.periods WHERE board = 'main' AND kind = 'week' AND label = '2024-01-15') c;

-- A board with weeks, and scores of the previous and the current week, whenever this runs.
SELECT centile.create_board('arena', '{"title": "Arena", "lanes": 1, "periods": ["week"]}');
SELECT centile.ensure_ledger_months(w.starts_at, w.ends_at),
       centile_store.open_periods(b.board_id, ARRAY[w.starts_at, now()])
FROM centile.boards b CROSS JOIN LATERAL centile.period_before('week', now(), b.time_zone) w WHERE b.slug = 'arena';

SELECT r AS transaction_id
FROM (SELECT array_agg(v.user_id ORDER BY v.at) AS users, array_agg(v.points ORDER BY v.at) AS points,
             array_agg(w.starts_at + v.at ORDER BY v.at) AS times
      FROM centile.period_before('week', now(), 'UTC') w
      CROSS JOIN (VALUES ('ann', 30::bigint, interval '0 days 10 hours'),
                         ('ann', 20, '2 days 9 hours'),
                         ('bob', 25, '1 day 12 hours'),
                         ('bob', 5, '1 day 13 hours'),
                         ('bob', 15, '2 days 20 hours'),
                         ('cyd', 40, '6 days 18 hours')) AS v (user_id, points, at)) e
CROSS JOIN LATERAL testing.record_scores(2, 0::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r;
SELECT c.transaction_id
FROM centile.period_before('week', now(), 'UTC') w
CROSS JOIN LATERAL centile.correct_score('arena', 'cyd', -10, w.starts_at + interval '6 days 20 hours', 'counted twice', 'dora') c;
SELECT testing.submit_score('arena', 'dan', 12);

-- A submitted score that waits, because no instance runs, and one that was refused.
SELECT centile.submit('arena', 'dan', 8, id => 'match-8');
INSERT INTO centile_store.inbox_failures (number, points, submitted_at, board_id, user_id, event_id, code, reason, submitted_by)
VALUES (0, 5, now(), 2, 'eve', 'match-7', 'user_banned', 'the player is banned', 'game');

-- A board with months that quarantines events that break its rules.
SELECT centile.create_board('ladder', '{"title": "Ladder", "lanes": 1, "periods": ["month"], "points_max": 1000, "on_violation": "quarantine"}');
SELECT centile.ensure_ledger_months(m.starts_at, m.ends_at), centile_store.open_periods(b.board_id, ARRAY[m.starts_at, now()])
FROM centile.boards b CROSS JOIN LATERAL centile.period_before('month', now(), b.time_zone) m WHERE b.slug = 'ladder';

SELECT r AS transaction_id
FROM centile.period_before('month', now(), 'UTC') m
CROSS JOIN LATERAL testing.record_scores(3, 0::smallint, '{eve,ann}', '{70,60}', '{}', '{}', '{}', ARRAY[m.starts_at, m.starts_at]) r;
SELECT testing.submit_score('ladder', 'bob', 8);
INSERT INTO centile_store.quarantine (board_id, user_id, points, reason, rule, detail, submitted_at)
SELECT 3, u.id, 5000, 'won a cup', 'points_out_of_bounds', '-9007199254740991 to 1000', now() FROM centile_store.users u WHERE u.external_id = 'eve';

-- A board that is computed from two others.
SELECT centile.create_board('hero', '{"mode": "combined", "title": "Heroes", "combination": {"sources": [{"board": "main", "period": "week:2024-01-15"}, {"board": "arena", "period": "week:previous", "weight": 2}], "refresh": "on-close"}}');
SELECT centile_store.build_combination(4);
SELECT centile_store.finish_combination(4, 'dora', 0.1);

-- A template without boards.
SELECT centile.set_template('quest', 'quest-*', '{"lanes": 1, "periods": ["week"]}', 1000);

-- A league of months, which starts in the next one.
SELECT centile.set_league('months', 'ladder', 'month', 30, '{bronze,silver,gold}', 7, 7);
