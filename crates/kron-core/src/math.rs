//! Logarithm, exponential and what is built on them, with the same bits on every machine.
//!
//! A chosen time must not depend on the machine that computes it, and the standard library's
//! functions do: their last bits are the platform's. Here are only `+ - * /` and conversions, which
//! IEEE 754 rounds in one way, integer arithmetic, and a fixed order of operations. Fused
//! multiply-add rounds differently and is never used; Rust does not introduce it by itself.
//!
//! The logarithm and the exponential are the classic schemes of fdlibm (Sun Microsystems, 1993), as
//! published in their comments: reduce the argument by powers of two, then a short polynomial. The
//! bits they give are part of Kron's contract and written down in the tests.

// Without SSE2, x86 computes in 80 bits and rounds twice.
#[cfg(all(target_arch = "x86", not(target_feature = "sse2")))]
compile_error!("Kron needs SSE2 on x86: decisions must be the same on every machine");

/// ln 2 in two parts; the first has so few bits that small multiples of it are exact.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// Significant bits that a binary64 stores.
const MANTISSA_BITS: u32 = 52;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
/// What is added to exponents to store them.
const BIAS: i32 = 1_023;

/// The natural logarithm of a positive normal number.
///
/// x is 2^k (1 + f) with 1 + f from √½ to √2. Then ln(1 + f) = f - f²/2 + s (f²/2 + R(s²)), where
/// s = f / (2 + f) and R is a polynomial; the error is below one unit in the last place.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0, "the logarithm is only taken of positive numbers");
    if x == 1.0 {
        return 0.0;
    }
    // The upper half of √½; adding the difference to 1's makes the exponent that of the nearest k.
    const ROOT_HALF: u64 = 0x3FE6_A09E;
    const ONE: u64 = 0x3FF0_0000;
    let bits = x.to_bits();
    let high = (bits >> 32) + (ONE - ROOT_HALF);
    let k = (high >> 20).cast_signed() - i64::from(BIAS);
    let high = (high & 0x000F_FFFF) + ROOT_HALF;
    let f = f64::from_bits(high << 32 | bits & 0xFFFF_FFFF) - 1.0;

    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LN[1] + w * (LN[3] + w * LN[5]));
    let odd = z * (LN[0] + w * (LN[2] + w * (LN[4] + w * LN[6])));
    let r = odd + even;
    let k = k as f64;
    s * (half_square + r) + k * LN2_LOW - half_square + f + k * LN2_HIGH
}

/// The coefficients of R, from z to z⁷.
const LN: [f64; 7] = [
    f64::from_bits(0x3FE5_5555_5555_5593),
    f64::from_bits(0x3FD9_9999_9997_FA04),
    f64::from_bits(0x3FD2_4924_9422_9359),
    f64::from_bits(0x3FCC_71C5_1D8E_78AF),
    f64::from_bits(0x3FC7_4664_96CB_03DE),
    f64::from_bits(0x3FC3_9A09_D078_C69F),
    f64::from_bits(0x3FC2_F112_DF3E_5244),
];

/// e to the x, for x up to 700; far below zero it is 0.
///
/// x is k ln 2 + r with |r| at most ½ ln 2. Then e^r = 1 + r + r c / (2 - c), where c is r minus a
/// polynomial in r²; the error is below one unit in the last place.
pub(crate) fn exp(x: f64) -> f64 {
    debug_assert!(x <= EXP_ARGUMENT_MAX, "the exponential is only taken of small numbers");
    if x < EXP_ARGUMENT_MIN {
        return 0.0;
    }
    // The reduction depends on the upper half of |x| alone.
    let high = (x.to_bits() >> 32) & 0x7FFF_FFFF;
    let (k, r_high, r_low) = if high > 0x3FD6_2E42 {
        // Above ½ ln 2: at least one ln 2 is taken off.
        #[expect(clippy::cast_possible_truncation, reason = "|x| is below 746, so |k| is below 1,077")]
        let k = if high >= 0x3FF0_A2B2 {
            (INVERSE_LN2 * x + if x < 0.0 { -0.5 } else { 0.5 }) as i32
        } else if x < 0.0 {
            -1
        } else {
            1
        };
        (k, x - f64::from(k) * LN2_HIGH, f64::from(k) * LN2_LOW)
    } else if high > 0x3E30_0000 {
        (0, x, 0.0)
    } else {
        return 1.0 + x; // |x| is below 2^-28
    };
    let r = r_high - r_low;
    let square = r * r;
    let polynomial = EXP[0] + square * (EXP[1] + square * (EXP[2] + square * (EXP[3] + square * EXP[4])));
    let c = r - square * polynomial;
    let y = 1.0 + (r * c / (2.0 - c) - r_low + r_high);
    if k >= -1_000 {
        return y * power_of_two(k);
    }
    // In two steps, of which only the second can round.
    y * power_of_two(k + 200) * power_of_two(-200)
}

