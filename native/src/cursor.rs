//! A place in one JSON text, and the few steps that all readers share.

use crate::lane::{LANE, Lane, same};

/// A text that is not exactly what the plan describes.
#[derive(Debug)]
pub struct Misfit;

pub type Fit<T> = Result<T, Misfit>;

/// Nothing is read beyond the end: there `peek` gives 0, which no JSON has outside of its end.
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
        // `at` never passes the end: it moves over bytes that were seen.
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// The next sixteen bytes; none if there are not so many.
    #[inline(always)]
    pub fn lane(&self) -> Option<&'a Lane> {
        self.bytes
            .get(self.at..self.at.wrapping_add(LANE))?
            .first_chunk()
    }

    /// Sixteen bytes before this place and sixteen from it on; none if there are not so many.
    #[inline(always)]
    pub fn around(&self) -> Option<&'a [u8; 2 * LANE]> {
        let start = self.at.wrapping_sub(LANE);
        self.bytes
            .get(start..start.wrapping_add(2 * LANE))?
            .first_chunk()
    }

    /// The bytes from `start` to here.
    #[inline(always)]
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or(&[])
    }

    #[inline(always)]
    pub fn between(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// Calls what is not inlined with a copy, so that the place itself may stay in a register.
    #[inline(always)]
    pub fn lend<T>(&mut self, call: impl FnOnce(&mut Cursor<'a>) -> T) -> T {
        let mut lent = *self;
        let found = call(&mut lent);
        *self = lent;
        found
    }

    /// Moves past blanks, of which there are mostly none.
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
            return Err(Misfit);
        }
        self.at += 1;
        Ok(())
    }

    /// Moves past a piece of text if it stands here.
    #[inline(always)]
    pub fn passes(&mut self, piece: &Piece) -> bool {
        let length = piece.text.len();
        let found = match self.lane() {
            Some(lane) => {
                same(lane, &piece.lane, piece.beyond)
                    && (length <= LANE || piece.goes_on(self.rest()))
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
            return Err(Misfit);
        }
        self.at += N;
        Ok(())
    }

    /// True, and moved past it, if null stands here.
    #[inline(always)]
    pub fn null(&mut self) -> Fit<bool> {
        if self.peek() != b'n' {
            return Ok(false);
        }
        self.word(b"null")?;
        Ok(true)
    }

    /// Moves past a comma, or after the closing byte; true if there is more. Blanks may follow.
    #[inline(always)]
    pub fn more(&mut self, closing: u8) -> Fit<bool> {
        let mut byte = self.peek();
        if byte != b',' && byte != closing {
            self.blanks();
            byte = self.peek();
            if byte != b',' && byte != closing {
                return Err(Misfit);
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
            Err(Misfit)
        }
    }
}

/// A short text that is looked for again and again.
pub struct Piece {
    pub text: Vec<u8>,
    /// The first bytes of the text, and which bits of them lie beyond its end.
    lane: Lane,
    beyond: u32,
}

impl Piece {
    pub fn new(text: Vec<u8>) -> Self {
        let mut lane = [0; LANE];
        let first = &text[..text.len().min(LANE)];
        lane[..first.len()].copy_from_slice(first);
        let beyond = 0xFFFF & (0xFFFF << first.len());
        Piece { text, lane, beyond }
    }

    /// Whether a text starts with this, if it is known to start with the first lane.
    #[inline(never)]
    fn goes_on(&self, text: &[u8]) -> bool {
        text[LANE..].starts_with(&self.text[LANE..])
    }

    #[cold]
    fn is_start(&self, text: &[u8]) -> bool {
        text.starts_with(&self.text)
    }
}
