//! Creates what events need before they are written: players, ledger partitions, periods.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveTime, Utc};

use crate::{
    Error, Result,
    import::ImportedLine,
    model::board::{Board, PeriodKind},
    store::{Administrator, ScoreWriter},
};

/// Times whose periods are opened in one transaction, which blocks all writers of the board.
const TIMES_PER_STEP: usize = 8;

/// Maximum rounds of opening periods. A UTC date overlaps few local days of any zone, so a few
/// suffice.
const MAX_ROUNDS: usize = 50;

/// End of each existing period of a kind, by its start.
type Bounds = BTreeMap<DateTime<Utc>, DateTime<Utc>>;

/// Players, partitions and periods created so far.
pub(super) struct Preparation {
    admin: Administrator,
    score_writer: ScoreWriter,
    board: Arc<Board>,
    update_names: bool,
    /// First days of the months whose ledger partitions are known to exist.
    months: BTreeSet<NaiveDate>,
    /// Existing periods of each kind that the board keeps.
    periods: Vec<(PeriodKind, Bounds)>,
}

impl Preparation {
    pub(super) async fn new(
        admin: &Administrator,
        score_writer: &ScoreWriter,
        board: &Arc<Board>,
        update_names: bool,
    ) -> Result<Self> {
        let mut preparation = Self {
            admin: admin.clone(),
            score_writer: score_writer.clone(),
            board: Arc::clone(board),
            update_names,
            months: BTreeSet::new(),
            periods: Vec::new(),
        };
        preparation.look_up_periods().await?;
        Ok(preparation)
    }

    /// Prepares for these lines; returns the lines that can be written, and those in the future.
    ///
    /// Lines in the future create no player and no period.
    pub(super) async fn prepare(&mut self, lines: Vec<ImportedLine>) -> Result<(Vec<ImportedLine>, Vec<ImportedLine>)> {
        let now = self.admin.now().await?;
        let is_past = |line: &ImportedLine| line.record.event.occurred_at.is_none_or(|at| at <= now);
        let (lines, future): (Vec<ImportedLine>, Vec<ImportedLine>) = lines.into_iter().partition(is_past);
        let times: Vec<DateTime<Utc>> = lines.iter().filter_map(|line| line.record.event.occurred_at).collect();
        // In a separate transaction, before any other lock.
        self.create_months(&times).await?;
        self.open_periods(&times).await?;
        self.create_users(&lines).await?;
        Ok((lines, future))
    }

    async fn create_months(&mut self, times: &[DateTime<Utc>]) -> Result<()> {
        let months: BTreeSet<NaiveDate> = times.iter().filter_map(|at| at.date_naive().with_day(1)).collect();
        let start = |month: NaiveDate| month.and_time(NaiveTime::MIN).and_utc();
        let mut new = months.difference(&self.months).copied().peekable();
        while let Some(first) = new.next() {
            let mut last = first;
            while let Some(next) = new.next_if(|next| Some(*next) == last.checked_add_months(Months::new(1))) {
                last = next;
            }
            self.score_writer.ensure_ledger_months_between(start(first), start(last)).await?;
        }
        self.months.extend(months);
        Ok(())
    }

    /// Opens the periods of one time per UTC date, until all times are within existing periods.
    ///
    /// Only the database computes which period contains a time.
    async fn open_periods(&mut self, times: &[DateTime<Utc>]) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            let unknown = times.iter().filter(|at| !self.is_known(**at));
            let by_date: BTreeMap<NaiveDate, DateTime<Utc>> = unknown.map(|at| (at.date_naive(), *at)).collect();
            if by_date.is_empty() {
                return Ok(());
            }
            let some: Vec<DateTime<Utc>> = by_date.into_values().collect();
            for few in some.chunks(TIMES_PER_STEP) {
                self.score_writer.open_periods(self.board.owner, few).await?;
            }
            self.look_up_periods().await?;
        }
        Err(Error::Internal(format!("board {}: could not open periods for some times", self.board.slug)))
    }

    /// Returns whether `at` is in an existing period of each kind that the board keeps.
    fn is_known(&self, at: DateTime<Utc>) -> bool {
        self.periods.iter().all(|(_, periods)| {
            let last = periods.range(..=at).next_back();
            last.is_some_and(|(_, ends_at)| at < *ends_at)
        })
    }

    async fn look_up_periods(&mut self) -> Result<()> {
        let mut periods: Vec<_> = self.board.periods.iter().map(|kind| (*kind, Bounds::new())).collect();
        for (kind, starts_at, ends_at) in self.admin.period_bounds(self.board.owner).await? {
            if let Some((_, bounds)) = periods.iter_mut().find(|(kept, _)| *kept == kind) {
                bounds
                    .insert(starts_at.unwrap_or(DateTime::<Utc>::MIN_UTC), ends_at.unwrap_or(DateTime::<Utc>::MAX_UTC));
            }
        }
        self.periods = periods;
        Ok(())
    }

    async fn create_users(&self, lines: &[ImportedLine]) -> Result<()> {
        // New players take the first name that these lines have for them.
        let mut names: HashMap<&str, Option<&str>> = HashMap::new();
        let mut last_names: HashMap<&str, &str> = HashMap::new();
        for line in lines {
            let (id, name) = (line.record.event.user_id.as_str(), line.record.name.as_deref());
            let first = names.entry(id).or_insert(name);
            *first = first.or(name);
            if let Some(name) = name.filter(|_| self.update_names) {
                last_names.insert(id, name);
            }
        }
        let (ids, names): (Vec<String>, Vec<Option<String>>) =
            names.into_iter().map(|(id, name)| (id.to_owned(), name.map(str::to_owned))).unzip();
        if !ids.is_empty() {
            self.score_writer.ensure_users(&ids, &names).await?;
        }
        let (ids, names): (Vec<String>, Vec<Option<String>>) =
            last_names.into_iter().map(|(id, name)| (id.to_owned(), Some(name.to_owned()))).unzip();
        if !ids.is_empty() {
            self.admin.rename_users(&ids, &names).await?;
        }
        Ok(())
    }
}
