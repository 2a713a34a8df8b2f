//! The demo's players, the same at every start.

pub(crate) const COUNT: usize = 200;

/// First names from many countries, to exercise names beyond ASCII.
const FIRST_NAMES: [&str; 50] = [
    "Ada",
    "Adaeze",
    "Aiko",
    "Anaïs",
    "Anders",
    "Ángel",
    "Bao",
    "Beatriz",
    "Björn",
    "Carla",
    "Chidi",
    "Chloé",
    "Dana",
    "Eszter",
    "Farid",
    "Fiona",
    "Gabriel",
    "Grace",
    "Hana",
    "Henrik",
    "Ines",
    "İpek",
    "Ivo",
    "Jürgen",
    "Kofi",
    "Lea",
    "Léon",
    "Łukasz",
    "Maja",
    "Marek",
    "Mei",
    "Миша",
    "Nadia",
    "Noah",
    "Núria",
    "Oğuz",
    "Olga",
    "Omar",
    "Petr",
    "Priya",
    "Рита",
    "Rosa",
    "さくら",
    "Søren",
    "Tomás",
    "Uma",
    "Veronika",
    "Yusuf",
    "Γιώργος",
    "Zoë",
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Player {
    /// Id, `player-001` to `player-200`.
    pub(crate) id: String,
    /// Name shown in lists: a first name and an initial.
    pub(crate) name: String,
    /// Skill, from 0 (beginner) to just below 1.
    pub(crate) skill: f64,
}

pub(crate) fn all() -> Vec<Player> {
    (0..COUNT).map(player).collect()
}

fn player(index: usize) -> Player {
    // Each step is coprime to its modulus, so that names and skills are spread evenly.
    let initial = b'A' + u8::try_from((index * 7 + index / 50 * 5) % 26).unwrap_or(0);
    Player {
        id: format!("player-{:03}", index + 1),
        name: format!("{} {}.", FIRST_NAMES[index % FIRST_NAMES.len()], char::from(initial)),
        skill: ((index * 77 + 31) % COUNT) as f64 / COUNT as f64,
    }
}

/// Returns the index of the player at `share`, where 0 is the most and 1 the least active player.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is from 0 to 1")]
pub(crate) fn by_activity(share: f64) -> usize {
    let place = (share * COUNT as f64) as usize;
    (place * 123 + 6) % COUNT
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn players_are_distinct() {
        let players = all();
        let names: HashSet<_> = players.iter().map(|player| player.name.as_str()).collect();
        let skills: HashSet<_> = players.iter().map(|player| player.skill.to_bits()).collect();
        assert_eq!((names.len(), skills.len()), (COUNT, COUNT));
        let active: HashSet<_> = (0..COUNT).map(|place| by_activity((place as f64 + 0.5) / COUNT as f64)).collect();
        assert_eq!(active.len(), COUNT);
    }
}
