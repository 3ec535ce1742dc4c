//! Text columns in the layout of Arrow: select rows, and find the smallest and largest text.

/// Number of rows by which texts are prefetched into the cache while others are copied.
const AHEAD: usize = 12;
/// Texts are copied in blocks of this many bytes, beyond their ends if there is space.
const BLOCK: usize = 32;

/// A column: one more 32-bit offset than rows, bytes, and a bit for each row if some are null.
pub struct TextColumn<'a> {
    pub offsets: &'a [i32],
    pub data: &'a [u8],
    pub validity: Option<&'a [u8]>,
    /// Index of row 0 in offsets and bits.
    pub first: usize,
}

impl TextColumn<'_> {
    /// Returns start and end of a row's text; None for an invalid row.
    #[inline]
    pub fn range(&self, row: usize) -> Option<(usize, usize)> {
        let at = self.first.checked_add(row)?;
        // A negative offset becomes larger than any length.
        let start = *self.offsets.get(at)? as usize;
        let end = *self.offsets.get(at + 1)? as usize;
        (start <= end && end <= self.data.len()).then_some((start, end))
    }

    #[inline]
    fn is_valid(&self, row: usize) -> bool {
        let at = self.first + row;
        self.validity.is_none_or(|bits| {
            bits.get(at / 8)
                .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
        })
    }
}

/// Selected rows of a column.
#[derive(Debug, PartialEq)]
pub struct Taken {
    pub offsets: Vec<i32>,
    pub data: Vec<u8>,
    /// None if no row is null.
    pub validity: Option<Vec<u8>>,
    pub nulls: usize,
}

#[derive(Debug, PartialEq)]
pub enum ColumnError {
    /// An index that is not a row of the column.
    Row,
    /// More text than 32-bit offsets can address.
    Size,
}

/// Returns the texts of some rows, in this order.
pub fn take(column: &TextColumn, rows: &[i64]) -> Result<Taken, ColumnError> {
    let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(rows.len());
    let mut offsets: Vec<i32> = Vec::with_capacity(rows.len() + 1);
    let mut validity = column.validity.map(|_| vec![0_u8; rows.len().div_ceil(8)]);
    let (mut total, mut nulls) = (0_usize, 0);
    offsets.push(0);
    for (at, &row) in rows.iter().enumerate() {
        let row = usize::try_from(row).map_err(|_| ColumnError::Row)?;
        let (start, mut end) = column.range(row).ok_or(ColumnError::Row)?;
        if let Some(bits) = &mut validity {
            let valid = column.is_valid(row);
            bits[at / 8] |= u8::from(valid) << (at % 8);
            if !valid {
                nulls += 1;
                end = start;
            }
        }
        total += end - start;
        offsets.push(i32::try_from(total).map_err(|_| ColumnError::Size)?);
        // Offsets are 32-bit numbers, so starts and lengths are.
        ranges.push((start as u32, (end - start) as u32));
    }
    Ok(Taken {
        offsets,
        data: copied(column.data, &ranges, total),
        validity: validity.filter(|_| nulls > 0),
        nulls,
    })
}

/// Concatenates the bytes of ranges (start, length), `total` of them.
///
/// By raw pointers the loop copies single blocks; a copy of slices becomes a call for each text, and
/// a check of the target's end for each block takes as long as the copy.
fn copied(data: &[u8], ranges: &[(u32, u32)], total: usize) -> Vec<u8> {
    let mut taken: Vec<u8> = Vec::with_capacity(total + BLOCK);
    let mut done = 0;
    for (row, &(start, length)) in ranges.iter().enumerate() {
        if let Some(&(coming, _)) = ranges.get(row + AHEAD) {
            prefetch(data, coming as usize);
        }
        let (start, length) = (start as usize, length as usize);
        let blocks = length.div_ceil(BLOCK);
        if start + blocks * BLOCK <= data.len() {
            for block in 0..blocks {
                // SAFETY: the source was just checked against the data. The lengths of all ranges
                // are `total`, so the target has room for a block after `done` plus the length.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        data.as_ptr().add(start + block * BLOCK),
                        taken.as_mut_ptr().add(done + block * BLOCK),
                        BLOCK,
                    );
                }
            }
        } else {
            let text = &data[start..start + length];
            // SAFETY: the lengths of all ranges are `total`, for which the target has room.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), taken.as_mut_ptr().add(done), length);
            }
        }
        done += length;
    }
    debug_assert_eq!(done, total);
    // SAFETY: every byte before `done` was written, without a gap.
    unsafe { taken.set_len(done) };
    taken
}

#[inline]
fn prefetch(data: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(lines) = data.get(at..at + 65) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in [&lines[0], &lines[64]] {
            // SAFETY: a hint for an address within the data; every x86-64 processor has it.
            unsafe { _mm_prefetch(std::ptr::from_ref(line).cast(), _MM_HINT_T0) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, at);
}

/// The first bytes of a text as a number with the same order; missing bytes are 0.
#[inline]
fn head(data: &[u8], start: usize, length: usize) -> u64 {
    let mut bytes = [0; 8];
    match data.get(start..start + 8) {
        Some(eight) => bytes.copy_from_slice(eight),
        None => bytes[..length.min(8)].copy_from_slice(&data[start..start + length.min(8)]),
    }
    let number = u64::from_be_bytes(bytes);
    match length {
        0 => 0,
        1..8 => number & u64::MAX << (64 - 8 * length),
        _ => number,
    }
}

/// Returns the first rows of the smallest and the largest of `rows` texts by bytes; None if all
/// are null.
pub fn bounds(column: &TextColumn, rows: usize) -> Result<Option<(usize, usize)>, ColumnError> {
    let mut bounds: Option<(usize, usize)> = None;
    let (mut least, mut greatest): (&[u8], &[u8]) = (&[], &[]);
    let (mut low, mut high) = (0, 0);
    for row in 0..rows {
        let (start, end) = column.range(row).ok_or(ColumnError::Row)?;
        if !column.is_valid(row) {
            continue;
        }
        let text = &column.data[start..end];
        let own = head(column.data, start, end - start);
        let Some((smallest, largest)) = &mut bounds else {
            (least, greatest, low, high) = (text, text, own, own);
            bounds = Some((row, row));
            continue;
        };
        if own < low || (own == low && text < least) {
            (*smallest, low, least) = (row, own, text);
        }
        if own > high || (own == high && text > greatest) {
            (*largest, high, greatest) = (row, own, text);
        }
    }
    Ok(bounds)
}
