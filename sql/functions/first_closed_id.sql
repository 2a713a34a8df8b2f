-- Ids of closed boards count up from here, so that the ids of a month lie between this and the next
-- month's first. All are above the ids of periods.
CREATE OR REPLACE FUNCTION centile_store.first_closed_id(p_ends_at timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE
SET timezone = 'UTC'
RETURN (extract(year FROM p_ends_at) * 12 + extract(month FROM p_ends_at) - 1)::bigint << 40;

COMMENT ON FUNCTION centile_store.first_closed_id(timestamptz) IS
'Lowest id of closed boards whose periods end in the month (UTC) of a time. Example: SELECT centile_store.first_closed_id(''2024-01-22 00:00Z'');';
