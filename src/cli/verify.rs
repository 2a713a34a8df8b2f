//! `centile verify`: compares all derived data with the ledger.

use clap::Args;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::{
    Error, Result, boards,
    cli::{
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    maintenance::verify::{self, Depth},
    model::{
        board::BoardSlug,
        period::PeriodSelector,
        verification::{Difference, VerifiedPeriod},
    },
};

/// The data to compare, and the depth.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Board [default: all]
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: Option<BoardSlug>,
    /// Period of the board, such as `all_time` or `week:2024-01-15`, or a segment of it:
    /// `week@country:DE` [default: all]
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>, requires = "board")]
    period: Option<PeriodSelector>,
    /// Compare only the counts of open periods
    ///
    /// Compares counts with each other and with the bucket rows. Fast, because it does not read the
    /// ledger.
    #[arg(long)]
    counts: bool,
    /// Compare everything with the ledger
    ///
    /// Otherwise, in open periods, compares only players with ledger rows since the last
    /// verification, and skips archives that were verified and not refreshed since. Rankings and
    /// archives that were found damaged are always compared as a whole.
    #[arg(long, conflicts_with = "counts")]
    whole: bool,
    /// Maximum number of differences to list per kind and period; all are counted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

/// Prints a line for each period and each difference. Fails if there is a difference.
pub(super) async fn run(config: &Config, verify: Verify) -> Result<()> {
    let depth =
        if verify.counts { Depth::Counts } else { Depth::Everything { limit: verify.limit, whole: verify.whole } };
    let limit = usize::try_from(verify.limit).unwrap_or(usize::MAX);
    let spinner = output::spinner("comparing");
    let mut tally = Tally { spinner: spinner.clone(), limit, periods: 0, different: 0, differences: 0 };
    with_instance(config, async |instance| {
        let board = match &verify.board {
            Some(board) => Some(boards::find(&instance.boards, board).await?),
            None => None,
        };
        // Counts in Redis are read only once.
        instance.cache.connected().await;
        let (admin, cache) = (&instance.store.admin, &instance.cache);
        verify::verify(admin, cache, board.as_deref(), verify.period.as_ref(), depth, |checked| {
            tally.add(&checked);
        })
        .await
    })
    .await?;
    spinner.finish_and_clear();
    tally.result()
}

/// Totals over all periods.
#[derive(Debug)]
struct Tally {
    spinner: ProgressBar,
    limit: usize,
    periods: u64,
    different: u64,
    differences: u64,
}

impl Tally {
    fn add(&mut self, checked: &VerifiedPeriod) {
        let total = checked.total();
        self.periods += 1;
        self.different += u64::from(total > 0);
        self.differences += total;
        let verdict = if total == 0 { "ok".to_owned() } else { differences(total) };
        let VerifiedPeriod { board, period, players, differences: found } = checked;
        let mut lines = vec![format!("{board} {period}  {} players  {verdict}", thousands(players))];
        for kind in found.chunk_by(|a, b| a.kind == b.kind) {
            let listed = kind.len().min(self.limit);
            lines.extend(kind[..listed].iter().map(line));
            let more = kind[0].total - listed as u64;
            if more > 0 {
                lines.push(format!("  {}: {} more", kind[0].kind, thousands(more)));
            }
        }
        // Continue comparing even if standard output is closed.
        self.spinner.suspend(|| output::print(lines.join("\n"))).ok();
    }

    fn result(&self) -> Result<()> {
        if self.different == 0 {
            return if self.periods == 0 { output::print("nothing to compare yet") } else { Ok(()) };
        }
        Err(Error::other_conflict(format!(
            "{} in {} of {} periods. The ledger is right: `centile rebuild` repairs open periods, `centile refresh` \
             repairs archives; docs/runbooks/count-differences.md explains each difference",
            differences(self.differences),
            thousands(self.different),
            thousands(self.periods)
        )))
    }
}

fn differences(count: u64) -> String {
    format!("{} difference{}", thousands(count), if count == 1 { "" } else { "s" })
}

fn line(found: &Difference) -> String {
    let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    format!("  {}: {}: should be {}, is {}", found.kind, found.subject, text(&found.expected), text(&found.found))
}
