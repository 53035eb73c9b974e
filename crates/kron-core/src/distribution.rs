//! A number from the stream becomes a place in the window.

use alloc::borrow::Cow;
use alloc::format;
use core::fmt;

use kron_schedule::Duration;
use kron_schedule::suggest::did_you_mean;

use crate::error::{JobError, Parameter, quoted};
use crate::math::{exp, ln, phi, pow, probit};
use crate::prng::Unit;
use crate::window::{Window, WindowMode};

/// How chosen times are spread over a window.
///
/// ```
/// use kron_core::Distribution;
///
/// let distribution = Distribution::parse("skewLate", &[("shape", "2.5")])?;
/// assert_eq!(distribution, Distribution::SkewLate { shape: 2.5 });
/// assert_eq!(distribution.to_string(), "skewLate,shape=2.5");
/// # Ok::<(), kron_core::DistributionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Densest at one end, thinning out toward the other.
    Exponential {
        /// By which power of e the density falls over the whole window. Above 0.
        lambda: f64,
        /// At which end it is densest.
        direction: Direction,
    },
    /// A bell around an anchor, cut off at the ends of the window.
    Normal {
        /// Where it is densest; by default the nominal time in a window around it, else the middle.
        mu: Option<Anchor>,
        /// Its standard deviation, above 0; by default a sixth of the window.
        sigma: Option<Duration>,
    },
    /// Denser toward the start.
    SkewEarly {
        /// How much: 1 is uniform, 2 the default. Above 0.
        shape: f64,
    },
    /// Denser toward the end.
    SkewLate {
        /// How much: 1 is uniform, 2 the default. Above 0.
        shape: f64,
    },
    /// Every second alike.
    #[default]
    Uniform,
}

/// Where a normal distribution is densest.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Anchor {
    /// The window's last second.
    End,
    /// Its middle.
    Mid,
    /// The nominal time.
    Nominal,
    /// The window's first second.
    Start,
}

/// At which end of the window an exponential distribution is densest.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Direction {
    /// At its start.
    #[default]
    Early,
    /// At its end.
    Late,
}

/// The shape of a skewed distribution that gives none.
pub(crate) const SHAPE_DEFAULT: f64 = 2.0;
/// The rate of an exponential distribution that gives none.
pub(crate) const LAMBDA_DEFAULT: f64 = 1.0;

impl Distribution {
    /// Reads a distribution from its name and its parameters, as they stand in
    /// `@dist(name,key=value,…)`. What is left out has its default.
    ///
    /// # Errors
    ///
    /// The first mistake, with what was expected and found.
    pub fn parse(name: &str, parameters: &[(&str, &str)]) -> Result<Distribution, DistributionError> {
        let keys: &[&str] =
            match name {
                "exponential" => &["lambda", "dir"],
                "normal" => &["mu", "sigma"],
                "skewEarly" | "skewLate" => &["shape"],
                "uniform" => &[],
                _ => {
                    let expected = "`uniform`, `skewEarly`, `skewLate`, `normal` or `exponential`";
                    return Err(DistributionError::new(DistributionPart::Name, expected, name)
                        .or_closest(&["uniform", "skewEarly", "skewLate", "normal", "exponential"]));
                }
            };
        for (i, (key, _)) in parameters.iter().enumerate() {
            let part = DistributionPart::Key(i);
            if !keys.contains(key) {
                let expected = match keys {
                    [] => Cow::Borrowed("no parameters"),
                    [only] => format!("`{only}`").into(),
                    keys => format!("`{}`", keys.join("` or `")).into(),
                };
                return Err(DistributionError::new(part, expected, key).or_closest(keys));
            }
            if parameters[..i].iter().any(|(earlier, _)| earlier == key) {
                return Err(DistributionError::new(part, "each parameter once", key));
            }
        }
        let given = |key: &str| {
            parameters
                .iter()
                .enumerate()
                .find(|(_, (other, _))| *other == key)
                .map(|(i, (_, value))| (DistributionPart::Value(i), *value))
        };
        Ok(match name {
            "exponential" => Distribution::Exponential {
                lambda: given("lambda").map_or(Ok(LAMBDA_DEFAULT), positive_number)?,
                direction: given("dir").map_or(Ok(Direction::Early), direction)?,
            },
            "normal" => Distribution::Normal {
                mu: given("mu").map(anchor).transpose()?,
                sigma: given("sigma").map(positive_duration).transpose()?,
            },
            "skewEarly" => {
                Distribution::SkewEarly { shape: given("shape").map_or(Ok(SHAPE_DEFAULT), shape)? }
            }
            "skewLate" => Distribution::SkewLate { shape: given("shape").map_or(Ok(SHAPE_DEFAULT), shape)? },
            _ => Distribution::Uniform,
        })
    }

