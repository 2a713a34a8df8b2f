use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use crate::{
    model::{
        board::{Mode, OnViolation, Order, PeriodKind, TiebreakSum, Ties},
        id::RankingId,
        score::Event,
    },
    rules::{
        decide::{Change, EventDecision, EventSource, MissingPeriods, Pending, decide},
        entry::{Entry, ScoredEvent, reached_at, tie_key},
        facts::{
            AcceptedEvent, Content, EarlierEvent, EarlierOutcome, EventStanding, Facts, Gain, Period, Player, Rules,
        },
        refusal::{Refusal, Rule},
    },
};

/// An event, with the index of its player.
type Of = (usize, Event);

fn time(seconds: i64) -> DateTime<Utc> {
    // A Wednesday.
    DateTime::from_timestamp(1_705_492_800 + seconds, 0).unwrap_or_default()
}

/// All time, a week, and the first day of that week.
fn facts(mode: Mode, order: Order, players: usize) -> Facts {
    let period = |kind, name: &str, id, from, until| Period {
        id,
        kind,
        name: name.to_owned(),
        starts_at: time(from),
        ends_at: time(until),
        ranking_id: Some(RankingId(10 + id)),
        is_shown: true,
        filled_to: None,
        segments: HashMap::new(),
    };
    Facts {
        rules: Rules {
            mode,
            order,
            ties: if mode == Mode::Sum { Ties::First } else { Ties::Tiebreak },
            tiebreak_order: None,
            tiebreak_sum: None,
            periods: vec![PeriodKind::AllTime, PeriodKind::Week],
            points_min: -1_000,
            points_max: 1_000,
            events_per_minute: None,
            gain_max: BTreeMap::new(),
            on_violation: OnViolation::Refuse,
        },
        now: time(1_000),
        at: time(1_000),
        periods: vec![
            period(PeriodKind::AllTime, "all_time", 1, -1_000_000, 1_000_000),
            period(PeriodKind::Week, "week:2024-01-15", 2, -500, 500_000),
        ],
        players: (1..).take(players).map(|id| Player { id: Some(id), ..Player::default() }).collect(),
        earlier_events: HashMap::new(),
    }
}

fn event(player: usize, points: i64) -> Of {
    (player, of(points))
}

fn of(points: i64) -> Event {
    let user_id = "a".parse().unwrap_or_else(|error| panic!("{error}"));
    Event { user_id, points, tiebreak: None, reason: None, id: None, occurred_at: None, metadata: None }
}

fn pending(events: &[Of]) -> Vec<Pending<'_>> {
    events.iter().map(|(player, event)| Pending { player: *player, event }).collect()
}

fn outcomes(facts: &Facts, events: &[Of]) -> Vec<EventDecision> {
    decide(facts, EventSource::Live, &pending(events)).map(|decisions| decisions.events).unwrap_or_default()
}

fn refusals(facts: &Facts, events: &[Of]) -> Vec<Option<Refusal>> {
    let refusal = |decided| match decided {
        EventDecision::Refused(refusal) => Some(refusal),
        _ => None,
    };
    outcomes(facts, events).into_iter().map(refusal).collect()
}

/// Computes an entry by its definition, as a function of the set of events. The last event arrived
/// last.
fn by_definition(rules: &Rules, events: &[ScoredEvent]) -> Option<Entry> {
    let sign = |order| if order == Order::Asc { -1 } else { 1 };
    if let Some(order) = rules.tiebreak_order {
        let (score, tiebreak) = second_by_definition(rules, order, events)?;
        return Some(Entry { rank_key: sign(rules.order) * score, tie_key: sign(order) * tiebreak, only_zeros: false });
    }
    let sign = sign(rules.order);
    let only_zeros = events.iter().all(|event| event.points == 0);
    let single = |event: &ScoredEvent| Entry {
        rank_key: sign * event.points,
        tie_key: tie_key(event.at, event.tiebreak.unwrap_or(0)),
        only_zeros,
    };
    match rules.mode {
        Mode::Sum => {
            let counted = events.iter().filter(|event| event.points != 0).map(|event| event.at).max();
            let reached = counted.or_else(|| events.iter().map(|event| event.at).min())?;
            let sum: i64 = events.iter().map(|event| event.points).sum();
            Some(Entry { rank_key: sign * sum, tie_key: tie_key(reached, 0), only_zeros })
        }
        Mode::Best => {
            let key =
                |event: &&ScoredEvent| (sign * event.points, event.tiebreak.unwrap_or(0), -event.at.timestamp_micros());
            events.iter().max_by_key(key).map(single)
        }
        Mode::Latest | Mode::Combined => events.iter().max_by_key(|event| event.at).map(single),
    }
}

