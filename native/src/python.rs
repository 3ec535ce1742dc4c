//! The Python interface: plans and their columns.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::buffer::Buffer;
use crate::cells::Cells;
use crate::column::Finished;
use crate::cursor::{Cursor, Fit, Mismatch};
use crate::object::{Object, Output, Outputs};
use crate::runs::{Run, Runs};
use crate::spec;
use crate::texts::Texts;

/// A column of all texts: buffers in the layout of Arrow, None if the type has no such buffer.
#[pyclass(frozen, get_all, module = "ingestd_native")]
pub struct Column {
    /// Number of texts with the field, null or not.
    seen: usize,
    nulls: usize,
    /// None if no cell is null.
    validity: Option<Py<Buffer>>,
    offsets: Option<Py<Buffer>>,
    data: Option<Py<Buffer>>,
    /// Rows with placeholders of left-out values, as unsigned 32-bit integers, or None.
    left_out: Option<Py<Buffer>>,
    /// Ranges of rows without the field as pairs of unsigned 32-bit integers, the first row and the
    /// row after the last; None if all rows have it.
    lacking: Option<Py<Buffer>>,
    /// First row and JSON text of each run of equal values.
    runs: Option<Vec<(usize, Option<Py<PyBytes>>)>>,
}

impl Column {
    fn of_numbers<T: Send + Sync + 'static>(
        py: Python,
        numbers: Vec<T>,
        seen: usize,
    ) -> PyResult<Self> {
        Ok(Column {
            seen,
            nulls: 0,
            validity: None,
            offsets: None,
            data: buffer(py, numbers)?,
            left_out: None,
            lacking: None,
            runs: None,
        })
    }

    fn of_cells(py: Python, found: Finished) -> PyResult<Self> {
        let mut offsets = None;
        let mut runs = None;
        let data = match found.cells {
            Cells::Int8(_, values) => buffer(py, values)?,
            Cells::Int16(_, values) => buffer(py, values)?,
            Cells::Int32(_, values) => buffer(py, values)?,
            Cells::Int64(_, values) => buffer(py, values)?,
            Cells::Float32(_, values) => buffer(py, values)?,
            Cells::Float64(_, values) => buffer(py, values)?,
            Cells::Boolean(bits) => buffer(py, bits.bytes)?,
            Cells::Decimal { values, .. } | Cells::Unscaled(values) => buffer(py, values)?,
            Cells::Choice(_, values) => buffer(py, values)?,
            Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) => {
                offsets = buffer(py, pieces.offsets)?;
                buffer(py, pieces.data)?
            }
            Cells::Runs(found) => {
                runs = Some(texts_of(py, found));
                None
            }
            Cells::Numbered { heads, numbers, .. } => {
                runs = Some(texts_of(py, heads));
                buffer(py, numbers)?
            }
        };
        Ok(Column {
            seen: found.seen,
            nulls: found.nulls,
            validity: found.validity.map_or(Ok(None), |bits| buffer(py, bits))?,
            offsets,
            data,
            left_out: match found.left_out.is_empty() {
                true => None,
                false => buffer(py, found.left_out)?,
            },
            lacking: match found.lacking.is_empty() {
                true => None,
                false => buffer(py, found.lacking)?,
            },
            runs,
        })
    }
}

fn buffer<T: Send + Sync + 'static>(py: Python, values: Vec<T>) -> PyResult<Option<Py<Buffer>>> {
    Py::new(py, Buffer::of(values)).map(Some)
}

fn texts_of(py: Python, found: Runs) -> Vec<(usize, Option<Py<PyBytes>>)> {
    let text_of = |(row, text): Run| (row, text.map(|text| PyBytes::new(py, &text).unbind()));
    found.runs.into_iter().map(text_of).collect()
}

/// The fields to read from JSON texts and their types; `spec` consists of nested tuples.
#[pyclass(module = "ingestd_native")]
pub struct Plan {
    root: Object,
}

#[pymethods]
impl Plan {
    #[new]
    fn new(spec: &Bound<PyTuple>) -> PyResult<Self> {
        Ok(Plan {
            root: spec::root(spec)?,
        })
    }

