//! Numbers of few digits, the usual case: one integer and the position of its point.

use crate::cursor::Cursor;
use crate::number::natural;

/// A number without an exponent.
pub struct FastNumber {
    pub negative: bool,
    /// Decimal digits as one integer below 10^15.
    pub digits: u64,
    /// The number of digits before the point, and after it.
    pub whole: usize,
    pub fraction: usize,
}

pub const MOST: usize = 15;
pub const POWERS: [u64; MOST + 1] = {
    let mut powers = [1; MOST + 1];
    let mut at = 1;
    while at <= MOST {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

impl FastNumber {
    /// Returns the nearest double: both operands are exact, and their quotient is rounded once.
    #[inline(always)]
    pub fn as_float(&self) -> f64 {
        let value = self.digits as f64 / POWERS[self.fraction] as f64;
        if self.negative && (self.fraction > 0 || self.digits > 0) {
            -value
        } else {
            value
        }
    }
}

/// Skips a number of few digits; the caller checks what follows it.
#[inline(always)]
pub fn fast_number(cursor: &mut Cursor) -> Option<FastNumber> {
    let negative = cursor.peek() == b'-';
    cursor.at += usize::from(negative);
    let leads = cursor.peek() == b'0';
    let (mut digits, whole) = natural(cursor);
    if whole == 0 || (leads && whole > 1) {
        return None;
    }
    let mut fraction = 0;
    if cursor.peek() == b'.' {
        cursor.at += 1;
        let decimals;
        (decimals, fraction) = natural(cursor);
        if fraction == 0 || whole + fraction > MOST {
            return None;
        }
        digits = digits * POWERS[fraction] + decimals;
    }
    (whole + fraction <= MOST).then_some(FastNumber {
        negative,
        digits,
        whole,
        fraction,
    })
}
