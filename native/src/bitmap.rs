//! Bits as Arrow packs them: the first is the lowest of the first byte.

#[derive(Default)]
pub struct Bitmap {
    pub bytes: Vec<u8>,
    length: usize,
}

impl Bitmap {
    #[inline(always)]
    pub fn push(&mut self, bit: bool) {
        let place = self.length % 8;
        if place == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= (bit as u8) << place;
        }
        self.length += 1;
    }

    pub fn extend(&mut self, bit: bool, count: usize) {
        for _ in 0..count {
            self.push(bit);
        }
    }
}

/// Which cells are there; costs nothing until the first one is not.
#[derive(Default)]
pub struct Validity {
    bits: Option<Bitmap>,
    pub nulls: usize,
}

impl Validity {
    #[inline(always)]
    pub fn present(&mut self) {
        if let Some(bits) = &mut self.bits {
            bits.push(true);
        }
    }

    /// `length` cells are there already.
    pub fn absent(&mut self, length: usize, count: usize) {
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = Bitmap::default();
            bits.extend(true, length);
            bits
        });
        bits.extend(false, count);
        self.nulls += count;
    }

    pub fn into_bytes(self) -> Option<Vec<u8>> {
        self.bits.map(|bits| bits.bytes)
    }
}