    /// Returns the columns by the path of field names, or None if a text does not match.
    ///
    /// `texts` is a list of bytes objects or `Texts`. `prefix` and `suffix` bytes of each text are
    /// removed first. Releases the GIL while reading.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        prefix: &[u8],
        suffix: &[u8],
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let root = &mut self.root;
        let rows = texts.len()?;
        root.start(rows);
        let read = match texts.cast::<Texts>() {
            Ok(texts) => read_texts(py, root, texts.get(), prefix, suffix)?,
            Err(_) => read_list(root, texts.cast()?, prefix, suffix)?,
        };
        if !read {
            return Ok(None);
        }
        match py.detach(|| finished(root, rows)) {
            Ok(outputs) => into_python(py, outputs).map(Some),
            Err(Mismatch) => Ok(None),
        }
    }
}

/// Whether all texts match. The slices of a block stay in the cache with their texts.
fn read_texts(
    py: Python,
    root: &mut Object,
    texts: &Texts,
    prefix: &[u8],
    suffix: &[u8],
) -> PyResult<bool> {
    for start in (0..texts.len()).step_by(BLOCK) {
        let Some(slices) = texts.slices(start, texts.len().min(start + BLOCK)) else {
            return Err(PyTypeError::new_err("a text is missing"));
        };
        let read = py.detach(|| read_some(root, start, &slices, prefix, suffix));
        if read.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all texts of a list match.
fn read_list(
    root: &mut Object,
    texts: &Bound<PyList>,
    prefix: &[u8],
    suffix: &[u8],
) -> PyResult<bool> {
    let rows = texts.len();
    for start in (0..rows).step_by(BLOCK) {
        // A separate tuple: no text can be removed while it is read.
        let kept = texts.get_slice(start, start + BLOCK).to_tuple();
        let slices = slices_of(&kept)?;
        let read = texts
            .py()
            .detach(|| read_some(root, start, &slices, prefix, suffix));
        if read.is_err() || slices.len() != BLOCK.min(rows - start) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Number of texts read at a time, so that the memory they touch fits the cache.
const BLOCK: usize = 512;

/// The contents of a tuple of bytes objects.
fn slices_of<'a>(texts: &'a Bound<'_, PyTuple>) -> PyResult<Vec<&'a [u8]>> {
    let mut slices = Vec::with_capacity(texts.len());
    for text in texts.iter_borrowed() {
        let mut start = std::ptr::null_mut();
        let mut length = 0;
        // SAFETY: the object is alive, and its type is looked at by the call.
        let found =
            unsafe { ffi::PyBytes_AsStringAndSize(text.as_ptr(), &raw mut start, &raw mut length) };
        if found != 0 {
            return Err(PyErr::fetch(texts.py()));
        }
        // SAFETY: bytes objects never change, and the tuple keeps them.
        slices.push(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length as usize) });
    }
    Ok(slices)
}

/// Reads the texts of the rows from `start` on.
fn read_some(
    root: &mut Object,
    start: usize,
    texts: &[&[u8]],
    prefix: &[u8],
    suffix: &[u8],
) -> Fit<()> {
    for (row, text) in (start..).zip(texts) {
        let inner = text
            .strip_prefix(prefix)
            .and_then(|text| text.strip_suffix(suffix));
        let inner = inner.ok_or(Mismatch)?;
        // From here on every piece between two ASCII characters is UTF-8 too.
        simdutf8::basic::from_utf8(inner).map_err(|_| Mismatch)?;
        let mut cursor = Cursor::new(inner);
        cursor.blanks();
        root.read(&mut cursor, row)?;
        cursor.end()?;
    }
    Ok(())
}

fn finished(root: &mut Object, rows: usize) -> Fit<Outputs> {
    let mut outputs = Outputs::new();
    root.finish(rows, &[], &mut outputs)?;
    Ok(outputs)
}

fn into_python(py: Python<'_>, outputs: Outputs) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for (path, output) in outputs {
        let column = match output {
            Output::Presence(presence, seen) => Column::of_numbers(py, presence, seen)?,
            Output::Counts(counts, seen) => Column::of_numbers(py, counts, seen)?,
            Output::Column(finished) => Column::of_cells(py, finished)?,
        };
        found.set_item(PyTuple::new(py, path)?, Py::new(py, column)?)?;
    }
    Ok(found)
}