    /// Its name in a krontab: `uniform`, `skewEarly`, `skewLate`, `normal` or `exponential`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Exponential { .. } => "exponential",
            Distribution::Normal { .. } => "normal",
            Distribution::SkewEarly { .. } => "skewEarly",
            Distribution::SkewLate { .. } => "skewLate",
            Distribution::Uniform => "uniform",
        }
    }

    /// Its parameters, such as `lambda=1,dir=early`; empty where there are none.
    #[must_use]
    pub fn parameters(&self) -> impl fmt::Display {
        DistributionParameters(*self)
    }

    /// Refuses parameters that no distribution can have.
    pub(crate) fn check(&self) -> Result<(), JobError> {
        let positive = |parameter: Parameter, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(JobError::value(parameter, "a finite number above 0", value))
        };
        match *self {
            Distribution::Exponential { lambda, .. } => positive(Parameter::Lambda, lambda),
            Distribution::Normal { sigma: Some(sigma), .. } if sigma <= Duration::ZERO => {
                Err(JobError::value(Parameter::Sigma, "a duration above 0", sigma))
            }
            Distribution::SkewEarly { shape } | Distribution::SkewLate { shape } => {
                positive(Parameter::Shape, shape)
            }
            Distribution::Normal { .. } | Distribution::Uniform => Ok(()),
        }
    }

    /// The distribution over one window. `nominal` and `width` are seconds from the window's start.
    pub(crate) fn over(&self, window: &Window, nominal: i64, width: i64) -> Sampler {
        match *self {
            Distribution::Exponential { lambda, direction } => {
                let late = direction == Direction::Late;
                if lambda < LAMBDA_FLAT {
                    return if late { Sampler::Reversed } else { Sampler::Uniform };
                }
                Sampler::Exponential { lambda, mass: 1.0 - exp(-lambda), late }
            }
            Distribution::Normal { mu, sigma } => {
                let anchor = mu.unwrap_or(match window.mode() {
                    WindowMode::Around => Anchor::Nominal,
                    WindowMode::After | WindowMode::Before => Anchor::Mid,
                });
                let place = match anchor {
                    Anchor::End => width as f64,
                    Anchor::Mid => width as f64 / 2.0,
                    Anchor::Nominal => nominal as f64,
                    Anchor::Start => 0.0,
                };
                let sigma = sigma.map_or_else(|| seconds(window.duration()) / 6.0, seconds);
                Sampler::normal(place, sigma, (width + 1) as f64)
            }
            Distribution::SkewEarly { shape: SHAPE_DEFAULT } => Sampler::SquareEarly,
            Distribution::SkewEarly { shape } => Sampler::SkewEarly { shape },
            Distribution::SkewLate { shape: SHAPE_DEFAULT } => Sampler::SquareLate,
            Distribution::SkewLate { shape } => Sampler::SkewLate { shape },
            Distribution::Uniform => Sampler::Uniform,
        }
    }
}

