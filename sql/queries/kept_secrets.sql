SELECT kind AS "kind!", name AS "name!", secret AS "secret!", sealed AS "sealed!" FROM centile_store.kept_secrets()