/// Computes the score and the second number of a board with ties `second`.
fn second_by_definition(rules: &Rules, order: Order, events: &[ScoredEvent]) -> Option<(i64, i64)> {
    let one = |event: &ScoredEvent| (event.points, event.tiebreak.unwrap_or(0));
    let latest = events.iter().max_by_key(|event| event.at)?;
    Some(match (rules.mode, rules.tiebreak_sum) {
        (Mode::Sum, Some(TiebreakSum::Added)) => {
            events.iter().map(one).fold((0, 0), |sum, event| (sum.0 + event.0, sum.1 + event.1))
        }
        (Mode::Sum, _) => {
            let named = events.iter().filter(|event| event.tiebreak.is_some()).max_by_key(|event| event.at);
            (events.iter().map(|event| event.points).sum(), named.map_or(0, |event| one(event).1))
        }
        (Mode::Best, _) => {
            let better = |number: i64, order| if order == Order::Asc { -number } else { number };
            let key = |pair: &(i64, i64)| (better(pair.0, rules.order), better(pair.1, order));
            events.iter().map(one).max_by_key(key)?
        }
        (Mode::Latest | Mode::Combined, _) => one(latest),
    })
}

#[test]
fn entries_depend_only_on_the_set_of_events_not_on_batches() {
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..500 {
        let mode = *[Mode::Sum, Mode::Best, Mode::Latest].choose(&mut random).unwrap_or(&Mode::Sum);
        let order = *[Order::Asc, Order::Desc].choose(&mut random).unwrap_or(&Order::Asc);
        let mut facts = facts(mode, order, 3);
        if random.random() {
            facts.rules.ties = Ties::Second;
            facts.rules.tiebreak_order = [Order::Asc, Order::Desc].choose(&mut random).copied();
            let sums = [TiebreakSum::Added, TiebreakSum::Replaced];
            facts.rules.tiebreak_sum = sums.choose(&mut random).filter(|_| mode == Mode::Sum).copied();
        }
        let has_tiebreaks = facts.rules.ties != Ties::First;
        // Some events are older than the week.
        facts.rules.periods = vec![PeriodKind::AllTime];
        facts.players[2].resets = vec![time(-700), time(100)];
        let mut counted: BTreeMap<(i64, usize), Vec<ScoredEvent>> = BTreeMap::new();
        for _ in 0..random.random_range(1..5) {
            let events: Vec<Of> = (0..random.random_range(1..8))
                .map(|_| {
                    let scored = Event {
                        tiebreak: (has_tiebreaks && random.random()).then(|| random.random_range(-2..3)),
                        occurred_at: random.random::<bool>().then(|| time(random.random_range(-1_000..1_000))),
                        ..of(random.random_range(-2..3))
                    };
                    (random.random_range(0..3), scored)
                })
                .collect();
            let decisions =
                decide(&facts, EventSource::Import, &pending(&events)).unwrap_or_else(|missing| panic!("{missing:?}"));
            for (player, event) in &events {
                let scored = ScoredEvent {
                    points: event.points,
                    tiebreak: event.tiebreak,
                    at: event.occurred_at.unwrap_or(facts.at),
                    is_latest: true,
                };
                for (period, from, until) in [(1, -1_000_000, 1_000_000), (2, -500, 500_000)] {
                    let holds = time(from) <= scored.at && scored.at < time(until);
                    let last_reset = facts.players[*player].resets.iter().filter(|reset| **reset >= time(from)).max();
                    if holds && last_reset.is_none_or(|reset| scored.at >= *reset) {
                        counted.entry((period, *player)).or_default().push(scored);
                        if facts.rules.ties == Ties::Second && (mode == Mode::Latest || scored.tiebreak.is_some()) {
                            let last = facts.players[*player].decided_at.entry(period).or_insert(scored.at);
                            *last = scored.at.max(*last);
                        }
                    }
                }
            }
            assert_eq!(decisions.changes.len(), decisions.entries.len());
            for Change { ranking_id: RankingId(ranking), player, was, now } in decisions.changes {
                assert_eq!(decisions.entries.get(&(player, ranking - 10)), Some(&now));
                assert_eq!(facts.players[player].entries.insert(ranking - 10, now), was);
            }
            for ((period, player), events) in &counted {
                let wanted = by_definition(&facts.rules, events);
                let found = facts.players[*player].entries.get(period).copied();
                assert_eq!(found, wanted, "{:?} {events:?}", facts.rules);
            }
            assert_eq!(facts.players.iter().map(|player| player.entries.len()).sum::<usize>(), counted.len());
        }
    }
}

