//! The Python interface: plans and their columns.

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::buffer::Buffer;
use super::spec;
use super::texts::Texts;
use crate::cells::Cells;
use crate::column::Finished;
use crate::cursor::Mismatch;
use crate::object::{Output, Outputs};
use crate::plan;
use crate::runs::{Run, Runs};

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

    fn of_cells(py: Python, column: Finished) -> PyResult<Self> {
        let mut offsets = None;
        let mut runs = None;
        let data = match column.cells {
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
            Cells::Runs(texts) => {
                runs = Some(texts_of(py, texts));
                None
            }
            Cells::Numbered { heads, numbers, .. } => {
                runs = Some(texts_of(py, heads));
                buffer(py, numbers)?
            }
        };
        Ok(Column {
            seen: column.seen,
            nulls: column.nulls,
            validity: column.validity.map_or(Ok(None), |bits| buffer(py, bits))?,
            offsets,
            data,
            left_out: buffer_of_some(py, column.left_out)?,
            lacking: buffer_of_some(py, column.lacking)?,
            runs,
        })
    }
}

fn buffer<T: Send + Sync + 'static>(py: Python, values: Vec<T>) -> PyResult<Option<Py<Buffer>>> {
    Py::new(py, Buffer::of(values)).map(Some)
}

/// As `buffer`, but None without values.
fn buffer_of_some<T: Send + Sync + 'static>(
    py: Python,
    values: Vec<T>,
) -> PyResult<Option<Py<Buffer>>> {
    if values.is_empty() {
        Ok(None)
    } else {
        buffer(py, values)
    }
}

fn texts_of(py: Python, runs: Runs) -> Vec<(usize, Option<Py<PyBytes>>)> {
    let text_of = |(row, text): Run| (row, text.map(|text| PyBytes::new(py, &text).unbind()));
    runs.runs.into_iter().map(text_of).collect()
}

/// The fields to read from JSON texts and their types; `spec` consists of nested tuples.
#[pyclass(module = "ingestd_native")]
pub struct Plan {
    plan: plan::Plan,
}

#[pymethods]
impl Plan {
    #[new]
    fn new(spec: &Bound<PyTuple>) -> PyResult<Self> {
        let root = spec::root(spec)?;
        Ok(Plan {
            plan: plan::Plan::new(root),
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
        let plan = &mut self.plan;
        let rows = texts.len()?;
        plan.start(rows);
        let matches = match texts.cast::<Texts>() {
            Ok(texts) => read_texts(py, plan, texts.get(), prefix, suffix)?,
            Err(_) => read_list(plan, texts.cast()?, prefix, suffix)?,
        };
        if !matches {
            return Ok(None);
        }
        match py.detach(|| plan.finish(rows)) {
            Ok(outputs) => into_python(py, outputs).map(Some),
            Err(Mismatch) => Ok(None),
        }
    }
}

/// Number of texts read at a time, so that the memory they touch fits the cache.
const BLOCK: usize = 512;

/// Whether all texts match. The slices of a block stay in the cache with their texts.
fn read_texts(
    py: Python,
    plan: &mut plan::Plan,
    texts: &Texts,
    prefix: &[u8],
    suffix: &[u8],
) -> PyResult<bool> {
    for start in (0..texts.len()).step_by(BLOCK) {
        let Some(slices) = texts.slices(start, texts.len().min(start + BLOCK)) else {
            return Err(PyTypeError::new_err("a text is missing"));
        };
        let read = py.detach(|| plan.read(start, &slices, prefix, suffix));
        if read.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all texts of a list match.
fn read_list(
    plan: &mut plan::Plan,
    texts: &Bound<PyList>,
    prefix: &[u8],
    suffix: &[u8],
) -> PyResult<bool> {
    let rows = texts.len();
    for start in (0..rows).step_by(BLOCK) {
        // A separate tuple: no text can be removed while it is read.
        let block = texts.get_slice(start, start + BLOCK).to_tuple();
        let objects = block.iter_borrowed().map(Borrowed::cast);
        let objects: Vec<Borrowed<PyBytes>> = objects.collect::<Result<_, _>>()?;
        let slices: Vec<&[u8]> = objects.iter().map(|text| text.as_bytes()).collect();
        let read = texts
            .py()
            .detach(|| plan.read(start, &slices, prefix, suffix));
        if read.is_err() || slices.len() != BLOCK.min(rows - start) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn into_python(py: Python<'_>, outputs: Outputs) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (path, output) in outputs {
        let column = match output {
            Output::Presence(presence, seen) => Column::of_numbers(py, presence, seen)?,
            Output::Counts(counts, seen) => Column::of_numbers(py, counts, seen)?,
            Output::Column(finished) => Column::of_cells(py, finished)?,
        };
        columns.set_item(PyTuple::new(py, path)?, Py::new(py, column)?)?;
    }
    Ok(columns)
}
