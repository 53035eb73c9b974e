//! Random numbers that mean the same next year: a seed replays for as long as this file is not touched.

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Another stream, which goes its own way from here.
    pub fn fork(&mut self) -> Rng {
        Rng(self.number())
    }

    /// A number below that one, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A number between two, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = low.abs_diff(high) + 1;
        low + i64::try_from(self.below(span)).expect("it is at most the distance of two numbers")
    }

    /// True in that many of a thousand cases.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// A place in a list of that length, which must not be zero.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is below a length")
    }
}

/// One number made of another, in no way that can be seen.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.number(), 6_457_827_717_110_365_317);
        assert_eq!(rng.number(), 3_203_168_211_198_807_973);
    }
}