#[test]
fn each_live_event_is_answered_with_the_standings_before_and_after_it() {
    let facts = facts(Mode::Sum, Order::Asc, 2);
    let decided = outcomes(&facts, &[event(0, 5), event(1, 1), event(0, -7)]);
    let standings = |decided: &EventDecision| match decided {
        EventDecision::Accepted { at, standings } => {
            assert_eq!(*at, facts.at);
            standings
                .iter()
                .map(|EventStanding { period, score, was, .. }| (period.clone(), *score, was.map(|was| was.0)))
                .collect()
        }
        _ => Vec::new(),
    };
    let both = |score, was| vec![("all_time".to_owned(), score, was), ("week:2024-01-15".to_owned(), score, was)];
    assert_eq!(decided.iter().map(standings).collect::<Vec<_>>(), [both(5, None), both(1, None), both(-2, Some(-5))]);
}

#[test]
fn a_bad_event_is_refused_alone() {
    let mut facts = facts(Mode::Sum, Order::Desc, 4);
    facts.players[1].is_banned = true;
    facts.players[2].id = None;
    facts.rules.points_max = i64::MAX;
    facts.players[3]
        .entries
        .insert(1, Entry { rank_key: i64::MAX - 5, tie_key: tie_key(time(0), 0), only_zeros: false });
    let refusals = refusals(
        &facts,
        &[
            event(0, 7),
            event(1, 7),
            event(2, 7),
            event(3, 6),
            event(3, 5),
            event(3, 1),
            event(0, -1_001),
            (0, Event { tiebreak: Some(1), ..of(1) }),
            (0, Event { occurred_at: Some(time(1_001)), ..of(1) }),
            (0, Event { occurred_at: Some(time(-800_000_000)), ..of(1) }),
        ],
    );
    let kinds: Vec<_> = refusals.iter().map(Option::as_ref).collect();
    assert!(kinds[0].is_none() && kinds[4].is_none(), "{kinds:?}");
    assert_eq!(kinds[1], Some(&Refusal::Banned));
    assert_eq!(kinds[2], Some(&Refusal::UnknownUser));
    assert_eq!((kinds[3], kinds[5]), (Some(&Refusal::Overflow), Some(&Refusal::Overflow)));
    assert!(matches!(kinds[6], Some(Refusal::Broken(broken)) if broken.rule == Rule::PointsOutOfBounds));
    assert_eq!(kinds[7], Some(&Refusal::TiebreakNotUsed));
    assert_eq!(kinds[8], Some(&Refusal::TimeInFuture));
    assert_eq!(kinds[9], Some(&Refusal::TimeOutOfRange));
}

/// See `centile_store.entries_of`.
#[test]
fn a_sum_that_stopped_at_its_limit_accepts_no_event() {
    for order in [Order::Desc, Order::Asc] {
        for limit in [i64::MAX, -i64::MAX] {
            let mut facts = facts(Mode::Sum, order, 1);
            let mut stored = Entry { rank_key: limit, tie_key: tie_key(time(0), 0), only_zeros: true };
            facts.players[0].entries.insert(1, stored);
            let events = [event(0, 1), event(0, -1), event(0, 0)];
            assert_eq!(refusals(&facts, &events), vec![Some(Refusal::Overflow); 3], "{order:?} {limit}");
            // A sum that is exactly the limit.
            stored.only_zeros = false;
            facts.players[0].entries.insert(1, stored);
            assert_eq!(refusals(&facts, &[event(0, 0)]), [None], "{order:?} {limit}");
        }
    }
}

