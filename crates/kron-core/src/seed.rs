//! Identity, period and salt become a hash.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use core::fmt;
use core::ops::Range;

use jiff::Timestamp;
use kron_schedule::Zone;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};

use crate::label::{DATE_BYTES, LABEL_BYTES_MAX, Label, UTC_BYTES, WEEK_BYTES, day_number};
use crate::period::floor_second;

/// Which periods of a job share their random numbers.
///
/// ```
/// use kron_core::SeedStrategy;
/// use kron_schedule::Zone;
///
/// let (nominal, zone) = ("2027-01-01T10:00:00Z".parse()?, Zone::utc());
/// let key = |strategy: SeedStrategy| strategy.period_key(nominal, &zone).to_string();
/// assert_eq!(key(SeedStrategy::Stable), "2027-01-01T10:00:00Z");
/// assert_eq!(key(SeedStrategy::Daily), "2027-01-01");
/// assert_eq!(key(SeedStrategy::Weekly), "2026-W53");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum SeedStrategy {
    /// Those whose nominal times fall on one local day: the same place in each of their windows.
    Daily,
    /// None: every period has its own.
    #[default]
    Stable,
    /// Those whose nominal times fall into one ISO week of local days.
    Weekly,
}

impl SeedStrategy {
    /// What stands for the period in the seed.
    #[inline(always)] // so that the key of a decision stays in registers
    #[must_use]
    pub fn period_key(self, nominal: Timestamp, zone: &Zone) -> PeriodKey {
        let second = floor_second(nominal);
        let local_day = || day_number(second + i64::from(zone.offset_at(nominal).seconds()));
        PeriodKey(match self {
            SeedStrategy::Daily => Label::date(local_day()),
            SeedStrategy::Stable => Label::utc(second),
            SeedStrategy::Weekly => Label::week(local_day()),
        })
    }

    /// How long its keys are, in years of four digits.
    fn key_bytes(self) -> usize {
        match self {
            SeedStrategy::Daily => DATE_BYTES,
            SeedStrategy::Stable => UTC_BYTES,
            SeedStrategy::Weekly => WEEK_BYTES,
        }
    }

    /// Its name in a krontab: `daily`, `stable` or `weekly`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SeedStrategy::Daily => "daily",
            SeedStrategy::Stable => "stable",
            SeedStrategy::Weekly => "weekly",
        }
    }
}

impl fmt::Display for SeedStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What stands for a period in its seed: a second, a day or a week.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct PeriodKey(Label);

impl fmt::Display for PeriodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PeriodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PeriodKey").field(&self.0).finish()
    }
}

/// The SHA-256 that a period's random numbers start from; printed as 64 hexadecimal digits.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct SeedHash([u32; 8]);

impl SeedHash {
    /// What SHA-256 starts from: the first 32 bits of the fractions of the roots of the first 8 primes.
    pub(crate) const INITIAL: SeedHash = SeedHash([
        0x6A09_E667,
        0xBB67_AE85,
        0x3C6E_F372,
        0xA54F_F53A,
        0x510E_527F,
        0x9B05_688C,
        0x1F83_D9AB,
        0x5BE0_CD19,
    ]);

    /// The hash itself.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (four, word) in bytes.chunks_exact_mut(4).zip(self.0) {
            four.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Where the stream of random numbers starts: the first eight bytes. The public vectors fix this.
    pub(crate) fn state(&self) -> u64 {
        u64::from(self.0[0]) << 32 | u64::from(self.0[1])
    }
}

impl From<[u8; 32]> for SeedHash {
    fn from(bytes: [u8; 32]) -> SeedHash {
        let mut words = [0; 8];
        for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        }
        SeedHash(words)
    }
}

impl fmt::Display for SeedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.to_bytes()) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.pad(core::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for SeedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeedHash({self})")
    }
}

/// What is hashed for every period of a job: identity, line feed, key, line feed, salt.
///
/// It is kept as SHA-256 takes it, in blocks with the mark and the length at the end, and with a
/// blank for the key. Where one block holds everything, a decision fills in the key and compresses;
/// that is all there is to its hash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Material {
    blocks: Box<[Block]>,
    /// Where the blank begins and ends, and how long it is.
    key: Range<usize>,
    key_bytes: usize,
    /// Where the salt ends.
    end: usize,
}

type Block = [u8; 64];

impl Material {
    pub(crate) fn new(identity: &str, strategy: SeedStrategy, salt: &str) -> Material {
        let key = identity.len() + 1..identity.len() + 1 + strategy.key_bytes();
        let end = key.end + 1 + salt.len();
        // The mark is a byte, the length eight.
        let mut bytes = vec![0; (end + 9).next_multiple_of(64)];
        bytes[..identity.len()].copy_from_slice(identity.as_bytes());
        bytes[key.start - 1] = b'\n';
        bytes[key.end] = b'\n';
        bytes[key.end + 1..end].copy_from_slice(salt.as_bytes());
        bytes[end] = 0x80;
        let bits = end as u64 * 8;
        let length_at = bytes.len() - 8;
        bytes[length_at..].copy_from_slice(&bits.to_be_bytes());
        let (blocks, _) = bytes.as_chunks();
        Material { blocks: blocks.into(), key, key_bytes: strategy.key_bytes(), end }
    }

