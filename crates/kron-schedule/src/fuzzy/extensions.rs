//! The switch for what Kron adds to the language.

/// Whether Kron's own additions are understood.
///
/// They add phrases. None of them changes what a phrase of the specification means.
///
/// | Addition | Means |
/// | --- | --- |
/// | `bi-weekly exactly`, `tri-weekly exactly` | every 14 or 21 days, across months and years |
/// | `every 10 days exactly`, `every 3 weeks exactly` | every so many days, likewise |
/// | `on weekdays`, after `daily ...`, `hourly` and `every 2h` | Monday to Friday only |
/// | `weekly on mon` | three letters of a weekday |
/// | `every 10 minutes scattered` | every 10 minutes, not from minute 0 on |
///
/// ```
/// use kron_schedule::fuzzy::{Extensions, Phrase};
///
/// assert!(Phrase::parse("daily on weekdays", Extensions::Off).is_err());
/// let phrase = Phrase::parse("daily on weekdays", Extensions::On)?;
/// assert_eq!(phrase.placeholder().to_string(), "FUZZY:DAILY * * 1-5");
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Extensions {
    /// The language of the specification and nothing else.
    #[default]
    Off,
    /// With Kron's additions.
    On,
}

impl Extensions {
    pub(super) fn are_on(self) -> bool {
        self == Extensions::On
    }
}
