//! Flags that all new boards have: tags, presentation and tiers.

use clap::Args;

use crate::{
    config::value,
    model::{
        presentation::{Colour, Description, IconUrl, Presentation, ScoreFormat},
        tag::Tag,
        tier::Tier,
    },
};

/// Tags, presentation and tiers of a new board.
#[derive(Debug, Args)]
pub(super) struct Labels {
    /// Tag that groups boards; repeat the flag for up to 20 tags
    ///
    /// 1 to 40 lower-case letters, digits, `-` and `_`, beginning with a letter or a digit.
    #[arg(long = "tag", value_name = "TAG", value_parser = value::<Tag>)]
    pub(super) tags: Vec<Tag>,
    /// How scores are written: number, decimal:2, duration:ms or duration:s
    ///
    /// number and decimal take a unit after a space: `--score-format "number points"` shows 12345 as
    /// 12,345 points. decimal:2 shows it as 123.45, and duration:ms as 0:12.345.
    #[arg(long, value_name = "FORMAT", value_parser = value::<ScoreFormat>, default_value = "number")]
    score_format: ScoreFormat,
    /// Text about the board
    #[arg(long, value_name = "TEXT", value_parser = value::<Description>)]
    description: Option<Description>,
    /// Picture of the board: an https URL, or a path on the host of the service
    #[arg(long, value_name = "URL", value_parser = value::<IconUrl>)]
    icon_url: Option<IconUrl>,
    /// Colour of the board, such as #1f6feb
    #[arg(long, value_name = "COLOUR", value_parser = value::<Colour>)]
    colour: Option<Colour>,
    /// Named part of the rankings, such as "gold: top 10 %"; repeat for each, up to 20, best first
    ///
    /// Rules are `top 10 %` (0.01 to 100), `rank 100` and `score 5000` (5,000 or better). A player has
    /// the first tier whose rule holds.
    #[arg(long = "tier", value_name = "NAME: RULE", value_parser = value::<Tier>)]
    pub(super) tiers: Vec<Tier>,
}

impl Labels {
    /// Returns how the board is shown.
    pub(super) fn presentation(&self) -> Presentation {
        Presentation {
            score_format: self.score_format.clone(),
            description: self.description.clone(),
            icon_url: self.icon_url.clone(),
            colour: self.colour.clone(),
        }
    }
}
