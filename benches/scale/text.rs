//! Numbers in tables.

/// Rounds a number and groups its digits.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Shortens a number of players.
pub fn short(players: f64) -> String {
    if players < 1e6 { grouped(players) } else { format!("{} M", players / 1e6) }
}
