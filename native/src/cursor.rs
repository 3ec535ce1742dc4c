//! A position in a JSON text, and basic steps that all readers share.

use crate::simd16::{BLOCK, Block};

/// A text that does not match the plan.
#[derive(Debug)]
pub struct Mismatch;

pub type Fit<T> = Result<T, Mismatch>;

/// Nothing is read beyond the end: there `peek` returns 0, which is not valid in JSON.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        // `at` never exceeds the end: it moves over bytes that were read.
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// Returns the next sixteen bytes; None if fewer are left.
    #[inline(always)]
    pub fn block(&self) -> Option<&'a Block> {
        self.bytes
            .get(self.at..self.at.wrapping_add(BLOCK))?
            .first_chunk()
    }

    /// Returns sixteen bytes before this position and sixteen from it on; None at the ends.
    #[inline(always)]
    pub fn around(&self) -> Option<&'a [u8; 2 * BLOCK]> {
        let start = self.at.wrapping_sub(BLOCK);
        self.bytes
            .get(start..start.wrapping_add(2 * BLOCK))?
            .first_chunk()
    }

    /// Returns the bytes from `start` to this position.
    #[inline(always)]
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or(&[])
    }

    #[inline(always)]
    pub fn between(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// Calls a function that is not inlined with a copy, so that the cursor may stay in a register.
    #[inline(always)]
    pub fn lend<T>(&mut self, call: impl FnOnce(&mut Cursor<'a>) -> T) -> T {
        let mut lent = *self;
        let result = call(&mut lent);
        *self = lent;
        result
    }

    /// Skips white space, of which there is usually none.
    #[inline(always)]
    pub fn blanks(&mut self) {
        if self.peek() <= b' ' {
            self.lend(Cursor::some_blanks);
        }
    }

    #[cold]
    fn some_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Fit<()> {
        if self.peek() != byte {
            return Err(Mismatch);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a text if it is at this position.
    #[inline(always)]
    pub fn passes(&mut self, text: &FixedText) -> bool {
        let length = text.text.len();
        let is_here = match self.block() {
            Some(block) => text.starts(block) && (length <= BLOCK || text.goes_on(self.rest())),
            None => text.is_start(self.rest()),
        };
        if is_here {
            self.at += length;
        }
        is_here
    }

    #[inline(always)]
    pub fn word<const N: usize>(&mut self, word: &[u8; N]) -> Fit<()> {
        if self.rest().first_chunk() != Some(word) {
            return Err(Mismatch);
        }
        self.at += N;
        Ok(())
    }

    /// Skips null; returns whether it was at this position.
    #[inline(always)]
    pub fn null(&mut self) -> Fit<bool> {
        if self.peek() != b'n' {
            return Ok(false);
        }
        self.word(b"null")?;
        Ok(true)
    }

    /// Skips a comma or the closing byte; true after a comma. White space may follow.
    #[inline(always)]
    pub fn more(&mut self, closing: u8) -> Fit<bool> {
        let mut byte = self.peek();
        if byte != b',' && byte != closing {
            self.blanks();
            byte = self.peek();
            if byte != b',' && byte != closing {
                return Err(Mismatch);
            }
        }
        self.at += 1;
        Ok(byte == b',')
    }

    pub fn end(&mut self) -> Fit<()> {
        self.blanks();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(Mismatch)
        }
    }
}

/// A short text that is compared many times.
pub struct FixedText {
    pub text: Vec<u8>,
    /// The first block of the text as a number, and a mask of the bits within the text.
    first: u128,
    within: u128,
}

impl FixedText {
    pub fn new(text: Vec<u8>) -> Self {
        let length = text.len().min(BLOCK);
        let (mut first, mut within) = ([0; BLOCK], [0; BLOCK]);
        first[..length].copy_from_slice(&text[..length]);
        within[..length].fill(0xFF);
        FixedText {
            text,
            first: u128::from_le_bytes(first),
            within: u128::from_le_bytes(within),
        }
    }

    /// Whether a block starts with the first block of this text.
    #[inline(always)]
    fn starts(&self, block: &Block) -> bool {
        (u128::from_le_bytes(*block) ^ self.first) & self.within == 0
    }

    /// Whether a text starts with this one, given that the first block matches.
    #[inline(never)]
    fn goes_on(&self, text: &[u8]) -> bool {
        text[BLOCK..].starts_with(&self.text[BLOCK..])
    }

    #[cold]
    fn is_start(&self, text: &[u8]) -> bool {
        text.starts_with(&self.text)
    }
}
