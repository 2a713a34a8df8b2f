//! Tiers: named parts of a ranking, such as its best tenth.

use std::{collections::HashSet, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{json::as_text, key::short_digest, rule::Order},
};

pub const TIERS_MAX: usize = 20;

/// Maximum characters of a tier's name.
pub const TIER_NAME_MAX: usize = 40;

/// Ranks and scores of rules have at most 18 digits.
const NUMBER_MAX: u64 = 999_999_999_999_999_999;

/// Selects the players of a tier. Every rule selects the first players of a ranking, up to a
/// position, so the better tiers come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TierRule {
    /// Those whose rank is within this share of the players, in hundredths of a percent: 1 to 10,000.
    Top(u16),
    /// Those whose rank is at most this one.
    Rank(u64),
    /// Those whose score is this one or better.
    Score(i64),
}

/// A tier. Text forms: `gold: top 10 %`, `gold: rank 100`, `gold: score 5000`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tier {
    name: String,
    rule: TierRule,
}

impl Tier {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rule(&self) -> TierRule {
        self.rule
    }
}

impl FromStr for TierRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let spaced = text.replace('%', " % ");
        let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
        let rule = match words[..] {
            ["top", share, "%"] => hundredths(share).map(Self::Top),
            ["rank", rank] => digits(rank).filter(|rank| *rank > 0).map(Self::Rank),
            ["score", score] => {
                let (is_negative, size) = score.strip_prefix('-').map_or((false, score), |size| (true, size));
                let size = digits(size).and_then(|size| i64::try_from(size).ok());
                size.map(|size| Self::Score(if is_negative { -size } else { size }))
            }
            _ => None,
        };
        rule.ok_or_else(|| {
            let forms = "top 10 % (0.01 to 100, with up to two decimals), rank 100, or score 5000";
            Error::invalid("tiers", format!("{:?} is not a rule: use {forms}, with up to 18 digits", text.trim()))
        })
    }
}

/// Parses a number of at most 18 digits.
fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= NUMBER_MAX)
}

/// Parses a percentage with up to two decimals, in hundredths.
fn hundredths(text: &str) -> Option<u16> {
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) if (1..=2).contains(&decimals.len()) => (whole, format!("{decimals:0<2}")),
        Some(_) => return None,
        None => (text, "00".to_owned()),
    };
    let number = digits(whole)?.checked_mul(100)?.checked_add(digits(&decimals)?)?;
    u16::try_from(number).ok().filter(|number| (1..=10_000).contains(number))
}

impl fmt::Display for TierRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Top(share) => {
                let decimals = format!(".{:02}", share % 100);
                let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
                write!(f, "top {}{decimals} %", share / 100)
            }
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Score(score) => write!(f, "score {score}"),
        }
    }
}

impl FromStr for Tier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((name, rule)) = text.split_once(':') else {
            return Err(Error::invalid("tiers", format!("{text:?} has no colon: write a tier as in gold: top 10 %")));
        };
        let name = name.trim_matches(' ');
        if name.is_empty() || name.chars().count() > TIER_NAME_MAX || name.chars().any(char::is_control) {
            let message =
                format!("a tier's name must have 1 to {TIER_NAME_MAX} characters, none of them a control character");
            return Err(Error::invalid("tiers", message));
        }
        Ok(Self { name: name.to_owned(), rule: rule.parse()? })
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

as_text!(Tier);

/// A tier: a name of 1 to 40 characters, a colon, and a rule. Spaces around them do not matter.
#[derive(Debug, ToSchema)]
#[schema(
    as = Tier,
    example = "gold: top 10 %",
    pattern = r"^ *[^: \x00-\x1f\x7f-\x9f]([^:\x00-\x1f\x7f-\x9f]{0,38}[^: \x00-\x1f\x7f-\x9f])? *: *(top +(100(\.0{1,2})?|[1-9][0-9]?(\.[0-9]{1,2})?|0\.([1-9][0-9]?|0[1-9])) *%|rank +[1-9][0-9]{0,17}|score +(0|-?[1-9][0-9]{0,17})) *$"
)]
#[expect(dead_code, reason = "describes a valid tier")]
pub(super) struct TierText(String);

/// The tiers of a board, best first. [`Tiers::check`] has their rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Tier>", into = "Vec<Tier>")]
pub struct Tiers(Arc<[Tier]>);

impl From<Vec<Tier>> for Tiers {
    fn from(tiers: Vec<Tier>) -> Self {
        Self(tiers.into())
    }
}

