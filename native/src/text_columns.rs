//! Text columns in the layout of Arrow: select rows, and find the smallest and largest text.

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::slices::Items;

/// Number of rows by which texts are prefetched into the cache while others are copied.
const AHEAD: usize = 12;
/// Texts are copied in blocks of this many bytes, beyond their ends if there is space.
const BLOCK: usize = 32;

/// A column: one more 32-bit offset than rows, bytes, and a bit for each row if some are null.
struct Texts<'a> {
    offsets: &'a [i32],
    data: &'a [u8],
    validity: Option<&'a [u8]>,
    /// Index of row 0 in offsets and bits.
    first: usize,
}

impl<'a> Texts<'a> {
    /// Returns start and end of a row's text; None for an invalid row.
    #[inline]
    fn range(&self, row: usize) -> Option<(usize, usize)> {
        let at = self.first.checked_add(row)?;
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

struct Taken {
    offsets: Vec<i32>,
    data: Vec<u8>,
    validity: Option<Vec<u8>>,
    nulls: usize,
}

enum Trouble {
    /// An index that is not a row of the column.
    Place,
    /// More text than 32-bit offsets can address.
    Size,
}

fn take(texts: &Texts, places: &[i64]) -> Result<Taken, Trouble> {
    let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(places.len());
    let mut offsets: Vec<i32> = Vec::with_capacity(places.len() + 1);
    let mut validity = texts.validity.map(|_| vec![0_u8; places.len().div_ceil(8)]);
    let (mut total, mut nulls) = (0_usize, 0);
    offsets.push(0);
    for (row, &place) in places.iter().enumerate() {
        let place = usize::try_from(place).map_err(|_| Trouble::Place)?;
        let (start, mut end) = texts.range(place).ok_or(Trouble::Place)?;
        if let Some(bits) = &mut validity {
            let valid = texts.is_valid(place);
            bits[row / 8] |= u8::from(valid) << (row % 8);
            if !valid {
                nulls += 1;
                end = start;
            }
        }
        total += end - start;
        offsets.push(i32::try_from(total).map_err(|_| Trouble::Size)?);
        // Offsets are 32-bit numbers, so starts and lengths are.
        ranges.push((start as u32, (end - start) as u32));
    }
    Ok(Taken {
        offsets,
        data: copied(texts.data, &ranges, total),
        validity: validity.filter(|_| nulls > 0),
        nulls,
    })
}

/// Concatenates the bytes of ranges (start, length), `total` of them.
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
                // SAFETY: the source was just checked against the data; the target has room for
                // `total` bytes and a block, and everything after `done` is written later.
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
            // SAFETY: the lengths of all ranges are `total`.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), taken.as_mut_ptr().add(done), length);
            }
        }
        done += length;
    }
    debug_assert_eq!(done, total);
    // SAFETY: every byte was written.
    unsafe { taken.set_len(done) };
    taken
}

#[inline]
fn prefetch(data: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at + 64 < data.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch hint, for addresses within the data.
        unsafe {
            _mm_prefetch(data.as_ptr().add(at).cast(), _MM_HINT_T0);
            _mm_prefetch(data.as_ptr().add(at + 64).cast(), _MM_HINT_T0);
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
        Some(found) => bytes.copy_from_slice(found),
        None => bytes[..length.min(8)].copy_from_slice(&data[start..start + length.min(8)]),
    }
    let number = u64::from_be_bytes(bytes);
    match length {
        0 => 0,
        1..8 => number & u64::MAX << (64 - 8 * length),
        _ => number,
    }
}

/// Returns the rows of the smallest and the largest text by bytes; None if all are null.
fn bounds(texts: &Texts, rows: usize) -> Result<Option<(usize, usize)>, Trouble> {
    let mut found: Option<(usize, usize)> = None;
    let (mut least, mut greatest): (&[u8], &[u8]) = (&[], &[]);
    let (mut low, mut high) = (0, 0);
    for row in 0..rows {
        let (start, end) = texts.range(row).ok_or(Trouble::Place)?;
        if !texts.is_valid(row) {
            continue;
        }
        let text = &texts.data[start..end];
        let own = head(texts.data, start, end - start);
        let Some((first, last)) = &mut found else {
            (least, greatest, low, high) = (text, text, own, own);
            found = Some((row, row));
            continue;
        };
        if own < low || (own == low && text < least) {
            (*first, low, least) = (row, own, text);
        }
        if own > high || (own == high && text > greatest) {
            (*last, high, greatest) = (row, own, text);
        }
    }
    Ok(found)
}

fn raised(trouble: Trouble) -> PyErr {
    match trouble {
        Trouble::Place => PyIndexError::new_err("a place that the column does not have"),
        Trouble::Size => PyOverflowError::new_err("more text than one array can hold"),
    }
}

/// A text column: offsets, data, validity bits (None if no row is null), and the null count.
type TextColumn = (Py<Buffer>, Py<Buffer>, Option<Py<Buffer>>, usize);

/// Returns offsets, bytes, validity and null count of selected rows of a text column.
///
/// `offsets` are 32-bit, `places` 64-bit integers, `validity` None or the bits of rows; row 0 is at
/// index `first` of offsets and bits. Raises IndexError for an invalid row, OverflowError for more
/// text than 32-bit offsets can address. Releases the GIL.
#[pyfunction]
pub fn take_texts(
    py: Python<'_>,
    places: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    validity: Option<&Bound<'_, PyAny>>,
    first: usize,
) -> PyResult<TextColumn> {
    let places = Items::<i64>::of(places)?;
    let (offsets, data) = (Items::<i32>::of(offsets)?, Items::<u8>::of(data)?);
    let validity = validity.map(Items::<u8>::of).transpose()?;
    let texts = Texts {
        offsets: offsets.slice(),
        data: data.slice(),
        validity: validity.as_ref().map(Items::slice),
        first,
    };
    let places = places.slice();
    let taken = py.detach(|| take(&texts, places)).map_err(raised)?;
    Ok((
        Py::new(py, Buffer::of(taken.offsets))?,
        Py::new(py, Buffer::of(taken.data))?,
        taken
            .validity
            .map(|bits| Py::new(py, Buffer::of(bits)))
            .transpose()?,
        taken.nulls,
    ))
}

/// Returns the rows of the smallest and the largest of `rows` texts, None if all are null.
///
/// Of equal ones the first. A column is passed as to `take_texts`. Raises IndexError if it has
/// fewer rows.
#[pyfunction]
pub fn text_bounds(
    py: Python<'_>,
    rows: usize,
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    validity: Option<&Bound<'_, PyAny>>,
    first: usize,
) -> PyResult<Option<(usize, usize)>> {
    let (offsets, data) = (Items::<i32>::of(offsets)?, Items::<u8>::of(data)?);
    let validity = validity.map(Items::<u8>::of).transpose()?;
    let texts = Texts {
        offsets: offsets.slice(),
        data: data.slice(),
        validity: validity.as_ref().map(Items::slice),
        first,
    };
    py.detach(|| bounds(&texts, rows)).map_err(raised)
}