const INVERSE_LN2: f64 = f64::from_bits(0x3FF7_1547_652B_82FE);

/// The coefficients of the polynomial, from 1 to r⁸.
const EXP: [f64; 5] = [
    f64::from_bits(0x3FC5_5555_5555_553E),
    f64::from_bits(0xBF66_C16C_16BE_BD93),
    f64::from_bits(0x3F11_566A_AF25_DE2C),
    f64::from_bits(0xBEBB_BD41_C5D2_6BF1),
    f64::from_bits(0x3E66_3769_72BE_A4D0),
];

/// Kron has no use for more, and below this nothing overflows.
const EXP_ARGUMENT_MAX: f64 = 700.0;
/// Below this the result is smaller than half the smallest number above zero.
const EXP_ARGUMENT_MIN: f64 = -745.133_219_101_941_1;

/// 2 to the k, for k from -1,022 to 1,023.
fn power_of_two(k: i32) -> f64 {
    f64::from_bits(u64::from((k + BIAS).unsigned_abs()) << MANTISSA_BITS)
}

/// The square root of a positive normal number or of zero, rounded as IEEE 754 wants.
///
/// The standard library has it, but not without an operating system. The root of an integer with
/// twice the bits, and one more to round by, cannot lie half-way between two numbers.
pub(crate) fn sqrt(x: f64) -> f64 {
    if x == 0.0 {
        return x;
    }
    debug_assert!(x.is_normal() && x > 0.0, "the root is only taken of positive numbers");
    let bits = x.to_bits();
    // x is m 2^e with m of 53 bits; an odd e lends m a bit.
    let biased = bits >> MANTISSA_BITS;
    let mantissa = u128::from(bits & MANTISSA | 1 << MANTISSA_BITS);
    let exponent = biased.cast_signed() - i64::from(BIAS);
    let odd = exponent & 1;
    // 54 bits of root: 53, and the one to round by.
    let root = (mantissa << (MANTISSA_BITS + 2) << odd).isqrt();
    #[expect(clippy::cast_possible_truncation, reason = "54 bits")]
    let rounded = (root as u64 + 1) >> 1;
    let exponent = ((exponent - odd) / 2 + i64::from(BIAS) - 1).cast_unsigned();
    // Adding carries into the exponent, both the bit that is not stored and one from rounding up.
    f64::from_bits((exponent << MANTISSA_BITS) + rounded)
}

