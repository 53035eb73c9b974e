//! The stream of numbers that a decision is sampled from.

/// `SplitMix64`: a 64-bit counter and a mixing function. The public vectors fix the choice.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(state: u64) -> SplitMix64 {
        SplitMix64(state)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> Unit {
        Unit(self.next() >> 11)
    }
}

/// A number from 0 up to, but not including, 1, in 53 bits, which a float holds exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit(u64);

impl Unit {
    pub(crate) const BITS: u32 = 53;

    #[cfg(test)]
    pub(crate) fn new(bits: u64) -> Unit {
        assert_eq!(bits >> Unit::BITS, 0);
        Unit(bits)
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.0.cast_signed() as f64 * (1.0 / (1_u64 << Unit::BITS) as f64)
    }

    /// The square of the number, rounded down to a unit.
    #[expect(clippy::cast_possible_truncation, reason = "a square of what is below 1 is below 1")]
    pub(crate) fn square(self) -> Unit {
        Unit(((u128::from(self.0) * u128::from(self.0)) >> Unit::BITS) as u64)
    }

    /// What is missing to 1. Of 0 it is 1, which is the one unit that is not below 1.
    pub(crate) fn rest(self) -> Unit {
        Unit((1 << Unit::BITS) - self.0)
    }

    /// The whole part of the number times so many, and the fraction in units of 2<sup>-53</sup>.
    #[expect(clippy::cast_possible_truncation, reason = "the whole part is less than `many`")]
    pub(crate) fn times(self, many: u64) -> (u64, u64) {
        let product = u128::from(self.0) * u128::from(many);
        ((product >> Unit::BITS) as u64, product as u64 & ((1 << Unit::BITS) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut stream = SplitMix64::new(0x0123_4567_89AB_CDEF);
        let numbers = [stream.next(), stream.next(), stream.next()];
        assert_eq!(numbers, [0x157A_3807_A48F_AA9D, 0xD573_529B_34A1_D093, 0x2F90_B72E_996D_CCBE]);
    }

    #[test]
    fn a_unit_is_never_one() {
        let largest = Unit::new(u64::MAX >> 11);
        assert_eq!(largest.to_f64(), 1.0 - f64::EPSILON / 2.0);
        assert_eq!(largest.times(7), (6, (1 << 53) - 7));
        assert_eq!((largest.rest().0, largest.square().0), (1, (1 << 53) - 2));
        assert_eq!(Unit::new(0).rest().square().times(7), (7, 0));
    }
}