#[test]
fn an_event_counts_in_all_its_periods_or_in_none() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    facts.periods[1].ranking_id = None;
    assert_eq!(refusals(&facts, &[event(0, 1)]), [Some(Refusal::PeriodClosed)]);
    let before_the_week = (0, Event { occurred_at: Some(time(-600)), ..of(1) });
    let missing = decide(&facts, EventSource::Import, &pending(&[before_the_week])).err();
    assert_eq!(missing, Some(MissingPeriods::Periods(vec![time(-600)])));
}

#[test]
fn an_id_makes_an_event_count_once() {
    let mut facts = facts(Mode::Sum, Order::Desc, 2);
    let known = |points, at| EarlierEvent {
        content: Content { points, tiebreak: None, reason: Some("won".to_owned()), at, metadata: None },
        answer: EarlierOutcome::Accepted(AcceptedEvent { transaction_id: 9, at: time(3), standings: Vec::new() }),
    };
    facts.earlier_events.insert((0, "old".to_owned()), known(5, time(3)));
    let with = |player, points, id: &str, reason: Option<&str>| {
        (player, Event { id: Some(id.to_owned()), reason: reason.map(ToOwned::to_owned), ..of(points) })
    };
    let decided = outcomes(
        &facts,
        &[
            with(0, 5, "old", Some("won")),
            with(0, 5, "old", None),
            with(1, 5, "old", None),
            with(0, 5_000, "new", None),
            with(0, 2, "new", None),
            with(0, 2, "new", None),
            with(0, 3, "new", None),
        ],
    );
    assert_eq!(
        decided[0],
        EventDecision::AlreadyAnswered(EarlierOutcome::Accepted(AcceptedEvent {
            transaction_id: 9,
            at: time(3),
            standings: Vec::new()
        }))
    );
    assert_eq!(decided[1], EventDecision::Refused(Refusal::IdConflict));
    assert!(matches!(decided[2], EventDecision::Accepted { .. }), "ids belong to one player");
    assert!(matches!(decided[3], EventDecision::Refused(Refusal::Broken(_))));
    assert!(matches!(decided[4], EventDecision::Accepted { .. }), "a refused event does not use up its id");
    assert_eq!(decided[5], EventDecision::Repeats(4));
    assert_eq!(decided[6], EventDecision::Refused(Refusal::IdConflict));
    // An imported event repeats one with the same time.
    let at = |seconds| (0, Event { occurred_at: Some(time(seconds)), ..with(0, 5, "old", Some("won")).1 });
    let decided = decide(&facts, EventSource::Import, &pending(&[at(3), at(4)])).map(|decisions| decisions.events);
    assert!(
        matches!(
            decided.as_deref(),
            Ok([EventDecision::AlreadyAnswered(_), EventDecision::Refused(Refusal::IdConflict)])
        ),
        "{decided:?}"
    );
}

#[test]
fn gains_and_events_per_minute_are_limited() {
    let broken = |facts: &Facts, points: &[i64]| {
        let events: Vec<Of> = points.iter().map(|points| event(0, *points)).collect();
        let rule = |refusal: Option<Refusal>| match refusal {
            Some(Refusal::Broken(violation)) => Some(violation.detail),
            _ => None,
        };
        refusals(facts, &events).into_iter().map(rule).collect::<Vec<_>>()
    };
    let of = |detail: &str| Some(detail.to_owned());
    let mut sum = facts(Mode::Sum, Order::Desc, 1);
    sum.rules.gain_max = BTreeMap::from([(PeriodKind::Week, 10)]);
    let gain = Gain { period: 1, limit: 10, won: 0, base: None };
    sum.players[0].history.gains = vec![Gain { won: 4, ..gain }];
    let too_large = |gain| of(&format!("10 in week:2024-01-15, not {gain}"));
    assert_eq!(broken(&sum, &[6, 1, -5, 1]), [None, too_large(11), None, too_large(11)]);

    let mut best = facts(Mode::Best, Order::Asc, 1);
    best.rules.gain_max = BTreeMap::from([(PeriodKind::Week, 10)]);
    best.players[0].history.gains = vec![Gain { base: Some(-50), ..gain }];
    assert_eq!(broken(&best, &[39, 40, 39, 60]), [too_large(11), None, too_large(11), None]);
    best.players[0].history.gains = vec![gain];
    assert_eq!(broken(&best, &[50, 39, 40]), [None, too_large(11), None], "counted from the first");

    let mut often = facts(Mode::Latest, Order::Desc, 1);
    often.rules.events_per_minute = Some(3);
    often.players[0].history.recent = 1;
    let too_many = || of("3 events in 60 seconds");
    assert_eq!(broken(&often, &[1, 2, 3]), [None, None, too_many()]);
    often.rules.on_violation = OnViolation::Quarantine;
    often.players[0].history.waiting = 99;
    let decided = outcomes(&often, &[event(0, 1), event(0, 2), event(0, 3), event(0, 4)]);
    assert!(matches!(decided[2], EventDecision::Quarantined(_)), "{decided:?}");
    assert!(matches!(decided[3], EventDecision::Refused(_)), "a hundred are waiting: {decided:?}");
}