/// A shape that is written 0 means the default, as it does in the public Kron.
fn shape(given: (DistributionPart, &str)) -> Result<f64, DistributionError> {
    let is_zero = given.1 == "0" || given.1 == "0.0";
    if is_zero { Ok(SHAPE_DEFAULT) } else { positive_number(given) }
}

/// A number above zero, in plain decimal digits with an optional exponent.
fn positive_number((part, text): (DistributionPart, &str)) -> Result<f64, DistributionError> {
    let error = || DistributionError::new(part, "a number above 0, such as `2.5`", text);
    // Rust would also read `inf` and `nan`.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number: f64 = text.parse().map_err(|_| error())?;
    if plain && number.is_finite() && number > 0.0 { Ok(number) } else { Err(error()) }
}

fn positive_duration((part, text): (DistributionPart, &str)) -> Result<Duration, DistributionError> {
    let error = || DistributionError::new(part, "a duration above 0, such as `10m`", text);
    text.parse().ok().filter(|duration| *duration > Duration::ZERO).ok_or_else(error)
}

fn anchor((part, text): (DistributionPart, &str)) -> Result<Anchor, DistributionError> {
    Ok(match text {
        "end" => Anchor::End,
        "mid" => Anchor::Mid,
        "nominal" => Anchor::Nominal,
        "start" => Anchor::Start,
        _ => {
            let error = DistributionError::new(part, "`nominal`, `start`, `mid` or `end`", text);
            return Err(error.or_closest(&["nominal", "start", "mid", "end"]));
        }
    })
}

fn direction((part, text): (DistributionPart, &str)) -> Result<Direction, DistributionError> {
    Ok(match text {
        "early" => Direction::Early,
        "late" => Direction::Late,
        _ => {
            let error = DistributionError::new(part, "`early` or `late`", text);
            return Err(error.or_closest(&["early", "late"]));
        }
    })
}

/// As between the parentheses of `@dist( )`.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Distribution::Uniform | Distribution::Normal { mu: None, sigma: None } => Ok(()),
            _ => write!(f, ",{}", self.parameters()),
        }
    }
}

struct DistributionParameters(Distribution);

impl fmt::Display for DistributionParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Distribution::Exponential { lambda, direction } => {
                let dir = match direction {
                    Direction::Early => "early",
                    Direction::Late => "late",
                };
                write!(f, "lambda={lambda},dir={dir}")
            }
            Distribution::Normal { mu, sigma } => {
                let mu = mu.map(|mu| match mu {
                    Anchor::End => "end",
                    Anchor::Mid => "mid",
                    Anchor::Nominal => "nominal",
                    Anchor::Start => "start",
                });
                match (mu, sigma) {
                    (None, None) => Ok(()),
                    (Some(mu), None) => write!(f, "mu={mu}"),
                    (None, Some(sigma)) => write!(f, "sigma={sigma}"),
                    (Some(mu), Some(sigma)) => write!(f, "mu={mu},sigma={sigma}"),
                }
            }
            Distribution::SkewEarly { shape } | Distribution::SkewLate { shape } => {
                write!(f, "shape={shape}")
            }
            Distribution::Uniform => Ok(()),
        }
    }
}

/// Why a name and parameters are not a distribution.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DistributionError {
    part: DistributionPart,
    expected: Cow<'static, str>,
    found: Cow<'static, str>,
    help: Option<Cow<'static, str>>,
}

/// The part of a distribution's text that is wrong.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DistributionPart {
    /// The key of that parameter, counted from 0.
    Key(usize),
    /// The name.
    Name,
    /// The value of that parameter, counted from 0.
    Value(usize),
}

impl DistributionError {
    fn new(part: DistributionPart, expected: impl Into<Cow<'static, str>>, found: &str) -> DistributionError {
        DistributionError { part, expected: expected.into(), found: quoted(found), help: None }
    }

    /// Suggests what was probably meant, if it is one of these.
    fn or_closest(mut self, words: &[&str]) -> DistributionError {
        self.help = did_you_mean(self.found.trim_matches('`'), words.iter().copied()).map(Into::into);
        self
    }

