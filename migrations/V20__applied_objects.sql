-- Names of the functions and views that Centile created, so that a later edition replaces these and
-- leaves the others in its schemas alone. Empty until `centile migrate` has replaced all.
CREATE TABLE centile_store.applied_objects (
    name text COLLATE "C" NOT NULL,
    CONSTRAINT applied_objects_pkey PRIMARY KEY (name)
);
COMMENT ON TABLE centile_store.applied_objects IS
    'Functions and views that Centile created, each as COMMENT ON and DROP name it.';