impl From<Tiers> for Vec<Tier> {
    fn from(tiers: Tiers) -> Self {
        tiers.0.to_vec()
    }
}

impl Tiers {
    /// Checks the number of tiers, and that their names differ.
    pub fn check(&self) -> Result<()> {
        if self.0.len() > TIERS_MAX {
            return Err(Error::invalid("tiers", format!("must be at most {TIERS_MAX}, not {}", self.0.len())));
        }
        let mut names = HashSet::new();
        match self.iter().enumerate().find(|(_, tier)| !names.insert(&tier.name)) {
            Some((n, tier)) => Err(Error::invalid(format!("tiers[{n}]"), format!("repeats the name {:?}", tier.name))),
            None => Ok(()),
        }
    }

    /// Parses the text forms of tiers, best first. An error names the place in the list.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let tier =
            |(n, text): (usize, &String)| text.parse().map_err(|error: Error| error.in_field(format!("tiers[{n}]")));
        Ok(Self(texts.iter().enumerate().map(tier).collect::<Result<_>>()?))
    }

    /// Returns the tiers, best first.
    pub fn iter(&self) -> std::slice::Iter<'_, Tier> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tier of a player: the first whose rule the player meets.
    ///
    /// `players` is the number of players of the ranking.
    pub fn of(&self, order: Order, score: i64, rank: u64, players: u64) -> Option<&Tier> {
        self.iter().find(|tier| match tier.rule {
            TierRule::Top(share) => u128::from(rank) * 10_000 <= u128::from(share) * u128::from(players),
            TierRule::Rank(last) => rank <= last,
            TierRule::Score(least) => match order {
                Order::Desc => score >= least,
                Order::Asc => score <= least,
            },
        })
    }

    /// Returns a digest for entity tags; an empty text without tiers.
    pub(crate) fn digest(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let texts: Vec<String> = self.iter().map(ToString::to_string).collect();
        format!("-{}", short_digest(&texts.join("\n")))
    }
}

impl<'a> IntoIterator for &'a Tiers {
    type Item = &'a Tier;
    type IntoIter = std::slice::Iter<'a, Tier>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A tier and its players.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TierCountResponse)]
pub struct TierCount {
    /// Name of the tier.
    #[schema(example = "gold")]
    pub tier: String,
    /// Its rule.
    #[schema(example = "top 10 %")]
    pub rule: String,
    /// Players in the tier.
    #[schema(example = 412)]
    pub players: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiers(texts: &[&str]) -> Result<Tiers> {
        let tiers = Tiers::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())?;
        tiers.check().map(|()| tiers)
    }

    fn name(tiers: &Tiers, order: Order, score: i64, rank: u64, players: u64) -> Option<&str> {
        tiers.of(order, score, rank, players).map(Tier::name)
    }

    #[test]
    fn texts_are_parsed_with_any_spaces_and_printed_in_one_form() {
        for (text, printed) in [
            ("gold: top 10 %", "gold: top 10 %"),
            ("gold:top 10%", "gold: top 10 %"),
            ("  Gold  medal :  top   0.50  % ", "Gold  medal: top 0.5 %"),
            ("a: top 100.00 %", "a: top 100 %"),
            ("a: top 00.01 %", "a: top 0.01 %"),
            ("a: top 12.34%", "a: top 12.34 %"),
            ("a: rank 001", "a: rank 1"),
            ("a: rank 999999999999999999", "a: rank 999999999999999999"),
            ("a: score -0", "a: score 0"),
            ("a: score -999999999999999999", "a: score -999999999999999999"),
            ("Бронза: score 5000", "Бронза: score 5000"),
        ] {
            let tier = text.parse::<Tier>().ok();
            assert_eq!(tier.as_ref().map(ToString::to_string).as_deref(), Some(printed), "{text}");
            assert_eq!(printed.parse().ok(), tier, "{text}");
        }
        let (longest, too_long) = (format!("{}: rank 1", "é".repeat(40)), format!("{}: rank 1", "é".repeat(41)));
        assert!(longest.parse::<Tier>().is_ok());
        for bad in [
            "",
            "gold",
            "gold top 10 %",
            ": top 10 %",
            "  : rank 1",
            "a\tb: rank 1",
            "a\u{85}: rank 1",
            "a:",
            "a: top 10",
            "a: top 0 %",
            "a: top 0.00 %",
            "a: top 0.001 %",
            "a: top 100.01 %",
            "a: top 1e1 %",
            "a: top .5 %",
            "a: top 5. %",
            "a: top -1 %",
            "a: top +1 %",
            "a: top 10 % %",
            "a: rank 0",
            "a: rank -1",
            "a: rank 1.5",
            "a: rank",
            "a: rank 1000000000000000000",
            "a: score",
            "a: score +1",
            "a: score 1000000000000000000",
            "a: score --1",
            "a: Top 10 %",
            "a: score 1 2",
            "a: rank\t1",
            "a: b: rank 1",
            &too_long,
        ] {
            assert!(bad.parse::<Tier>().is_err(), "{bad:?}");
        }
        let refused = "a: top 101%".parse::<Tier>().map_err(|error| error.to_string());
        assert!(refused.is_err_and(|text| text.starts_with("tiers: \"top 101%\" is not a rule")));
    }

