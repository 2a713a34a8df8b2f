-- In its own transaction, after the failed one. The last ranking still answers.
CREATE OR REPLACE FUNCTION centile_store.fail_combination(p_board_id integer, p_failure text) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    UPDATE centile_store.combinations
    SET failures = failures + 1, failed_at = clock_timestamp(), failure = p_failure
    WHERE board_id = p_board_id
$$;

COMMENT ON FUNCTION centile_store.fail_combination(integer, text) IS
'Records that a refresh of a combined board failed. Example: SELECT centile_store.fail_combination(4, ''a reason'');';
