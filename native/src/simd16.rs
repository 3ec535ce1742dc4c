//! Operations on blocks of sixteen bytes, with SIMD instructions where available.

#[cfg(not(target_arch = "x86_64"))]
use portable as wide;
#[cfg(target_arch = "x86_64")]
use sse2 as wide;

pub use wide::{digits, special};

pub const BLOCK: usize = 16;
pub type Block = [u8; BLOCK];

/// Masks that keep the values of the last N digits of a block, and nothing before them.
static ENDS: [Block; BLOCK + 1] = {
    let mut ends = [[0; BLOCK]; BLOCK + 1];
    let mut count = 1;
    while count <= BLOCK {
        let mut at = BLOCK - count;
        while at < BLOCK {
            ends[count][at] = 0x0F;
            at += 1;
        }
        count += 1;
    }
    ends
};

/// Returns the number formed by the last `count` bytes, all of them digits.
#[inline(always)]
pub fn value(block: &Block, count: usize) -> u64 {
    let eights = wide::eights(block, &ENDS[count.min(BLOCK)]);
    (eights & 0xFFFF_FFFF) * 100_000_000 + (eights >> 32)
}

/// Returns the natural number from the middle on, and its digits; sixteen are too many.
#[inline(always)]
pub fn natural(around: &[u8; 2 * BLOCK]) -> (u64, usize) {
    let (_, ahead) = halves(around);
    let count = digits(ahead);
    match around.get(count..).and_then(<[u8]>::first_chunk) {
        Some(tail) => (value(tail, count), count),
        None => (0, BLOCK),
    }
}

/// Splits two blocks in the middle.
#[inline(always)]
pub fn halves(around: &[u8; 2 * BLOCK]) -> (&Block, &Block) {
    let (blocks, _) = around.as_chunks();
    (&blocks[0], &blocks[1])
}

#[cfg(target_arch = "x86_64")]
pub mod sse2 {
    use super::Block;
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_add_epi16, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64,
        _mm_loadu_si128, _mm_madd_epi16, _mm_min_epu8, _mm_movemask_epi8, _mm_mullo_epi16,
        _mm_or_si128, _mm_packs_epi32, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32,
        _mm_srli_epi16,
    };

    #[inline(always)]
    fn load(block: &Block) -> __m128i {
        // SAFETY: the block has sixteen bytes, and every x86-64 processor has SSE2.
        unsafe { _mm_loadu_si128(std::ptr::from_ref(block).cast()) }
    }

    /// Returns the index of the first quote, backslash or control character, or 16 or more.
    #[inline(always)]
    pub fn special(block: &Block) -> usize {
        let bytes = load(block);
        // SAFETY: every x86-64 processor has SSE2.
        let hits = unsafe {
            let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
            let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
            let slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
            _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, slash)))
        };
        hits.trailing_zeros() as usize
    }

    /// Returns the number of bytes before the first that is not a digit.
    #[inline(always)]
    pub fn digits(block: &Block) -> usize {
        // SAFETY: every x86-64 processor has SSE2.
        let digits = unsafe {
            let values = _mm_add_epi8(load(block), _mm_set1_epi8(-(b'0' as i8)));
            _mm_movemask_epi8(_mm_cmpeq_epi8(
                _mm_min_epu8(values, _mm_set1_epi8(9)),
                values,
            ))
        };
        (digits ^ 0x1_FFFF).trailing_zeros() as usize
    }

    /// Returns two numbers of eight digits, the first in the lower half.
    #[inline(always)]
    pub fn eights(block: &Block, mask: &Block) -> u64 {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe {
            let digits = _mm_and_si128(load(block), load(mask));
            let tens = _mm_mullo_epi16(digits, _mm_set1_epi16(10));
            let pairs = _mm_add_epi16(tens, _mm_srli_epi16::<8>(digits));
            let pairs = _mm_and_si128(pairs, _mm_set1_epi16(0xFF));
            let fours = _mm_madd_epi16(pairs, _mm_set1_epi32((1 << 16) + 100));
            let fours = _mm_packs_epi32(fours, fours);
            let eights = _mm_madd_epi16(fours, _mm_set1_epi32((1 << 16) + 10_000));
            _mm_cvtsi128_si64(eights) as u64
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
pub mod portable {
    use super::Block;

    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;

    #[inline(always)]
    fn words(block: &Block) -> [u64; 2] {
        let whole = u128::from_le_bytes(*block);
        [whole as u64, (whole >> 64) as u64]
    }

    /// Returns the index of the first byte whose high bit is set, else sixteen.
    #[inline(always)]
    fn first(hits: [u64; 2]) -> usize {
        match hits {
            [0, second] => 8 + second.trailing_zeros() as usize / 8,
            [first, _] => first.trailing_zeros() as usize / 8,
        }
    }

    /// Returns the index of the first quote, backslash or control character, or 16 or more.
    #[inline(always)]
    pub fn special(block: &Block) -> usize {
        let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
        first(words(block).map(|word| {
            let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
            control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')))
        }))
    }

    /// Returns the number of bytes before the first that is not a digit.
    #[inline(always)]
    pub fn digits(block: &Block) -> usize {
        // The high bit stays off only for '0' to '9'; borrows reach no byte below the first other.
        first(words(block).map(|word| {
            let low = word.wrapping_sub(ONES * u64::from(b'0'));
            let high = word.wrapping_add(ONES * u64::from(0x7F - b'9'));
            (low | high | word) & HIGH
        }))
    }

    /// Returns two numbers of eight digits, the first in the lower half.
    #[inline(always)]
    pub fn eights(block: &Block, mask: &Block) -> u64 {
        let (digits, mask) = (words(block), words(mask));
        let number = |half: usize| {
            let digits = digits[half] & mask[half];
            let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
            let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
            (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF
        };
        number(0) | number(1) << 32
    }
}
