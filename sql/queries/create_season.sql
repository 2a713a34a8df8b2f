-- A date means its first instant in the board's time zone.
SELECT centile.create_season(b.slug, $2, coalesce($3, centile.local_start($4::date, b.time_zone)),
                             coalesce($5, centile.local_start($6::date, b.time_zone)), $7) AS "period_id!"
FROM centile_store.board_named($1) b