    /// Which part is wrong.
    #[must_use]
    pub fn part(&self) -> DistributionPart {
        self.part
    }

    /// What would have been right, as a noun phrase.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What was there instead.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, but found {}", self.expected, self.found)
    }
}

impl core::error::Error for DistributionError {}

/// Below this an exponential distribution is flat to within a millionth.
const LAMBDA_FLAT: f64 = 1.0 / (1 << 20) as f64;

fn seconds(duration: Duration) -> f64 {
    duration.as_seconds() as f64 + duration.subsec_nanos() as f64 / 1e9
}

/// A distribution over one window, ready to map numbers. Each mapping is a fixed sequence of
/// operations, so that its result is the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sampler {
    Exponential {
        lambda: f64,
        mass: f64,
        late: bool,
    },
    Normal {
        mu: f64,
        sigma: f64,
        below: f64,
        mass: f64,
    },
    Reversed,
    SkewEarly {
        shape: f64,
    },
    SkewLate {
        shape: f64,
    },
    /// [`SkewEarly`](Sampler::SkewEarly) with the shape that it has by default, which is 2.
    SquareEarly,
    SquareLate,
    Uniform,
}

impl Sampler {
    fn normal(place: f64, sigma: f64, cells: f64) -> Sampler {
        // A second is a cell of the window; half of one more puts the bell on the middle of its cell.
        let mu = (place + 0.5) / cells;
        let sigma = sigma / cells;
        let below = phi((0.0 - mu) / sigma);
        let within = phi((1.0 - mu) / sigma);
        Sampler::Normal { mu, sigma, below, mass: within - below }
    }

    /// Maps a number from 0 up to 1 to a place between the window's ends, 0 and 1. Roundings may
    /// carry it a little outside.
    pub(crate) fn place(&self, u: f64) -> f64 {
        match *self {
            Sampler::Exponential { lambda, mass, late } => {
                let v = -ln(1.0 - u * mass) / lambda;
                if late { 1.0 - v } else { v }
            }
            Sampler::Normal { mu, sigma, below, mass } => {
                let p = below + u * mass;
                if p <= 0.0 {
                    0.0
                } else if p >= 1.0 {
                    1.0
                } else {
                    mu + sigma * probit(p)
                }
            }
            Sampler::Reversed => 1.0 - u,
            Sampler::SkewEarly { shape } => pow(u, shape),
            Sampler::SkewLate { shape } => 1.0 - pow(1.0 - u, shape),
            Sampler::SquareEarly => u * u,
            Sampler::SquareLate => 1.0 - (1.0 - u) * (1.0 - u),
            Sampler::Uniform => u,
        }
    }

    /// The second of a window that a number maps to, from 0 to `width`.
    #[inline]
    pub(crate) fn offset(&self, unit: Unit, width: i64) -> i64 {
        let at_once = match self {
            Sampler::Uniform => offset_without_floats(unit, width),
            Sampler::SquareEarly => offset_without_floats(unit.square(), width),
            Sampler::SquareLate => offset_without_floats(unit.rest().square().rest(), width),
            _ => None,
        };
        match at_once {
            Some(second) => second,
            None => self.offset_by_floats(unit.to_f64(), width),
        }
    }

    fn offset_by_floats(&self, u: f64, width: i64) -> i64 {
        // A place outside the window becomes its nearer end: what is negative becomes 0. No window has more
        // seconds than this type holds, and it is the quickest one to round down to.
        #[expect(clippy::cast_possible_truncation, reason = "rounding down is meant")]
        #[expect(clippy::cast_sign_loss, reason = "becoming 0 is meant")]
        let second = (self.place(u) * (width + 1) as f64) as u32;
        i64::from(second).min(width)
    }
}

