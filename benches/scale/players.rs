//! Synthetic players of any number, computed from their place. No list of them is needed.

use centile::timed::Key;

/// The best score. Most players have few points, so many share a score.
const BEST_SCORE: u128 = 10_000_000;
/// Larger than all times, which count against a player.
const TIE_KEY: i64 = 1 << 50;
const ROUND_KEYS: [u32; 4] = [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344];

/// Players by place, best first and counted from 0.
#[derive(Debug)]
pub struct Players {
    pub count: u32,
    /// Half of the bits of the smallest even power of two that is not below `count`.
    half: u32,
}

impl Players {
    pub fn new(count: u32) -> Self {
        let bits = u32::BITS - count.leading_zeros();
        Self { count, half: bits.div_ceil(2) }
    }

    /// Returns the key of a player.
    pub fn key(&self, place: u32) -> Key {
        (self.score(place), TIE_KEY - i64::from(place), self.user(place))
    }

    /// Returns the key of a player after a change to another score.
    pub fn later_key(&self, place: u32, score: i64, time: u32) -> Key {
        let tie_key = TIE_KEY - i64::from(self.count) - i64::from(time);
        (score, tie_key, self.user(place))
    }

    /// Returns the number of players with a better score, and with the same or a better one.
    pub fn better_and_no_worse(&self, place: u32) -> (u64, u64) {
        let score = self.score(place);
        (self.first_place(|other| other <= score), self.first_place(|other| other < score))
    }

    /// Scores fall with the cube of the place.
    pub fn score(&self, place: u32) -> i64 {
        let (all, not_better) = (u128::from(self.count), u128::from(self.count - place));
        i64::try_from(BEST_SCORE * not_better.pow(3) / all.pow(3)).unwrap_or(i64::MAX)
    }

    /// Returns the first place whose score fulfils the condition.
    fn first_place(&self, is_low: impl Fn(i64) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if is_low(self.score(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        u64::from(low)
    }

    /// Returns the internal id, from 1 to `count`. It says nothing about the place: a permutation by
    /// a Feistel network, repeated until the result is an id.
    fn user(&self, place: u32) -> u32 {
        let mask = (1 << self.half) - 1;
        let mut value = place;
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for key in ROUND_KEYS {
                let mut mixed = (right ^ key).wrapping_mul(0x9E37_79B1);
                mixed ^= mixed >> 15;
                mixed = mixed.wrapping_mul(0x85EB_CA77);
                mixed ^= mixed >> 13;
                (left, right) = (right, left ^ (mixed & mask));
            }
            value = (left << self.half) | right;
            if value < self.count {
                return value + 1;
            }
        }
    }
}
