//! Loads a board as a whole: `import --fast`.
//!
//! The lines are read and checked as for any import, and copied into a table that only this session has. What remains is done in
//! the database, in sets: players are made, then one transaction writes ledger, ids, entries and layouts, or nothing. Meanwhile the
//! board takes no scores; who brings one is told so at once.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

use super::{
    Line, Options, Progress, Rejects, Source,
    prepare::{make_months, month_of},
};
use crate::{Error, Result, board::Board, scoring::Refusal, service::Service, store::load::OpenLoad};

/// Loads all that `source`, called `name`, has into a board without events. Lines that cannot be taken go to `rejects`; `progress`
/// can be watched meanwhile and has the final counts afterwards. After an error nothing is in but players' names.
///
/// [`Error::Conflict`] when the board has events already, is imported into, or a player's sum would leave the range of 64 bits.
pub async fn run(
    service: &Service,
    board: &Arc<Board>,
    name: &str,
    source: Source,
    options: Options,
    rejects: Rejects,
    progress: &Arc<Progress>,
) -> Result<()> {
    service.store.ensure_ledger_months().await?;
    let mut load = service.store.begin_load(board.id, name, &options.by).await?;
    match fill(service, board, source, options.update_names, &rejects, progress, &mut load).await {
        Ok((accepted, repeated)) => {
            progress.end_phase();
            progress.add_written(accepted, repeated);
            Ok(())
        }
        Err(error) => {
            load.give_up().await;
            Err(error)
        }
    }
}

/// Reads, makes players, and writes; gives how many events were accepted, and how many lines repeated one.
async fn fill(
    service: &Service,
    board: &Arc<Board>,
    source: Source,
    update_names: bool,
    rejects: &Rejects,
    progress: &Arc<Progress>,
    load: &mut OpenLoad,
) -> Result<(u64, u64)> {
    progress.begin_phase("lines read");
    let months = copy(service, board, source, rejects, progress, load).await?;
    // In transactions of their own, before any lock.
    make_months(&service.store, months.into_iter()).await?;
    progress.begin_phase("players");
    let players = load.make_players(update_names, |done| progress.set_done(done)).await?;
    progress.set_done(players);

    let now = service.store.now().await?;
    let mut writing = load.begin().await?;
    progress.begin_phase("events sorted");
    let repeated = writing.refuse_lines(now).await?;
    writing
        .each_refused(|refused| {
            let reason = Refusal::of_load(&refused.outcome, board)
                .ok_or_else(|| Error::Internal(format!("a line was refused as {:?}", refused.outcome)))?;
            rejects.add(refused.line.unsigned_abs(), refused.raw.as_bytes(), &reason.error(board), progress)
        })
        .await?;
    // Before the commit, after which nobody could say any more what was wrong with them.
    rejects.flush()?;
    let events = writing.sort_events(now).await?;
    progress.set_done(events);
    progress.begin_phase("periods opened");
    writing.open_periods().await?;

    progress.begin_phase("ledger rows");
    writing.write_ledger().await?;
    progress.set_done(events);
    progress.begin_phase("ids kept");
    progress.set_done(writing.write_ids().await?);
    let mut slices: Vec<(&str, Option<String>)> = board.periods.iter().map(|kind| (kind.name(), None)).collect();
    slices.extend(writing.seasons().await?.into_iter().map(|season| ("season", Some(season))));
    for (kind, season) in slices {
        let shown = season.as_ref().map_or_else(|| kind.to_owned(), |season| format!("{kind}:{season}"));
        progress.begin_phase(format!("{shown} entries"));
        let rankings = writing.fill_entries(kind, season.as_deref()).await?;
        progress.begin_phase(format!("{shown} ranks"));
        let mut players = 0;
        for ranking_id in rankings {
            players += writing.lay_out(ranking_id).await?;
            progress.set_done(players);
        }
    }
    progress.begin_phase("commit");
    writing.commit().await?;
    Ok((events, repeated))
}

/// Copies the lines into the session's table, but for those that can be refused here; gives the months of their times.
async fn copy(
    service: &Service,
    board: &Arc<Board>,
    source: Source,
    rejects: &Rejects,
    progress: &Arc<Progress>,
    load: &mut OpenLoad,
) -> Result<BTreeSet<NaiveDate>> {
    let mut months: BTreeSet<NaiveDate> = BTreeSet::new();
    let mut chunks = source.read(Arc::clone(board));
    let mut copying = load.copy().await?;
    let (mut text, mut lines) = (Vec::new(), 0);
    let result = async {
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            for reject in chunk.rejects {
                rejects.add(reject.number, &reject.raw, &reject.reason, progress)?;
            }
            let now = service.store.now().await?;
            text.clear();
            for line in chunk.lines {
                match line.event.occurred_at {
                    Some(at) if at > now => {
                        rejects.add(line.number, &line.raw, &Refusal::TimeInFuture.error(board), progress)?;
                    }
                    at => {
                        months.extend(at.and_then(|at| month_of(&at)));
                        write_line(&mut text, &line);
                        lines += 1;
                    }
                }
            }
            copying.send(&text).await?;
            progress.set_done(lines);
        }
        Ok(())
    };
    match result.await {
        Ok(()) => copying.finish().await.map(|()| months),
        Err(error) => {
            copying.abort().await;
            Err::<_, Error>(error)
        }
    }
}

/// A line in the text format of `COPY`.
fn write_line(text: &mut Vec<u8>, line: &Line) {
    let event = &line.event;
    let time = |at: DateTime<Utc>| Cow::Owned(at.to_rfc3339_opts(SecondsFormat::Micros, true));
    let fields = [
        Some(Cow::Owned(line.number.to_string())),
        Some(Cow::Borrowed(event.user_id.as_str())),
        event.user_name.as_deref().map(Cow::Borrowed),
        Some(Cow::Owned(event.points.to_string())),
        event.tiebreak.map(|tiebreak| Cow::Owned(tiebreak.to_string())),
        event.reason.as_deref().map(Cow::Borrowed),
        event.id.as_deref().map(Cow::Borrowed),
        event.occurred_at.map(time),
        Some(String::from_utf8_lossy(&line.raw)),
    ];
    for (place, field) in fields.into_iter().enumerate() {
        if place > 0 {
            text.push(b'\t');
        }
        let Some(field) = field else {
            text.extend(b"\\N");
            continue;
        };
        for byte in field.bytes() {
            match byte {
                b'\\' => text.extend(b"\\\\"),
                b'\t' => text.extend(b"\\t"),
                b'\n' => text.extend(b"\\n"),
                b'\r' => text.extend(b"\\r"),
                other => text.push(other),
            }
        }
    }
    text.push(b'\n');
}