/// What floats give for a place in the window, found without them, which a decision would have to wait for. `None`
/// for the few places so close to the beginning of a second that floats may round them to its other side.
#[inline]
fn offset_without_floats(place: Unit, width: i64) -> Option<i64> {
    // The longest window has fewer than 2^25 seconds. A place that was squared is less than a unit from the
    // exact one, and its float, rounded twice, at most a unit. With the last rounding of the float, to 53 bits of
    // which at least 28 are left for the fraction, the two are less than 2^-26 seconds apart.
    const CLOSE: u64 = 1 << (Unit::BITS - 26);
    const FAR: core::ops::RangeInclusive<u64> = CLOSE..=(1 << Unit::BITS) - CLOSE;
    let (second, fraction) = place.times(width.unsigned_abs() + 1);
    FAR.contains(&fraction).then_some(second.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::sqrt;
    use crate::prng::SplitMix64;
    use crate::window::WINDOW_MAX;
    use std::string::ToString;
    use std::{vec, vec::Vec};

    /// The numbers of the design's worked examples: the place, bit for bit, and the second.
    #[test]
    fn errors_say_what_was_expected_and_found() {
        use DistributionPart::{Key, Name, Value};
        let names = "expected `uniform`, `skewEarly`, `skewLate`, `normal` or `exponential`, but found ";
        for (name, parameters, part, message, help) in [
            ("", &[][..], Name, format!("{names}nothing"), None),
            ("skewearly", &[], Name, format!("{names}`skewearly`"), Some("did you mean `skewEarly`?")),
            ("beta", &[], Name, format!("{names}`beta`"), None),
            ("uniform", &[("shape", "2")], Key(0), "expected no parameters, but found `shape`".into(), None),
            (
                "skewLate",
                &[("shap", "2")],
                Key(0),
                "expected `shape`, but found `shap`".into(),
                Some("did you mean `shape`?"),
            ),
            (
                "normal",
                &[("lambda", "2")],
                Key(0),
                "expected `mu` or `sigma`, but found `lambda`".into(),
                None,
            ),
            (
                "normal",
                &[("mu", "mid"), ("mu", "end")],
                Key(1),
                "expected each parameter once, but found `mu`".into(),
                None,
            ),
            (
                "normal",
                &[("mu", "middle")],
                Value(0),
                "expected `nominal`, `start`, `mid` or `end`, but found `middle`".into(),
                None,
            ),
            (
                "normal",
                &[("mu", "mid"), ("sigma", "0s")],
                Value(1),
                "expected a duration above 0, such as `10m`, but found `0s`".into(),
                None,
            ),
            (
                "exponential",
                &[("dir", "erly")],
                Value(0),
                "expected `early` or `late`, but found `erly`".into(),
                Some("did you mean `early`?"),
            ),
        ] {
            let error = Distribution::parse(name, parameters).unwrap_err();
            assert_eq!((error.part(), error.to_string(), error.help()), (part, message, help));
        }
        for text in
            ["", "-1", "-0", "inf", "Infinity", "nan", "0x10", "1e999", "1e-999", "1_000", "2,5", " 2", "e"]
        {
            let error = Distribution::parse("skewLate", &[("shape", text)]).unwrap_err();
            let found = if text.is_empty() { "nothing".into() } else { format!("`{text}`") };
            assert_eq!(
                error.to_string(),
                format!("expected a number above 0, such as `2.5`, but found {found}")
            );
        }
    }

    #[test]
    fn what_is_printed_can_be_read() {
        for (name, parameters, printed) in [
            ("uniform", &[][..], "uniform"),
            ("skewEarly", &[], "skewEarly,shape=2"),
            ("skewLate", &[("shape", "0")], "skewLate,shape=2"),
            ("skewEarly", &[("shape", "25e-1")], "skewEarly,shape=2.5"),
            ("skewLate", &[("shape", "+.5")], "skewLate,shape=0.5"),
            ("normal", &[], "normal"),
            ("normal", &[("sigma", "90m")], "normal,sigma=1h30m"),
            ("normal", &[("mu", "end"), ("sigma", "1s")], "normal,mu=end,sigma=1s"),
            ("normal", &[("mu", "nominal")], "normal,mu=nominal"),
            ("exponential", &[], "exponential,lambda=1,dir=early"),
            ("exponential", &[("dir", "late"), ("lambda", "3.")], "exponential,lambda=3,dir=late"),
        ] {
            let distribution = Distribution::parse(name, parameters).unwrap();
            assert_eq!(distribution.to_string(), printed);
            let mut words = printed.split(',');
            let name = words.next().unwrap();
            let parameters: Vec<_> = words.map(|word| word.split_once('=').unwrap()).collect();
            assert_eq!(Distribution::parse(name, &parameters), Ok(distribution));
        }
    }

    /// Every kind, gentle and extreme.
    fn samples() -> Vec<Distribution> {
        let numbers = [
            f64::MIN_POSITIVE,
            1e-9,
            1.0 / (1 << 20) as f64,
            0.3,
            0.5,
            1.0,
            2.0,
            2.5,
            20.0,
            800.0,
            1e9,
            f64::MAX,
        ];
        let sigmas = [None, Some("1ns"), Some("1s"), Some("10m"), Some("9h"), Some("2000000h")];
        let anchors =
            [None, Some(Anchor::End), Some(Anchor::Mid), Some(Anchor::Nominal), Some(Anchor::Start)];
        let mut all = vec![Distribution::Uniform];
        for n in numbers {
            all.push(Distribution::SkewEarly { shape: n });
            all.push(Distribution::SkewLate { shape: n });
            all.push(Distribution::Exponential { lambda: n, direction: Direction::Early });
            all.push(Distribution::Exponential { lambda: n, direction: Direction::Late });
        }
        for (mu, sigma) in anchors.iter().flat_map(|mu| sigmas.map(|sigma| (*mu, sigma))) {
            all.push(Distribution::Normal { mu, sigma: sigma.map(|text| text.parse().unwrap()) });
        }
        all
    }

    #[test]
    fn larger_numbers_map_to_later_places_and_none_outside() {
        let largest = 1.0 - f64::EPSILON / 2.0;
        let steps = || (0..=2_000).map(|i| f64::from(i) / 2_000.0).map(|u| u.min(largest));
        let close = || (0..200).map(|i| 0.37 + f64::from(i) * f64::EPSILON / 2.0);
        for (mode, text) in [
            (WindowMode::After, "2ns"),
            (WindowMode::After, "1s"),
            (WindowMode::Around, "5s"),
            (WindowMode::Before, "2h"),
            (WindowMode::Around, "8784h"),
        ] {
            let window = Window::new(mode, text.parse().unwrap()).unwrap();
            let (start, end) = window.bounds_in_seconds(jiff::Timestamp::UNIX_EPOCH);
            let width = end - start;
            if width == 0 {
                continue;
            }
            for distribution in samples() {
                let sampler = distribution.over(&window, -start, width);
                let mut last = 0;
                // Late exponentials and nothing else run backwards: their place is mirrored.
                let mirrored =
                    matches!(distribution, Distribution::Exponential { direction: Direction::Late, .. });
                for u in steps() {
                    let offset = sampler.offset_by_floats(u, width);
                    assert!((0..=width).contains(&offset), "{distribution} {text} {u}");
                    let ordered = if mirrored { width - offset } else { offset };
                    assert!(ordered >= last, "{distribution} {text} {u}");
                    last = ordered;
                }
                let mut last = f64::NEG_INFINITY;
                for u in close() {
                    let place = sampler.place(u);
                    let ordered = if mirrored { -place } else { place };
                    // Neighbouring numbers may trade places within the error of the functions.
                    assert!(ordered >= last - 1e-13, "{distribution} {text} {u}");
                    last = ordered;
                }
            }
        }
    }

    #[test]
    fn places_have_the_bits_of_the_design() {
        let window = |mode, text: &str| Window::new(mode, text.parse().unwrap()).unwrap();
        let after = window(WindowMode::After, "2h");
        let around = window(WindowMode::Around, "45m");
        let five = window(WindowMode::Around, "5s");
        let normal = Distribution::Normal { mu: None, sigma: Some("10m".parse().unwrap()) };
        let late = Distribution::Exponential { lambda: 3.0, direction: Direction::Late };
        let skew_late = Distribution::SkewLate { shape: 2.5 };
        let skew_early = Distribution::SkewEarly { shape: SHAPE_DEFAULT };
        for (distribution, window, nominal, width, u, x, second) in [
            (Distribution::Uniform, after, 0, 7_200, 0.473_243_660_931_657_8, 0.473_243_660_931_657_8, 3_407),
            (skew_late, around, 1_350, 2_700, 0.013_215_166_343_152_673, 0.032_711_187_109_011_886, 88),
            (
                skew_early,
                five,
                3,
                5,
                0.477_125_941_386_201_9,
                0.477_125_941_386_201_9 * 0.477_125_941_386_201_9,
                1,
            ),
            (normal, after, 0, 7_200, 0.473_243_660_931_657_8, f64::from_bits(0x3FDF_A45F_9F4F_B3CA), 3_560),
            (late, after, 0, 7_200, 0.473_243_660_931_657_8, f64::from_bits(0x3FE9_A115_6505_AC1A), 5_767),
        ] {
            let sampler = distribution.over(&window, nominal, width);
            assert_eq!(sampler.place(u).to_bits(), x.to_bits(), "{distribution:?}");
            assert_eq!(sampler.offset_by_floats(u, width), second, "{distribution:?}");
        }
        // The first numbers of E1 and E4.
        assert_eq!(SplitMix64::new(0x247e_cbef_7951_e20e).unit().to_f64(), 0.473_243_660_931_657_8);
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounding down is meant")]
    fn a_second_found_without_floats_is_the_one_that_they_give() {
        let mut stream = SplitMix64::new(3);
        let mut left_to_floats = 0;
        for _ in 0..60_000 {
            let width = 1 + stream.unit().times(WINDOW_MAX.as_seconds().unsigned_abs()).0.cast_signed();
            // Any number, and those on both sides of a whole second.
            let any = stream.unit();
            let second = 1 + stream.unit().times(width.unsigned_abs()).0;
            let place = second as f64 / (width + 1) as f64;
            for (sampler, border) in [
                (Sampler::Uniform, place),
                (Sampler::SquareEarly, sqrt(place)),
                (Sampler::SquareLate, 1.0 - sqrt(1.0 - place)),
            ] {
                let border = (border * (1_u64 << Unit::BITS) as f64) as u64;
                let close = (border.saturating_sub(12)..=border + 12).filter(|bits| bits >> Unit::BITS == 0);
                for unit in close.map(Unit::new).chain([any]) {
                    let by_floats = sampler.offset_by_floats(unit.to_f64(), width);
                    assert_eq!(sampler.offset(unit, width), by_floats, "{sampler:?} {unit:?} {width}");
                    left_to_floats += u32::from(offset_without_floats(unit, width).is_none());
                }
            }
        }
        assert!(left_to_floats > 0);
    }

    #[test]
    fn a_square_is_the_power_that_it_stands_for() {
        let mut stream = SplitMix64::new(5);
        for _ in 0..10_000 {
            let u = stream.unit().to_f64();
            for (square, power) in [
                (Sampler::SquareEarly, Sampler::SkewEarly { shape: 2.0 }),
                (Sampler::SquareLate, Sampler::SkewLate { shape: 2.0 }),
            ] {
                assert_eq!(square.place(u).to_bits(), power.place(u).to_bits(), "{square:?} {u}");
            }
        }
    }
}