/// b to the s, for b from 0 to 1 and s above 0.
///
/// The whole part of s by repeated squaring, so that whole exponents need no logarithm; the rest,
/// at most one half either way, by logarithm and exponential.
pub(crate) fn pow(b: f64, s: f64) -> f64 {
    debug_assert!((0.0..=1.0).contains(&b) && s > 0.0, "only shares of one are raised, to powers above zero");
    if b == 0.0 || b == 1.0 || s == 1.0 {
        return b;
    }
    if s == 0.5 {
        return sqrt(b);
    }
    if s == 2.0 {
        return b * b; // as below, but it is the default
    }
    // Of 2^53 and more there is no fraction; past 2^64 the number is as good as endless.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounding down is meant")]
    let mut n = s as u64;
    let mut f = s - n as f64;
    if f > 0.5 && n < u64::MAX {
        f -= 1.0;
        n += 1;
    }
    let mut result = if f == 0.0 || n == u64::MAX { 1.0 } else { exp(f * ln(b)) };
    let mut square = b;
    // One turn for each bit of n: at most 64.
    while n != 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

/// The share of a standard normal distribution that lies below z.
pub(crate) fn phi(z: f64) -> f64 {
    // Beyond, what is left is below the precision of 1.
    const FAR: f64 = 8.5;
    /// ln √(2π).
    const LN_ROOT_2PI: f64 = 0.918_938_533_204_672_8;
    if z <= -FAR {
        return 0.0;
    }
    if z >= FAR {
        return 1.0;
    }
    // z + z³/3 + z⁵/(3·5) + …, until a term no longer changes the sum.
    let q = z * z;
    let (mut sum, mut term, mut i) = (z, z, 1.0);
    for _ in 0..PHI_TERMS_MAX {
        i += 2.0;
        term *= q / i;
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    let share = 0.5 + sum * exp(-0.5 * q - LN_ROOT_2PI);
    share.clamp(0.0, 1.0)
}

/// Terms shrink once i exceeds z², which is below 73; from there 53 bits are soon used up.
const PHI_TERMS_MAX: u32 = 300;

/// The place below which the share p of a standard normal distribution lies, for 0 < p < 1.
///
/// Wichura's algorithm AS 241 (`PPND16`): a quotient of polynomials in the middle, two others in the
/// tails.
pub(crate) fn probit(p: f64) -> f64 {
    debug_assert!(0.0 < p && p < 1.0, "only a proper share has a place");
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&A, r) / polynomial(&B, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = sqrt(-ln(tail));
    let place = if r <= 5.0 {
        polynomial(&C, r - 1.6) / polynomial(&D, r - 1.6)
    } else {
        polynomial(&E, r - 5.0) / polynomial(&F, r - 5.0)
    };
    if q < 0.0 { -place } else { place }
}

/// Horner's scheme, from the highest coefficient down.
fn polynomial(coefficients: &[f64; 8], r: f64) -> f64 {
    let [rest @ .., highest] = coefficients;
    rest.iter().rev().fold(*highest, |sum, coefficient| sum * r + coefficient)
}

// The coefficients of AS 241, from the constant to r⁷, written as the shortest decimals that give
// the same bits.
const A: [f64; 8] = [
    3.3871328727963665,
    133.14166789178438,
    1971.5909503065513,
    13731.69376550946,
    45921.95393154987,
    67265.7709270087,
    33430.57558358813,
    2509.0809287301227,
];
const B: [f64; 8] = [
    1.0,
    42.31333070160091,
    687.1870074920579,
    5394.196021424751,
    21213.794301586597,
    39307.89580009271,
    28729.085735721943,
    5226.495278852854,
];
const C: [f64; 8] = [
    1.4234371107496835,
    4.630337846156546,
    5.769497221460691,
    3.6478483247632045,
    1.2704582524523684,
    0.2417807251774506,
    0.022723844989269184,
    0.0007745450142783414,
];
const D: [f64; 8] = [
    1.0,
    2.053191626637759,
    1.6763848301838038,
    0.6897673349851,
    0.14810397642748008,
    0.015198666563616457,
    0.0005475938084995345,
    1.0507500716444169e-09,
];
const E: [f64; 8] = [
    6.657904643501103,
    5.463784911164114,
    1.7848265399172913,
    0.29656057182850487,
    0.026532189526576124,
    0.0012426609473880784,
    2.7115555687434876e-05,
    2.0103343992922881e-07,
];
const F: [f64; 8] = [
    1.0,
    0.599832206555888,
    0.1369298809227358,
    0.014875361290850615,
    0.0007868691311456133,
    1.8463183175100548e-05,
    1.421511758316446e-07,
    2.0442631033899397e-15,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::SplitMix64;
    use std::vec::Vec;

    /// Every line of the table, made by another implementation.
    #[test]
    fn every_function_has_its_golden_bits() {
        let table = include_str!("../tests/it/data/math_bits.txt");
        let mut lines = 0;
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (call, result) = line.split_once(" = ").unwrap();
            let mut words = call.split_whitespace();
            let name = words.next().unwrap();
            let number = |word| f64::from_bits(u64::from_str_radix(word, 16).unwrap());
            let args: Vec<f64> = words.map(number).collect();
            assert_eq!(apply(name, &args).to_bits(), number(result).to_bits(), "{line}");
            lines += 1;
        }
        assert_eq!(lines, GOLDEN_LINES);
    }

    const GOLDEN_LINES: usize = 1_062;

    fn apply(name: &str, args: &[f64]) -> f64 {
        match (name, args) {
            ("exp", [x]) => exp(*x),
            ("ln", [x]) => ln(*x),
            ("phi", [z]) => phi(*z),
            ("pow", [b, s]) => pow(*b, *s),
            ("probit", [p]) => probit(*p),
            ("sqrt", [x]) => sqrt(*x),
            _ => panic!("{name} of {} arguments", args.len()),
        }
    }

    /// The bits of the design, appendix A.
    #[test]
    fn the_bits_of_the_design() {
        for (name, args, bits) in [
            ("ln", &[0.3][..], 0xBFF3_4378_FCBD_A721),
            ("ln", &[0.999], 0xBF50_6467_0D97_9B73),
            ("exp", &[-1.0], 0x3FD7_8B56_362C_EF38),
            ("exp", &[-0.1], 0x3FEC_F46D_99D5_2B3A),
            ("exp", &[-30.5], 0x3D2F_F386_4232_B407),
            ("pow", &[0.3, 2.5], 0x3FA9_3D32_BCEA_FC29),
            ("pow", &[0.3, 3.0], 0x3F9B_A5E3_53F7_CED9),
            ("pow", &[0.7, 7.3], 0x3FB2_F17C_2AB3_9CF5),
            ("phi", &[-3.0], 0x3F56_1DE1_F985_BB00),
            ("phi", &[0.5], 0x3FE6_2075_E232_AC76),
            ("probit", &[0.975], 0x3FFF_5C03_31EE_FF82),
            ("probit", &[1e-5], 0xC011_0F3F_8843_A3DA),
            ("probit", &[0.6], 0x3FD0_36D6_C4A0_4B5A),
        ] {
            assert_eq!(apply(name, args).to_bits(), bits, "{name} {args:?}");
        }
    }

    /// So many numbers that a slip of one bit somewhere changes the sum.
    #[test]
    fn a_million_results_add_up_to_one_number() {
        let mut stream = SplitMix64::new(1);
        let mut sum = 0_u64;
        let mut mix =
            |value: f64| sum = (sum ^ value.to_bits()).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        for _ in 0..100_000 {
            let (u, v) = (stream.unit().to_f64() + f64::EPSILON / 4.0, stream.unit().to_f64());
            mix(ln(u));
            mix(ln(1.0 + 40.0 * v));
            mix(exp(-40.0 * v));
            mix(exp(18.0 * v));
            mix(pow(u, 0.1 + 5.0 * v));
            mix(pow(u, 2.0));
            mix(phi(17.0 * v - 8.5));
            mix(probit(u));
            mix(probit(u * u * u));
            mix(sqrt(100.0 * v));
        }
        assert_eq!(sum, SUM);
    }

    /// The same number comes out of the other implementation.
    const SUM: u64 = 2_353_715_730_677_480_460;

    #[test]
    fn roots_are_rounded_as_the_standard_library_rounds_them() {
        let mut stream = SplitMix64::new(2);
        for _ in 0..300_000 {
            let bits = stream.next() >> 1;
            let x = f64::from_bits(bits);
            if x.is_normal() {
                assert_eq!(sqrt(x).to_bits(), x.sqrt().to_bits(), "{x:e}");
            }
        }
        // Squares, and their neighbours, are where a rounding can go wrong.
        for _ in 0..100_000 {
            let root = stream.unit().to_f64() + 0.5;
            let square = (root * root).to_bits();
            for bits in [square - 1, square, square + 1] {
                let x = f64::from_bits(bits);
                assert_eq!(sqrt(x).to_bits(), x.sqrt().to_bits(), "{x:e}");
            }
        }
        assert_eq!(sqrt(0.0), 0.0);
    }

    /// Within a few units in the last place of whatever this platform has.
    #[test]
    fn functions_agree_with_the_standard_library() {
        let close = |name: &str, args: [f64; 2], ours: f64, theirs: f64, units: f64| {
            let unit = (theirs.abs() * f64::EPSILON).max(f64::MIN_POSITIVE);
            assert!((ours - theirs).abs() <= units * unit, "{name}{args:?}: {ours:e} and {theirs:e}");
        };
        let mut stream = SplitMix64::new(3);
        for _ in 0..300_000 {
            let (u, v) = (stream.unit().to_f64() + f64::EPSILON / 4.0, stream.unit().to_f64());
            close("ln", [u, 0.0], ln(u), u.ln(), 1.5);
            close("exp", [v, 0.0], exp(-700.0 * v), (-700.0 * v).exp(), 1.5);
            close("exp", [v, 0.0], exp(18.0 * v), (18.0 * v).exp(), 1.5);
            let s = 8.0 * v + 0.01;
            // Each squaring doubles the error of what it squares.
            close("pow", [u, s], pow(u, s), u.powf(s), 16.0 + 20.0 * s);
        }
    }

    #[test]
    fn phi_and_probit_undo_each_other() {
        let mut stream = SplitMix64::new(4);
        for _ in 0..100_000 {
            let p = stream.unit().to_f64().clamp(1e-12, 1.0 - 1e-12);
            assert!((phi(probit(p)) - p).abs() < 1e-14, "{p}");
        }
        assert_eq!((phi(-8.5), phi(8.5), phi(0.0), phi(-1e300)), (0.0, 1.0, 0.5, 0.0));
    }

    #[test]
    fn powers_with_huge_and_tiny_exponents_stay_within_bounds() {
        let below_one = 1.0 - f64::EPSILON / 2.0;
        for b in [0.0, f64::EPSILON / 2.0, 0.5, below_one, 1.0] {
            for s in [f64::MIN_POSITIVE, 1e-300, 0.25, 0.5, 1.0, 1e9, 1e18, 1e19, 1e300, f64::MAX] {
                assert!((0.0..=1.0).contains(&pow(b, s)), "{b} {s}");
            }
        }
        assert_eq!((pow(below_one, 1e300), pow(0.5, 1e300), pow(0.5, 1e-300)), (0.0, 0.0, 1.0));
    }
}
