//! A place in one JSON text, and the few steps that all readers share.

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

    /// Moves behind blanks, of which there are mostly none.
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

    /// Moves behind a piece of text if it stands here.
    #[inline(always)]
    pub fn passes(&mut self, piece: &Piece) -> bool {
        let found = piece.starts(self.rest());
        if found {
            self.at += piece.text.len();
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

    /// True, and moved behind it, if null stands here.
    #[inline(always)]
    pub fn null(&mut self) -> Fit<bool> {
        if self.peek() != b'n' {
            return Ok(false);
        }
        self.word(b"null")?;
        Ok(true)
    }

    /// Moves behind a comma, or behind the closing byte; true if there is more. Blanks may follow.
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
    words: [u64; WORDS],
    masks: [u64; WORDS],
    count: usize,
}

/// Longer pieces take a call.
const WORDS: usize = 4;

impl Piece {
    pub fn new(text: Vec<u8>) -> Self {
        let (mut words, mut masks) = ([0; WORDS], [0; WORDS]);
        for (place, bytes) in text.chunks(8).take(WORDS).enumerate() {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            words[place] = u64::from_le_bytes(whole);
            masks[place] = u64::MAX >> (64 - 8 * bytes.len());
        }
        let count = text.len().div_ceil(8);
        Piece {
            text,
            words,
            masks,
            count,
        }
    }

    /// Whether a text starts with this: eight bytes at a time, whatever follows it.
    #[inline(always)]
    fn starts(&self, text: &[u8]) -> bool {
        if self.count > WORDS || text.len() < 8 * WORDS {
            return text.starts_with(&self.text);
        }
        // Two words are what most names have; masks beyond the end are empty.
        let mut unlike = self.unlike(text, 0) | self.unlike(text, 1);
        if self.count > 2 {
            unlike |= self.unlike(text, 2) | self.unlike(text, 3);
        }
        unlike == 0
    }

    /// Bits of the word at a place that differ.
    #[inline(always)]
    fn unlike(&self, text: &[u8], place: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&text[8 * place..8 * place + 8]);
        (u64::from_le_bytes(bytes) ^ self.words[place]) & self.masks[place]
    }
}