#[test]
fn tie_keys_hold_tiebreak_and_time() {
    let at = time(0) + TimeDelta::microseconds(7);
    for tiebreak in [-2_048, -1, 0, 1, 2_047] {
        assert_eq!(reached_at(tie_key(at, tiebreak)), at);
    }
    // SELECT centile.tie_key('2024-01-15 12:00Z', 7::smallint)
    let noon = DateTime::from_timestamp(1_705_320_000, 0).unwrap_or_default();
    assert_eq!(tie_key(noon, 7), (7 << 51) + 2_251_799_813_685_247 - 758_635_200_000_000);
    assert!(tie_key(at, 1) > tie_key(time(-1), 0) && tie_key(time(0), 0) > tie_key(at, 0));
}

#[test]
fn a_sum_that_no_key_can_hold_is_refused() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    (facts.rules.points_min, facts.rules.points_max) = (i64::MIN, i64::MAX);
    assert_eq!(refusals(&facts, &[event(0, -i64::MAX), event(0, -1)]), [None, Some(Refusal::Overflow)]);
}

#[test]
fn an_event_that_changes_no_entry_makes_no_change() {
    let mut facts = facts(Mode::Best, Order::Desc, 1);
    let changes = |facts: &Facts, points| {
        decide(facts, EventSource::Live, &pending(&[event(0, points)]))
            .map(|decisions| decisions.changes)
            .unwrap_or_default()
    };
    let first = changes(&facts, 5);
    facts.players[0].entries = first.iter().map(|change| (change.ranking_id.0 - 10, change.now)).collect();
    assert_eq!(facts.players[0].entries.len(), 2);
    assert_eq!(changes(&facts, 4), []);
    assert_eq!(changes(&facts, 6).len(), 2);
}

#[test]
fn an_event_in_quarantine_is_repeated_not_quarantined_twice() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    facts.rules.on_violation = OnViolation::Quarantine;
    let far = (0, Event { id: Some("a".to_owned()), ..of(2_000) });
    facts.rules.events_per_minute = Some(10);
    let decided = outcomes(&facts, &[far.clone(), far.clone()]);
    assert!(matches!(decided[..], [EventDecision::Quarantined(_), EventDecision::Repeats(0)]), "{decided:?}");
    // No ledger can store this number, so it is refused, and so are imports.
    assert!(refusals(&facts, &[event(0, i64::MIN)])[0].is_some());
    let imported =
        decide(&facts, EventSource::Import, &pending(&[far])).map(|decisions| decisions.events).unwrap_or_default();
    assert!(matches!(imported[..], [EventDecision::Refused(Refusal::Broken(_))]), "{imported:?}");
}

#[test]
fn an_id_with_another_tiebreak_is_a_conflict() {
    let facts = facts(Mode::Best, Order::Desc, 1);
    let of = |tiebreak| (0, Event { tiebreak, id: Some("a".to_owned()), ..of(1) });
    assert_eq!(
        refusals(&facts, &[of(Some(1)), of(Some(2)), of(None)]),
        [None, Some(Refusal::IdConflict), Some(Refusal::IdConflict)]
    );
}

#[test]
fn tiebreaks_have_12_bits() {
    let facts = facts(Mode::Best, Order::Desc, 1);
    let of = |tiebreak| refusals(&facts, &[(0, Event { tiebreak: Some(tiebreak), ..of(1) })]).remove(0);
    let outside = Some(Refusal::TiebreakOutOfRange);
    assert_eq!([-2_049, -2_048, 2_047, 2_048].map(of), [outside.clone(), None, None, outside]);
}

