-- Each comment is the field and the message that centile_store.set_rules raises when the constraint is
-- violated.
COMMENT ON CONSTRAINT boards_title_length ON centile_store.boards IS
    'title: must have 1 to 128 bytes';
COMMENT ON CONSTRAINT boards_tiebreak_needs_single_event ON centile_store.boards IS
    'ties: a sum board has no tiebreak; use mode best or latest';
COMMENT ON CONSTRAINT boards_periods_known ON centile_store.boards IS
    'periods: must be one or more of all_time, hour, day, week, month, quarter, year';
COMMENT ON CONSTRAINT boards_lanes_range ON centile_store.boards IS
    'lanes: must be 1 to 64';
COMMENT ON CONSTRAINT boards_points_range ON centile_store.boards IS
    'points_min: must not be above points_max, nor be the smallest 64-bit integer';
COMMENT ON CONSTRAINT boards_layout_bounds_count ON centile_store.boards IS
    'first_layout: must have at most 99 bounds';
COMMENT ON CONSTRAINT boards_frozen_top_size_range ON centile_store.boards IS
    'frozen_top_size: must be 1 to 1000';
COMMENT ON CONSTRAINT boards_kept_archives_kinds ON centile_store.boards IS
    'kept_archives: must be a JSON object of hour, day, week, month, quarter, year, season, '
    'snapshot, rolling';
COMMENT ON CONSTRAINT boards_kept_archives_positive ON centile_store.boards IS
    'kept_archives: must be whole numbers from 1 to 1000000';
COMMENT ON CONSTRAINT boards_snapshots_known ON centile_store.boards IS
    'snapshots: must be day, week or month, on a board that keeps all_time';
COMMENT ON CONSTRAINT boards_rolling_lengths ON centile_store.boards IS
    'rolling: must be up to 8 lengths of windows: 2d to 366d, or 24h';
COMMENT ON CONSTRAINT boards_tags_form ON centile_store.boards IS
    'tags: must be up to 20 tags of 1 to 40 lower-case letters, digits, ''-'' and ''_'', each '
    'beginning with a letter or a digit';
COMMENT ON CONSTRAINT boards_score_format_form ON centile_store.boards IS
    'score_format: must be number, decimal:1 to decimal:18, duration:ms or duration:s; number '
    'and decimal may have a unit after a space';
COMMENT ON CONSTRAINT boards_description_length ON centile_store.boards IS
    'description: must have 1 to 1000 bytes';
COMMENT ON CONSTRAINT boards_icon_url_form ON centile_store.boards IS
    'icon_url: must be an https URL or a path on this host, of at most 1024 bytes';
COMMENT ON CONSTRAINT boards_colour_form ON centile_store.boards IS
    'colour: must be # and six hexadecimal digits in lower case';
COMMENT ON CONSTRAINT boards_tiers_form ON centile_store.boards IS
    'tiers: must be up to 20 tiers with different names of 1 to 40 characters, as in gold: top '
    '10 %, gold: rank 100 or gold: score 5000';
COMMENT ON CONSTRAINT boards_segments_form ON centile_store.boards IS
    'segments: must be up to 4 different names of attributes, each of 1 to 32 lower-case '
    'letters, digits and ''_''';
COMMENT ON CONSTRAINT boards_segments_rules ON centile_store.boards IS
    'segments: a board with segments has neither snapshots nor rolling windows, and is not a '
    'combined board';
COMMENT ON CONSTRAINT boards_combined_rules ON centile_store.boards IS
    'mode: a combined board keeps all_time only, and has one lane, ties shared or first, and '
    'neither snapshots nor rolling windows';
COMMENT ON CONSTRAINT boards_buckets_known ON centile_store.boards IS
    'buckets: must be all or all_time';
COMMENT ON CONSTRAINT boards_buckets_rules ON centile_store.boards IS
    'buckets: does not apply to a combined board';
COMMENT ON CONSTRAINT boards_reading_known ON centile_store.boards IS
    'reading: must be public or key';
COMMENT ON CONSTRAINT boards_events_per_minute_range ON centile_store.boards IS
    'events_per_minute: must be 1 to 10000';
COMMENT ON CONSTRAINT boards_gain_max_kinds ON centile_store.boards IS
    'gain_max: must be a JSON object of the kinds of period that the board keeps, or season';
COMMENT ON CONSTRAINT boards_gain_max_positive ON centile_store.boards IS
    'gain_max: must be whole numbers from 1 to 9007199254740991';
COMMENT ON CONSTRAINT boards_on_violation_known ON centile_store.boards IS
    'on_violation: must be refuse or quarantine';
COMMENT ON CONSTRAINT boards_mode_known ON centile_store.boards IS
    'mode: must be sum, best, latest or combined';
COMMENT ON CONSTRAINT boards_score_order_known ON centile_store.boards IS
    'order: must be desc or asc';
COMMENT ON CONSTRAINT boards_ties_known ON centile_store.boards IS
    'ties: must be shared, first or tiebreak';
