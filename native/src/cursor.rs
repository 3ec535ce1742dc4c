//! A position in a JSON text, and basic steps that all readers share.

use crate::simd16::{BLOCK, Block, same};

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
        let found = call(&mut lent);
        *self = lent;
        found
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

    /// Skips a piece of text if it is at this position.
    #[inline(always)]
    pub fn passes(&mut self, piece: &Piece) -> bool {
        let length = piece.text.len();
        let found = match self.block() {
            Some(block) => {
                same(block, &piece.block, piece.beyond)
                    && (length <= BLOCK || piece.goes_on(self.rest()))
            }
            None => piece.is_start(self.rest()),
        };
        if found {
            self.at += length;
        }
        found
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
pub struct Piece {
    pub text: Vec<u8>,
    /// The first bytes of the text, and a mask of the bits beyond its end.
    block: Block,
    beyond: u32,
}

impl Piece {
    pub fn new(text: Vec<u8>) -> Self {
        let mut block = [0; BLOCK];
        let first = &text[..text.len().min(BLOCK)];
        block[..first.len()].copy_from_slice(first);
        let beyond = 0xFFFF & (0xFFFF << first.len());
        Piece {
            text,
            block,
            beyond,
        }
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
