//! Numbers of few digits, which most are: one integer and the place of its point.

use crate::cursor::Cursor;
use crate::number::natural;

/// A number without an exponent.
pub struct Short {
    pub negative: bool,
    /// All digits as one integer, below 10^15.
    pub digits: u64,
    /// How many digits precede the point, and how many after it.
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

impl Short {
    /// Both operands are exact, and so is rounding their quotient once.
    #[inline(always)]
    pub fn as_float(&self) -> f64 {
        let value = self.digits as f64 / POWERS[self.fraction] as f64;
        match self.negative {
            true if self.fraction > 0 || self.digits > 0 => -value,
            _ => value,
        }
    }
}

/// Moves past a number if it is a short one; what follows it is the caller's business.
#[inline(always)]
pub fn short(cursor: &mut Cursor) -> Option<Short> {
    let negative = cursor.peek() == b'-';
    cursor.at += negative as usize;
    let leads = cursor.peek() == b'0';
    let (mut digits, whole) = natural(cursor);
    if whole == 0 || (leads && whole > 1) {
        return None;
    }
    let mut fraction = 0;
    if cursor.peek() == b'.' {
        cursor.at += 1;
        let behind;
        (behind, fraction) = natural(cursor);
        if fraction == 0 || whole + fraction > MOST {
            return None;
        }
        digits = digits * POWERS[fraction] + behind;
    }
    (whole + fraction <= MOST).then_some(Short {
        negative,
        digits,
        whole,
        fraction,
    })
}
