SELECT url AS "url!", created_at AS "created_at!" FROM centile.webhooks WHERE board = $1
