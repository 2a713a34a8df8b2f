-- The members named in $2 of the metadata of each user, the first names first, up to 1,024 bytes. Users
-- without such members have no row. Private profiles have a row only if $4. $3 is the reading of profiles
-- without a setting of their own.
SELECT m.n AS "n!", jsonb_object_agg(m.name, m.value)::text AS "profile!"
FROM (SELECT w.n, p.name, u.metadata -> p.name AS value,
             sum(octet_length(to_jsonb(p.name)::text) + octet_length((u.metadata -> p.name)::text) + 4) OVER (PARTITION BY w.n ORDER BY p.place) AS bytes
      FROM unnest($1::text[]) WITH ORDINALITY AS w (user_id, n)
      JOIN centile_store.users u ON u.external_id = w.user_id
      CROSS JOIN unnest($2::text[]) WITH ORDINALITY AS p (name, place)
      WHERE u.metadata ? p.name AND octet_length((u.metadata -> p.name)::text) < 1000 AND ($4::boolean OR coalesce(u.reading, $3::text) = 'public')) m
WHERE m.bytes <= 1024
GROUP BY m.n
