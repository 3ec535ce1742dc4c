//! Functions of columns in Python arrays: select, compare and hash texts, look up sorted numbers.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use pyo3::prelude::*;

use super::buffer::Buffer;
use super::slices::Items;
use crate::hashes::sha2_hex;
use crate::sorted_lookup::contains_sorted;
use crate::text_columns::{ColumnError, TextColumn, bounds, take};

fn raised(error: ColumnError) -> PyErr {
    match error {
        ColumnError::Row => PyIndexError::new_err("a row that the column does not have"),
        ColumnError::Size => PyOverflowError::new_err("more text than one array can hold"),
    }
}

/// A text column: offsets, data, validity bits (None if no row is null), and the null count.
type Buffers = (Py<Buffer>, Py<Buffer>, Option<Py<Buffer>>, usize);

/// Returns offsets, bytes, validity and null count of selected rows of a text column.
///
/// `offsets` are 32-bit, `rows` 64-bit integers, `validity` None or the bits of rows; row 0 is at
/// index `first` of offsets and bits. Raises IndexError for an invalid row, OverflowError for more
/// text than 32-bit offsets can address. Releases the GIL.
#[pyfunction]
pub fn take_texts(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    validity: Option<&Bound<'_, PyAny>>,
    first: usize,
) -> PyResult<Buffers> {
    let rows = Items::<i64>::of(rows)?;
    let (offsets, data) = (Items::<i32>::of(offsets)?, Items::<u8>::of(data)?);
    let validity = validity.map(Items::<u8>::of).transpose()?;
    let column = TextColumn {
        offsets: offsets.slice(),
        data: data.slice(),
        validity: validity.as_ref().map(Items::slice),
        first,
    };
    let rows = rows.slice();
    let taken = py.detach(|| take(&column, rows)).map_err(raised)?;
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
    let column = TextColumn {
        offsets: offsets.slice(),
        data: data.slice(),
        validity: validity.as_ref().map(Items::slice),
        first,
    };
    py.detach(|| bounds(&column, rows)).map_err(raised)
}

/// Returns the SHA-2 hashes of `rows` texts as lower-case hexadecimal text, one after the other.
///
/// A column is passed as to `take_texts`; null texts are hashed, too. Raises IndexError if it has
/// fewer rows, ValueError for a length of the hashes that does not exist. Releases the GIL.
#[pyfunction]
pub fn sha2_texts(
    py: Python<'_>,
    rows: usize,
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    first: usize,
    bits: usize,
) -> PyResult<Py<Buffer>> {
    let (offsets, data) = (Items::<i32>::of(offsets)?, Items::<u8>::of(data)?);
    let column = TextColumn {
        offsets: offsets.slice(),
        data: data.slice(),
        validity: None,
        first,
    };
    let text = py
        .detach(|| sha2_hex(&column, rows, bits))
        .ok_or_else(|| PyValueError::new_err("SHA-2 has 224, 256, 384 or 512 bits"))?
        .map_err(raised)?;
    Py::new(py, Buffer::of(text))
}

/// Returns which of some sorted 32-bit integers are in a sorted array: a byte, 0 or 1, for each.
///
/// Unsorted integers may not be found. Releases the GIL.
#[pyfunction]
pub fn sorted_among(
    py: Python<'_>,
    numbers: &Bound<'_, PyAny>,
    known: &Bound<'_, PyAny>,
) -> PyResult<Py<Buffer>> {
    let (numbers, known) = (Items::<i32>::of(numbers)?, Items::<i32>::of(known)?);
    let (numbers, known) = (numbers.slice(), known.slice());
    Py::new(
        py,
        Buffer::of(py.detach(|| contains_sorted(numbers, known))),
    )
}