    #[test]
    fn a_board_has_up_to_20_tiers_with_different_names() -> Result<()> {
        let many: Vec<String> = (0..21).map(|n| format!("t{n}: rank {}", n + 1)).collect();
        assert_eq!(Tiers::parse(&many[..20])?.iter().count(), 20);
        assert!(Tiers::parse(&many)?.check().is_err());
        let repeated = tiers(&["a: rank 1", "b: rank 2", " a : score 7"]).err().map(|error| error.to_string());
        assert_eq!(repeated.as_deref(), Some("tiers[2]: repeats the name \"a\""));
        let bad = tiers(&["a: rank 1", "b: rank x"]).err().map(|error| error.to_string());
        assert!(bad.is_some_and(|error| error.starts_with("tiers[1]: ")));
        assert!(tiers(&["a: rank 1", "A: rank 2"]).is_ok());
        Ok(())
    }

    #[test]
    fn the_first_rule_that_holds_decides() -> Result<()> {
        let ladder = tiers(&["crown: rank 1", "gold: top 10 %", "silver: score 50", "bronze: top 99.99 %"])?;
        let of = |score, rank| name(&ladder, Order::Desc, score, rank, 30);
        assert_eq!(
            [of(0, 1), of(0, 3), of(50, 4), of(49, 4)],
            [Some("crown"), Some("gold"), Some("silver"), Some("bronze")]
        );
        assert_eq!(of(49, 30), None);
        assert_eq!(name(&Tiers::default(), Order::Desc, 1, 1, 1), None);
        // Low scores are better.
        let laps = tiers(&["fast: score 50"])?;
        assert_eq!([50, 51, 49].map(|score| name(&laps, Order::Asc, score, 9, 9)), [Some("fast"), None, Some("fast")]);
        Ok(())
    }

    #[test]
    fn shares_are_exact_at_their_ends() -> Result<()> {
        let third = tiers(&["a: top 33.33 %"])?;
        for (rank, players, is_in) in
            [(3_333, 10_000, true), (3_334, 10_000, false), (1, 3, false), (1, 4, true), (1, 1, false)]
        {
            assert_eq!(name(&third, Order::Desc, 0, rank, players).is_some(), is_in, "{rank} of {players}");
        }
        let all = tiers(&["a: top 100 %"])?;
        assert!(name(&all, Order::Desc, 0, 1, 1).is_some());
        // Nothing overflows.
        assert!(name(&all, Order::Desc, i64::MIN, u64::MAX, u64::MAX).is_some());
        assert!(name(&third, Order::Asc, i64::MAX, u64::MAX, u64::MAX).is_none());
        assert!(name(&third, Order::Asc, i64::MAX, u64::MAX / 3 - u64::MAX / 10_000, u64::MAX).is_some());
        let scores = tiers(&["a: score -999999999999999999"])?;
        for (order, score, is_in) in [
            (Order::Desc, i64::MIN, false),
            (Order::Desc, i64::MAX, true),
            (Order::Asc, i64::MIN, true),
            (Order::Asc, i64::MAX, false),
        ] {
            assert_eq!(name(&scores, order, score, 1, 1).is_some(), is_in, "{order:?} {score}");
        }
        Ok(())
    }

    #[test]
    fn a_digest_tells_tiers_apart() -> Result<()> {
        let digests: HashSet<String> =
            [&[][..], &["a: rank 1"], &["a: rank 2"], &["b: rank 1"], &["a: rank 1", "b: rank 2"]]
                .into_iter()
                .map(|texts| tiers(texts).map(|tiers| tiers.digest()))
                .collect::<Result<_>>()?;
        assert_eq!(digests.len(), 5);
        assert_eq!(Tiers::default().digest(), "");
        Ok(())
    }
}