    pub(crate) fn identity(&self) -> &str {
        self.text(0..self.key.start - 1)
    }

    pub(crate) fn salt(&self) -> &str {
        self.text(self.key.end + 1..self.end)
    }

    fn text(&self, range: Range<usize>) -> &str {
        let bytes = &self.blocks.as_flattened()[range];
        core::str::from_utf8(bytes).expect("it was made of whole texts")
    }

    #[inline]
    pub(crate) fn hash(&self, PeriodKey(key): &PeriodKey, hash: &mut SeedHash) {
        match &*self.blocks {
            [block] if key.length() == self.key_bytes => {
                *hash = SeedHash::INITIAL;
                compress256(&mut hash.0, &[fill(block, key.words(), self.key.start)]);
            }
            _ => *hash = self.hash_in_pieces(*key),
        }
    }

    /// The hash of a text of any length.
    #[inline(never)]
    fn hash_in_pieces(&self, key: Label) -> SeedHash {
        let bytes = self.blocks.as_flattened();
        let hasher = Sha256::new_with_prefix(&bytes[..self.key.start]);
        let hasher =
            key.with_str(|key| hasher.chain_update(key)).chain_update(&bytes[self.key.end..self.end]);
        SeedHash::from(<[u8; 32]>::from(hasher.finalize()))
    }

    /// What is hashed, as a text.
    pub(crate) fn with_key(&self, key: &PeriodKey) -> String {
        let mut text = String::with_capacity(self.end + LABEL_BYTES_MAX);
        text.push_str(self.text(0..self.key.start));
        key.0.with_str(|key| text.push_str(key));
        text.push_str(self.text(self.key.end..self.end));
        text
    }
}

/// The block with a key in its blank, which is zeros, as the key's words are beyond its end.
///
/// The obvious way, to copy the block and then the key, makes the hash wait: it loads sixteen bytes at
/// a time, and what was just stored in smaller pieces cannot be loaded until it has left the
/// processor's queue. So the key is shifted into place in registers, and every word of the block is
/// computed in the same way, which compilers turn into a few wide operations and wide stores. It
/// saves a third of a decision.
fn fill(block: &Block, key: &[u64; 3], at: usize) -> Block {
    let [a, b, c] = *key;
    // Bits to the left of which the key begins in its first word.
    let left = at % 8 * 8;
    let right = |word: u64| word >> 1 >> (63 - left);
    let shifted = [a << left, right(a) | b << left, right(b) | c << left, right(c)];
    let masks = [0, 1, 2, 3].map(|i| one_of_eight(at / 8 + i));
    let mut filled = [[0; 8]; 8];
    for i in 0..8 {
        let blank = u64::from_le_bytes(block.as_chunks().0[i]);
        let word = blank
            | shifted[0] & masks[0][i]
            | shifted[1] & masks[1][i]
            | shifted[2] & masks[2][i]
            | shifted[3] & masks[3][i];
        filled[i] = word.to_le_bytes();
    }
    *filled.as_flattened().first_chunk().expect("eight times eight bytes are a block")
}

/// Eight words of which one is all ones; none, if the position is 8.
fn one_of_eight(position: usize) -> &'static [u64; 8] {
    static MASKS: [u64; 24] = [0, 0, 0, 0, 0, 0, 0, 0, u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // Positions are at most 8 anyway; a mask that no position can lead out of needs no check.
    MASKS[8_usize.wrapping_sub(position) % 16..].first_chunk().expect("sixteen and eight are all there are")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn however_it_is_cut_the_hash_is_of_the_text() {
        let zone = Zone::utc();
        for strategy in [SeedStrategy::Daily, SeedStrategy::Stable, SeedStrategy::Weekly] {
            for (identity, salt) in (1..140).flat_map(|i| [0, 1, 20, 64].map(|s| (i, s))) {
                let material = Material::new(&"é".repeat(identity), strategy, &"s".repeat(salt));
                for nominal in ["2026-03-01T00:00:00Z", "-000001-03-01T00:00:00Z"] {
                    let key = strategy.period_key(nominal.parse().unwrap(), &zone);
                    let text = material.with_key(&key);
                    assert_eq!(text.len(), 2 * identity + 2 + key.to_string().len() + salt);
                    let mut hash = SeedHash::INITIAL;
                    material.hash(&key, &mut hash);
                    assert_eq!(hash.to_bytes()[..], Sha256::digest(&text)[..]);
                }
                assert_eq!(material.identity(), "é".repeat(identity));
                assert_eq!(material.salt(), "s".repeat(salt));
            }
        }
    }
}
