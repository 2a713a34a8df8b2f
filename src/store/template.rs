//! SQL of templates.

use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::Board,
        template::{Template, TemplateSettings},
    },
    store::{Administrator, Reader, error::written},
};

impl Reader {
    /// Returns all templates by name, or the one with this name.
    pub(crate) async fn templates(&self, name: Option<&str>) -> Result<Vec<Template>> {
        let query = sqlx::query_file!("sql/queries/templates.sql", name);
        let rows = self.servers.read_coordinator(query.fetch_all(&self.readers)).await?;
        rows.into_iter()
            .map(|row| {
                let board: Board = serde_json::from_str(&row.rules)
                    .map_err(|error| Error::Internal(format!("template {} is damaged: {error}", row.name)))?;
                Ok(Template {
                    name: row.name,
                    pattern: row.pattern,
                    boards: row.boards,
                    max_boards: row.max_boards,
                    board,
                })
            })
            .collect()
    }
}

impl Administrator {
    /// Creates or changes a template.
    ///
    /// [`Error::Conflict`] if the pattern shares names with another template, or if a rule can no longer
    /// change.
    pub(crate) async fn set_template(&self, name: &str, settings: &TemplateSettings, by: &Actor) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile.set_template($1, $2, $3, $4, $5)",
            name,
            settings.pattern,
            Json(&settings.rules) as _,
            settings.max_boards,
            by.as_str()
        );
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}
