//! Bitmaps as Arrow packs them, the least significant bit first.

#[derive(Default)]
pub struct Bitmap {
    pub bytes: Vec<u8>,
    length: usize,
}

impl Bitmap {
    #[inline(always)]
    pub fn push(&mut self, bit: bool) {
        let bit_index = self.length % 8;
        if bit_index == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << bit_index;
        }
        self.length += 1;
    }

    /// Removes all bits from the index `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = length;
        self.bytes.truncate(length.div_ceil(8));
        if let (Some(last), over @ 1..) = (self.bytes.last_mut(), length % 8) {
            *last &= 0xFF >> (8 - over);
        }
    }

    pub fn extend(&mut self, bit: bool, count: usize) {
        for _ in 0..count {
            self.push(bit);
        }
    }
}

/// Ranges of null cells, each the first cell and the one after the last. Valid cells cost nothing.
#[derive(Default)]
pub struct Absent {
    ranges: Vec<[u32; 2]>,
    pub count: usize,
}

impl Absent {
    /// Adds null cells from `first` on; all ranges added before precede it.
    #[inline(always)]
    pub fn add(&mut self, start: usize, count: usize) {
        let (start, end) = (start as u32, (start + count) as u32);
        self.count += count;
        match self.ranges.last_mut() {
            Some(last) if last[1] == start => last[1] = end,
            _ => self.ranges.push([start, end]),
        }
    }

    /// Removes null cells from the index `cells` on.
    pub fn truncate(&mut self, cells: usize) {
        while let Some([start, end]) = self.ranges.last_mut() {
            let kept = (*end).min(cells as u32);
            self.count -= (*end - kept.max(*start)) as usize;
            if kept > *start {
                *end = kept;
                return;
            }
            self.ranges.pop();
        }
    }

    /// Returns the validity bits of this many cells, None if all are valid.
    pub fn validity(&self, cells: usize) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut bytes = vec![0xFF; cells.div_ceil(8)];
        if let (Some(last), over @ 1..) = (bytes.last_mut(), cells % 8) {
            *last = 0xFF >> (8 - over);
        }
        for &[start, end] in &self.ranges {
            clear(&mut bytes, start as usize, end as usize);
        }
        Some(bytes)
    }
}

/// Clears the bits from one index up to another.
fn clear(bytes: &mut [u8], start: usize, end: usize) {
    let mut at = start;
    while at < end {
        if at.is_multiple_of(8) && end - at >= 8 {
            let whole = (end - at) / 8;
            bytes[at / 8..at / 8 + whole].fill(0);
            at += 8 * whole;
        } else {
            bytes[at / 8] &= !(1 << (at % 8));
            at += 1;
        }
    }
}
