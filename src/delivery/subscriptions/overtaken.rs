//! Finds overtakings between two states of a ranking, as far as both states show them.

use std::collections::{HashMap, HashSet};

use crate::{
    delivery::subscriptions::followed_state::FollowedState,
    model::rank::{PlayerStanding, Row},
};

/// Maximum overtakings of one chosen player per snapshot, those of the nearest ranks. A player who
/// passes a thousand others is not sent a thousand names.
const MAX_PER_PLAYER: usize = 20;

/// Maximum overtakings of all chosen players per snapshot, those of the best ranks.
const MAX_PER_SNAPSHOT: usize = 2_000;

/// One player, previously not ahead of another, is now ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overtaking {
    /// The player who was passed, as of now.
    pub(crate) player: Row,
    /// The rank before; `player` has the current one.
    pub(crate) old_rank: u64,
    pub(crate) by: Row,
}

/// Returns the overtakings of chosen players, ordered by the rank of the passed player.
///
/// Only certain ones are returned: both players were seen in the opposite order, or the passing
/// player was unseen while everybody ahead was known. Equal ranks are not an overtaking.
pub(crate) fn overtakings(before: &FollowedState, now: &FollowedState) -> Vec<Overtaking> {
    let ranks_before = ranks(before);
    // After a change of profiles an unknown id may belong to a player whose previous id was erased.
    let is_same_ids = before.revision == now.revision;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (id, standing) in &now.standings {
        let (Some(now_stands), Some(Some(stood))) = (standing, before.standings.get(id)) else { continue };
        let (player, old_rank) = (&now_stands.player, stood.player.rank);
        let others = now_stands.above.iter().chain(&now_stands.below).chain(&now.rows);
        let mut others: Vec<&Row> = others.filter(|other| other.user_id != player.user_id).collect();
        others.sort_by_key(|other| other.rank.abs_diff(player.rank));
        let passed = others.into_iter().filter_map(|other| {
            let other_before = ranks_before.get(other.user_id.as_str()).copied();
            if other.rank < player.rank && was_not_ahead(before, stood, other_before, is_same_ids) {
                return Some(Overtaking { player: player.clone(), old_rank, by: other.clone() });
            }
            let other_rank = other_before.filter(|rank| *rank <= old_rank && player.rank < other.rank)?;
            Some(Overtaking { player: other.clone(), old_rank: other_rank, by: player.clone() })
        });
        let mut of_player = HashSet::new();
        for passed in passed {
            let pair = (passed.player.user_id.clone(), passed.by.user_id.clone());
            if !of_player.insert(pair.clone()) {
                continue;
            }
            if seen.insert(pair) {
                found.push(passed);
            }
            if of_player.len() == MAX_PER_PLAYER {
                break;
            }
        }
    }
    found.sort_by(|a, b| {
        (a.player.rank, &a.player.user_id, a.by.rank).cmp(&(b.player.rank, &b.player.user_id, b.by.rank))
    });
    found.truncate(MAX_PER_SNAPSHOT);
    found
}

/// Returns whether a player with this earlier rank was certainly not ahead of `stood`.
///
/// An unseen player has no rank; `is_known_by_id` tells whether the id is unchanged.
fn was_not_ahead(before: &FollowedState, stood: &PlayerStanding, rank: Option<u64>, is_known_by_id: bool) -> bool {
    match rank {
        Some(rank) => rank >= stood.player.rank,
        // Everybody ahead of the player was known: the top reaches the neighbours above.
        None => is_known_by_id && stood.above.first().unwrap_or(&stood.player).position <= before.rows.len() as u64 + 1,
    }
}

