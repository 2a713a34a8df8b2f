SELECT kind AS "kind!", name AS "name!", secret AS "secret!", encrypted AS "encrypted!" FROM centile_store.kept_secrets()
