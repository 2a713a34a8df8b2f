-- Types that functions pass around. They stay the same objects through all editions of the functions:
-- connections of instances remember the numbers of types.

CREATE TYPE centile_store.rank_key AS (
    rank_key bigint,
    tie_key  bigint,
    user_key bigint
);
COMMENT ON TYPE centile_store.rank_key IS
    'Key that orders the players of a ranking, larger is better: score, tiebreak and time, user.';

CREATE TYPE centile_store.ranking_row AS (
    "position"  bigint,
    rank        bigint,
    user_id     text,
    user_name   text,
    avatar      text,
    score       bigint,
    reached_at  timestamptz,
    internal_id bigint,
    rank_key    bigint,
    tie_key     bigint
);
COMMENT ON TYPE centile_store.ranking_row IS
    'Player of a ranking or an archive, with what makes the cursor of the next page.';

CREATE TYPE centile_store.pending_event AS (
    user_id     bigint,
    points      bigint,
    tiebreak    smallint,
    reason      text,
    occurred_at timestamptz,
    external_id text,
    standings   bigint[],
    rule        text,
    detail      text
);
COMMENT ON TYPE centile_store.pending_event IS
    'Score event to write: into quarantine if it names the rule that it breaks, otherwise into the '
    'ledger. Without a time, it gets the time of its batch.';
