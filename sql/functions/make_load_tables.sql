-- The tables of a load, which the session has for itself and which go with it: the lines as they were copied, the players among them in
-- the order of their ids, lines that are refused, and what is left: events, in the order in which the ledger gets them.
CREATE FUNCTION centile_store.make_load_tables() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    BEGIN
        -- A process that was killed is missed within a second, also in the middle of a long statement.
        PERFORM set_config('client_connection_check_interval', '1s', false);
        PERFORM set_config('temp_buffers', '128MB', false);
    EXCEPTION
        -- Not every system can tell; and the buffers stay what they were at a session's first temporary table.
        WHEN invalid_parameter_value THEN NULL;
    END;
    CREATE TEMPORARY TABLE load_line (
        line        bigint   NOT NULL,
        user_id     text     COLLATE "C" NOT NULL,
        user_name   text,
        points      bigint   NOT NULL,
        tiebreak    smallint,
        reason      text,
        id          text     COLLATE "C",
        occurred_at timestamptz,
        raw         text     NOT NULL
    );
    CREATE TEMPORARY TABLE load_player (
        place   bigint NOT NULL,
        user_id text   COLLATE "C" NOT NULL,
        name    text,
        CONSTRAINT load_player_pkey PRIMARY KEY (place)
    );
    CREATE TEMPORARY TABLE load_refusal (
        line    bigint NOT NULL,
        outcome text   NOT NULL
    );
    CREATE TEMPORARY TABLE load_event (
        id           bigint   NOT NULL,
        user_id      bigint   NOT NULL,
        lane         smallint NOT NULL,
        points       bigint   NOT NULL,
        tiebreak     smallint,
        reason       text,
        occurred_at  timestamptz NOT NULL,
        external_id  text     COLLATE "C"
    );
END
$$;

COMMENT ON FUNCTION centile_store.make_load_tables() IS
'Makes the temporary tables of a load. Example: SELECT centile_store.make_load_tables();';