#[test]
fn second_numbers_have_64_bits() {
    let mut facts = facts(Mode::Best, Order::Desc, 1);
    (facts.rules.ties, facts.rules.tiebreak_order) = (Ties::Second, Some(Order::Asc));
    let of = |tiebreak| refusals(&facts, &[(0, Event { tiebreak: Some(tiebreak), ..of(1) })]).remove(0);
    assert_eq!([i64::MIN, -i64::MAX, i64::MAX].map(of), [Some(Refusal::TiebreakOutOfRange), None, None]);
}

/// See `centile_store.entries_of`.
#[test]
fn a_sum_of_second_numbers_beyond_64_bits_refuses_the_event_alone() {
    for order in [Order::Desc, Order::Asc] {
        let mut facts = facts(Mode::Sum, Order::Desc, 1);
        (facts.rules.ties, facts.rules.tiebreak_order) = (Ties::Second, Some(order));
        facts.rules.tiebreak_sum = Some(TiebreakSum::Added);
        let of = |tiebreak| (0, Event { tiebreak: Some(tiebreak), ..of(1) });
        let events = [of(i64::MAX - 1), of(2), of(1), of(-5)];
        assert_eq!(refusals(&facts, &events), [None, Some(Refusal::Overflow), None, None], "{order:?}");
        // Replaced numbers are not added.
        facts.rules.tiebreak_sum = Some(TiebreakSum::Replaced);
        assert_eq!(refusals(&facts, &events), [None, None, None, None], "{order:?}");
        // A sum that stopped at its limit accepts no event, even with a score of 0.
        let stored = Entry { rank_key: 0, tie_key: i64::MAX, only_zeros: true };
        facts.players[0].entries.insert(1, stored);
        assert_eq!(refusals(&facts, &[of(-1), event(0, 0)]), vec![Some(Refusal::Overflow); 2], "{order:?}");
    }
}

#[test]
fn an_import_may_not_come_from_the_future_of_the_clock() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    // The lane's last event is ahead of the clock.
    facts.at = facts.now + TimeDelta::seconds(100);
    let of = |seconds| {
        let events = [(0, Event { occurred_at: Some(time(seconds)), ..of(1) })];
        decide(&facts, EventSource::Import, &pending(&events)).map(|decisions| decisions.events).unwrap_or_default()
    };
    assert!(matches!(of(1_000)[..], [EventDecision::Accepted { .. }]));
    assert_eq!(of(1_050), [EventDecision::Refused(Refusal::TimeInFuture)]);
}

#[test]
fn a_reset_counts_in_its_own_period_from_its_own_time_on() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    facts.periods[1].ends_at = time(500);
    facts.rules.periods = vec![PeriodKind::AllTime];
    facts.players[0].resets = vec![time(600)];
    let rankings = |facts: &Facts, seconds| {
        let events = [(0, Event { occurred_at: Some(time(seconds)), ..of(1) })];
        let changes = decide(facts, EventSource::Import, &pending(&events))
            .map(|decisions| decisions.changes)
            .unwrap_or_default();
        changes.iter().map(|change| change.ranking_id.0).collect::<Vec<_>>()
    };
    assert_eq!(rankings(&facts, 400), [12], "a later reset does not concern the ended week");
    assert_eq!(rankings(&facts, 599), [0; 0]);
    assert_eq!(rankings(&facts, 600), [11], "an event at the time of the reset counts");
}

#[test]
fn a_season_does_not_stand_in_for_a_missing_period() {
    let mut facts = facts(Mode::Sum, Order::Desc, 1);
    facts.periods[1].kind = PeriodKind::Season;
    let missing = decide(&facts, EventSource::Live, &pending(&[event(0, 1)])).err();
    assert_eq!(missing, Some(MissingPeriods::Periods(vec![facts.at])));
}

