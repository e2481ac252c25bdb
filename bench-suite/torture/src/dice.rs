//! Pseudo-random choices that a seed repeats.
//!
//! Floor 3. Plain arithmetic.

/// xorshift64*: a choice, not randomness.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// A row of choices that `seed` determines.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }
}