/// Returns the ranks of all players in the state.
fn ranks(shown: &FollowedState) -> HashMap<&str, u64> {
    let beside = shown.standings.values().flatten();
    let beside = beside.flat_map(|standing| standing.above.iter().chain([&standing.player]).chain(&standing.below));
    shown.rows.iter().chain(beside).map(|row| (row.user_id.as_str(), row.rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rank::Header;

    /// Builds a state of a ranking: the first `limit` players, and the chosen ones with one
    /// neighbour on each side.
    ///
    /// Equal scores share a rank.
    fn shown(players: &[(&str, i64)], limit: usize, chosen: &[&str]) -> FollowedState {
        let rank = |score: i64| 1 + players.iter().filter(|(_, other)| *other > score).count() as u64;
        let rows: Vec<Row> = players
            .iter()
            .zip(1..)
            .map(|((id, score), position)| Row {
                position,
                rank: rank(*score),
                user_id: (*id).to_owned(),
                user_name: (*id).to_owned(),
                avatar: None,
                score: *score,
                reached_at: None,
                tiebreak: None,
                metadata: None,
                profile: None,
            })
            .collect();
        let standing = |id: &&str| {
            let at = rows.iter().position(|row| row.user_id == *id);
            let standing = at.map(|at| PlayerStanding {
                header: Header::empty(),
                player: rows[at].clone(),
                percentile: 0.0,
                above: rows[at.saturating_sub(1)..at].to_vec(),
                below: rows[at + 1..].iter().take(1).cloned().collect(),
            });
            ((*id).to_owned(), standing)
        };
        FollowedState {
            header: Header::empty(),
            epoch: String::new(),
            tag: String::new(),
            revision: 0,
            rows: rows[..limit.min(rows.len())].to_vec(),
            limit: 0,
            standings: chosen.iter().map(standing).collect(),
        }
    }

    /// Returns the overtakings as (passed, passing, old rank, new rank).
    fn found(before: &FollowedState, now: &FollowedState) -> Vec<(String, String, u64, u64)> {
        let all = overtakings(before, now).into_iter();
        all.map(|one| (one.player.user_id, one.by.user_id, one.old_rank, one.player.rank)).collect()
    }

    fn one(player: &str, by: &str, old: u64, new: u64) -> (String, String, u64, u64) {
        (player.into(), by.into(), old, new)
    }

    #[test]
    fn overtakings_by_and_of_a_neighbour_are_found() {
        let before = shown(&[("a", 50), ("b", 40), ("c", 30), ("d", 20)], 0, &["c"]);
        let now = shown(&[("a", 50), ("b", 40), ("d", 35), ("c", 30)], 0, &["c"]);
        assert_eq!(found(&before, &now), [one("c", "d", 3, 4)]);
        assert_eq!(found(&now, &before), [one("d", "c", 3, 4)]);
        assert_eq!(found(&now, &now), []);
    }

    #[test]
    fn an_overtaking_of_two_chosen_players_is_found_once() {
        let before = shown(&[("a", 50), ("b", 40)], 2, &["a", "b"]);
        let now = shown(&[("b", 60), ("a", 50)], 2, &["a", "b"]);
        assert_eq!(found(&before, &now), [one("a", "b", 1, 2)]);
    }

    #[test]
    fn an_unseen_player_has_passed_if_everybody_ahead_was_known() {
        let players = [("a", 50), ("b", 40), ("c", 30), ("d", 20), ("e", 10)];
        let now = [("a", 50), ("b", 40), ("e", 35), ("c", 30), ("d", 20)];
        assert_eq!(found(&shown(&players, 1, &["c"]), &shown(&now, 1, &["c"])), [one("c", "e", 3, 4)]);
        // The first place was not shown, so e may have been there.
        assert_eq!(found(&shown(&players, 0, &["c"]), &shown(&now, 0, &["c"])), []);
    }

    #[test]
    fn a_player_with_a_new_id_has_not_passed() {
        let before = shown(&[("a", 50), ("b", 40)], 2, &["b"]);
        let now = shown(&[("erased", 50), ("b", 40)], 2, &["b"]);
        assert_eq!(found(&before, &FollowedState { revision: 1, ..now }), []);
    }

    #[test]
    fn equals_have_not_passed_each_other() {
        let before = shown(&[("a", 50), ("b", 40), ("c", 30)], 3, &["b"]);
        let level = shown(&[("a", 50), ("b", 40), ("c", 40)], 3, &["b"]);
        let ahead = shown(&[("a", 50), ("c", 45), ("b", 40)], 3, &["b"]);
        assert_eq!(found(&before, &level), []);
        assert_eq!(found(&level, &ahead), [one("b", "c", 2, 3)]);
    }

    #[test]
    fn a_player_without_a_score_was_not_passed() {
        let before = shown(&[("a", 50)], 1, &["b"]);
        let now = shown(&[("a", 50), ("b", 40)], 2, &["b"]);
        assert_eq!(found(&before, &now), []);
    }

    #[test]
    fn only_the_nearest_of_many_overtakings_are_found() {
        let ids: Vec<String> = (0..60).map(|n| format!("p{n}")).collect();
        let at: Vec<(&str, i64)> = ids.iter().zip(0..).map(|(id, n)| (&**id, 1_000 - n)).collect();
        let found_after_move = |from: usize, to: usize| {
            let mut after = at.clone();
            let mover = after.remove(from);
            after.insert(to, mover);
            for (one, place) in after.iter_mut().zip(0..) {
                one.1 = 2_000 - place;
            }
            found(&shown(&at, 100, &[mover.0]), &shown(&after, 100, &[mover.0]))
        };
        let passed: Vec<_> = (5..25).map(|n| one(&format!("p{n}"), "p50", n + 1, n + 2)).collect();
        assert_eq!(found_after_move(50, 5), passed);
        let passed_by: Vec<_> = (31..51).map(|n| one("p5", &format!("p{n}"), 6, 51)).collect();
        assert_eq!(found_after_move(5, 50), passed_by);
    }
}