#[test]
fn an_event_without_a_gain_passes_a_limit_that_was_lowered() {
    let limited = |mode, won, base| {
        let mut facts = facts(mode, Order::Desc, 1);
        facts.rules.gain_max = BTreeMap::from([(PeriodKind::Week, 15)]);
        facts.players[0].history.gains = vec![Gain { period: 1, limit: 15, won, base }];
        facts
    };
    // A loss is no gain.
    let facts = limited(Mode::Sum, 100, None);
    assert!(refusals(&facts, &[event(0, 1)])[0].is_some());
    assert_eq!(refusals(&facts, &[event(0, -1)]), [None]);
    // Nor is the best score again.
    let mut facts = limited(Mode::Best, 0, Some(0));
    let best = ScoredEvent { points: 100, tiebreak: None, at: time(0), is_latest: true };
    facts.players[0].entries.extend(Entry::after(None, &facts.rules, best).map(|entry| (2, entry)));
    assert_eq!(refusals(&facts, &[event(0, 100), event(0, 5), event(0, 50)]), [None, None, None]);
    assert!(refusals(&facts, &[event(0, 101)])[0].is_some());
    // Without a score before, the first score of the period is the base.
    let facts = limited(Mode::Latest, 0, None);
    let refused = refusals(&facts, &[event(0, 10), event(0, 20), event(0, 30)]);
    assert_eq!(refused.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true], "{refused:?}");
}

#[test]
fn segments_get_the_entries_of_their_whole_periods() {
    let mut facts = facts(Mode::Sum, Order::Desc, 2);
    let before = Entry { rank_key: 10, tie_key: tie_key(time(1), 0), only_zeros: false };
    facts.players[0].entries.insert(1, before);
    // The player left DE before the end of the week, and all time goes on.
    facts.players[0].segments.changes.insert("country:DE".into(), vec![(None, true), (Some(time(600_000)), false)]);
    facts.players[1].segments.changes.insert("country:DE".into(), vec![(None, true)]);
    let events = [event(0, 5), event(1, 7), event(0, 1)];
    let missing = vec![(1, "country:DE".to_owned()), (2, "country:DE".to_owned())];
    assert_eq!(decide(&facts, EventSource::Live, &pending(&events)).err(), Some(MissingPeriods::Segments(missing)));

    facts.periods[0].segments.insert("country:DE".into(), Some(RankingId(31)));
    facts.periods[1].segments.insert("country:DE".into(), Some(RankingId(32)));
    let decisions = decide(&facts, EventSource::Live, &pending(&events)).ok();
    let changes = decisions.as_ref().map(|decisions| decisions.changes.clone()).unwrap_or_default();
    let of = |ranking, player| changes.iter().find(|one| (one.ranking_id.0, one.player) == (ranking, player)).copied();
    let copied = |whole, segment, player| {
        let copy = of(whole, player).map(|change: Change| Change { ranking_id: RankingId(segment), ..change });
        copy.is_some() && copy == of(segment, player)
    };
    assert!(copied(12, 32, 0) && copied(12, 32, 1) && copied(11, 31, 1), "{changes:?}");
    assert_eq!(of(31, 0), None, "{changes:?}");
    assert_eq!(of(11, 0).and_then(|change| change.was), Some(before));
    assert_eq!(changes.len(), 7);
    // Answers name only whole periods.
    let standings = |decided: &EventDecision| match decided {
        EventDecision::Accepted { standings, .. } => standings.len(),
        _ => 0,
    };
    assert_eq!(decisions.map(|all| all.events.iter().map(standings).collect()), Some(vec![2, 2, 2]));

    facts.periods[1].segments.insert("country:DE".into(), None);
    assert_eq!(
        refusals(&facts, &events),
        [Some(Refusal::PeriodClosed), Some(Refusal::PeriodClosed), Some(Refusal::PeriodClosed)]
    );
}

#[test]
fn a_window_counts_only_events_of_players_already_filled() {
    let mut facts = facts(Mode::Sum, Order::Desc, 2);
    let window = Period {
        id: 3,
        kind: PeriodKind::Rolling,
        name: "rolling:7d-2024-01-17".to_owned(),
        ranking_id: Some(RankingId(13)),
        is_shown: false,
        filled_to: Some(1),
        ..facts.periods[1].clone()
    };
    facts.periods.push(window);
    let decisions = decide(&facts, EventSource::Live, &pending(&[event(0, 5), event(1, 7)])).ok();
    let decisions = decisions.unwrap_or_else(|| panic!("all periods exist"));
    let changed: Vec<_> = decisions.changes.iter().map(|change| (change.ranking_id.0, change.player)).collect();
    assert_eq!(changed, [(11, 0), (11, 1), (12, 0), (12, 1), (13, 0)]);
    assert_eq!(decisions.unfilled, BTreeSet::from([1]));
}
