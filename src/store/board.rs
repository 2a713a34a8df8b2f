//! SQL of boards.

use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::{Board, BoardFilter, BoardPattern, BoardSettings, BoardSlug},
        tag::Tag,
    },
    store::{Administrator, Reader, ScoreWriter, error::written, undamaged},
};

/// A row of `centile.boards`, as JSON.
struct StoredBoard {
    slug: String,
    rules: String,
}

/// A board of a template.
#[derive(Debug)]
pub(crate) struct TemplateBoard {
    pub(crate) template_id: i32,
    /// `None` until the first score creates it.
    pub(crate) id: Option<i32>,
    /// Revision of the template's structure.
    pub(crate) revision: i64,
}

impl TryFrom<StoredBoard> for Board {
    type Error = Error;

    fn try_from(StoredBoard { slug, rules }: StoredBoard) -> Result<Self> {
        serde_json::from_str(&rules).map_err(|error| Error::Internal(format!("board {slug} is damaged: {error}")))
    }
}

fn texts<'a, T: ToString + 'a>(items: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    items.into_iter().map(ToString::to_string).collect()
}

impl Reader {
    /// Returns the selected boards by slug, without damaged ones, and the slug of the last row if the
    /// limit leaves out further boards.
    pub(crate) async fn boards(&self, filter: BoardFilter<'_>) -> Result<(Vec<Board>, Option<String>)> {
        let mut rows = self.stored_boards(None, filter).await?;
        let is_last = filter.limit.is_none_or(|limit| rows.len() <= limit);
        rows.truncate(filter.limit.unwrap_or(usize::MAX));
        let next = rows.last().filter(|_| !is_last).map(|row| row.slug.clone());
        let boards = rows.into_iter().map(|row| (format!("board {}", row.slug), Board::try_from(row)));
        Ok((undamaged(boards), next))
    }

    pub(crate) async fn board(&self, slug: &BoardSlug) -> Result<Option<Board>> {
        let mut rows = self.stored_boards(Some(slug), BoardFilter::default()).await?;
        if let Some(row) = rows.pop() {
            return Board::try_from(row).map(Some);
        }
        let query = sqlx::query_file_scalar!("sql/queries/future_board.sql", slug.as_str());
        let rules = self.servers.read_coordinator(query.fetch_optional(&self.readers)).await?;
        rules.map(|rules| StoredBoard { slug: slug.to_string(), rules }.try_into()).transpose()
    }

    /// Returns the template whose pattern matches a name, and the board with this name if it exists.
    pub(crate) async fn template_board(&self, slug: &BoardSlug) -> Result<Option<TemplateBoard>> {
        let query = sqlx::query_as!(
            TemplateBoard,
            r#"SELECT t.id AS template_id, b.id AS "id?", t.structure_revision AS revision
               FROM centile_store.boards t LEFT JOIN centile_store.template_boards b ON b.slug = $1
               WHERE t.id = centile_store.template_of($1)
                 AND NOT EXISTS (SELECT FROM centile_store.boards o WHERE o.slug = $1 AND o.deleted_at IS NULL)"#,
            slug.as_str()
        );
        self.servers.read_coordinator(query.fetch_optional(&self.readers)).await
    }

    /// Returns the revision of a board's structure.
    pub(crate) async fn structure_revision(&self, board_id: i32) -> Result<i64> {
        let query = sqlx::query_scalar!("SELECT structure_revision FROM centile_store.boards WHERE id = $1", board_id);
        self.servers.read_coordinator(query.fetch_one(&self.readers)).await
    }

    /// Returns the row of one board, or those of the selected boards and of the next one.
    async fn stored_boards(&self, slug: Option<&BoardSlug>, filter: BoardFilter<'_>) -> Result<Vec<StoredBoard>> {
        let readable = filter.readable.map(texts);
        let query = sqlx::query_file_as!(
            StoredBoard,
            "sql/queries/boards.sql",
            slug.map(BoardSlug::as_str),
            filter.tag.map(Tag::as_str),
            filter.template,
            filter.prefix,
            filter.after.map_or("", BoardSlug::as_str),
            readable.as_deref(),
            filter.limit.map(|limit| i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))),
        );
        self.servers.read_coordinator(query.fetch_all(&self.readers)).await
    }

    /// Returns a board or template that requires a key and is none of these.
    pub(crate) async fn private_board(&self, but: &[BoardPattern]) -> Result<Option<BoardPattern>> {
        let query = sqlx::query_scalar!(
            "SELECT slug FROM centile_store.boards WHERE reading = 'key' AND deleted_at IS NULL AND slug <> ALL ($1) LIMIT 1",
            &texts(but)
        );
        self.servers.read_coordinator(query.fetch_optional(&self.readers)).await?.map(|slug| slug.parse()).transpose()
    }
}

impl ScoreWriter {
    /// Creates a board of a template, unless it exists, and returns its id.
    ///
    /// [`Error::Conflict`] if the template has its maximum number of boards.
    pub(crate) async fn ensure_board(&self, slug: &BoardSlug) -> Result<i32> {
        self.reader.servers.require_coordinator()?;
        let query = sqlx::query_scalar!(r#"SELECT centile_store.ensure_board($1) AS "id!""#, slug.as_str());
        written(query.fetch_one(&self.score_writers).await)
    }
}

impl Administrator {
    /// Returns id and slug of the boards and templates that have events. Reads from the primary, which
    /// knows all of them.
    pub(crate) async fn boards_with_events(&self) -> Result<Vec<(i32, String)>> {
        let boards = sqlx::query!(
            "SELECT id, slug FROM centile_store.boards WHERE mode <> 'combined' AND deleted_at IS NULL ORDER BY slug"
        )
        .fetch_all(&self.writers)
        .await?;
        Ok(boards.into_iter().map(|board| (board.id, board.slug)).collect())
    }

    pub(crate) async fn create_board(&self, slug: &BoardSlug, rules: &BoardSettings, by: &Actor) -> Result<()> {
        let query =
            sqlx::query!("SELECT centile.create_board($1, $2, $3)", slug.as_str(), Json(rules) as _, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Deletes a board, or a template by its pattern.
    ///
    /// [`Error::Conflict`] while a combined board or an import needs it.
    pub(crate) async fn delete_board(&self, slug: &str, by: &Actor) -> Result<()> {
        let query = sqlx::query!("SELECT centile.delete_board($1, $2)", slug, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    pub(crate) async fn update_board(&self, slug: &BoardSlug, change: &BoardSettings, by: &Actor) -> Result<()> {
        let query =
            sqlx::query!("SELECT centile.update_board($1, $2, $3)", slug.as_str(), Json(change) as _, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}
