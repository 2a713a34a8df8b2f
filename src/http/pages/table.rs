//! Tables of players.

use maud::{Markup, html};

use crate::{
    http::pages::{
        link::Link,
        number::{count, number},
    },
    model::rank::Row,
};

/// Renders a table of players. `mark` is the highlighted player; `live` names the table for the
/// script.
pub(crate) fn table(caption: &str, rows: &[Row], link: &Link, mark: Option<&str>, live: &str) -> Markup {
    html! {
        // The script may fill an empty table.
        table data-live=(live) hidden[rows.is_empty()] {
            caption { (caption) }
            thead {
                tr {
                    th.rank scope="col" { "Rank" }
                    th.move scope="col" { span.unseen { "Change" } }
                    th.name scope="col" { "Player" }
                    th.score scope="col" { "Score" }
                }
            }
            tbody { @for row in rows { (line(row, link, mark)) } }
        }
    }
}

/// Renders one player's row.
fn line(row: &Row, link: &Link, mark: Option<&str>) -> Markup {
    let is_marked = mark == Some(row.user_id.as_str());
    html! {
        tr data-user=(row.user_id) aria-current=[is_marked.then_some("true")] {
            td.rank { (count(row.rank)) }
            td.move {}
            th.name scope="row" {
                a href=(link.player(Some(&row.user_id)).href()) title=(row.user_id) { bdi { (row.user_name) } }
            }
            td.score { (number(row.score)) }
        }
    }
}
