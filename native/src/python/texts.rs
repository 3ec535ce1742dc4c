//! Texts in memory without an object for each; objects are created on access.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyType};
use pyo3::{Borrowed, IntoPyObjectExt};

use super::buffer::Buffer;
use crate::shared_texts::{SharedTexts, Text};

/// A sequence of bytes objects or None; each object is created on access.
///
/// It is pickled as a list.
#[pyclass(frozen, sequence, module = "ingestd_native")]
pub struct Texts {
    texts: SharedTexts,
}

impl Texts {
    pub fn new(texts: SharedTexts) -> Self {
        Texts { texts }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the texts of a range of indices; None if one of them is missing.
    pub fn slices(&self, start: usize, stop: usize) -> Option<Vec<&[u8]>> {
        self.texts.slices(start, stop)
    }

    fn pick(&self, indices: impl Iterator<Item = isize>) -> PyResult<Self> {
        let indices: Vec<usize> = indices
            .map(|index| self.checked(index))
            .collect::<PyResult<_>>()?;
        Ok(Texts::new(self.texts.pick(&indices)))
    }

    /// Returns an index from the start. Raises IndexError outside of the sequence.
    fn checked(&self, index: isize) -> PyResult<usize> {
        let from_start = if index < 0 {
            self.len().checked_sub(index.unsigned_abs())
        } else {
            Some(index.unsigned_abs())
        };
        from_start
            .filter(|&index| index < self.len())
            .ok_or_else(|| PyIndexError::new_err("there is no text at this index"))
    }

    fn equals(&self, other: &Bound<PyAny>) -> PyResult<bool> {
        if let Ok(other) = other.cast::<Texts>() {
            return Ok(self.texts.iter().eq(other.get().texts.iter()));
        }
        let other = other.cast::<PyList>()?;
        if self.len() != other.len() {
            return Ok(false);
        }
        for (text, item) in self.texts.iter().zip(other) {
            if !object(item.py(), text).into_pyobject(item.py())?.eq(item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Calls a function, without the GIL, with the bytes of a list of bytes objects or of `Texts`.
pub fn with_slices<R: Send>(
    texts: &Bound<PyAny>,
    function: impl FnOnce(&[&[u8]]) -> R + Send,
) -> PyResult<R> {
    let py = texts.py();
    if let Ok(texts) = texts.cast::<Texts>() {
        let texts = texts.get();
        let slices = texts.slices(0, texts.len());
        let slices = slices.ok_or_else(|| PyTypeError::new_err("a text is missing"))?;
        return Ok(py.detach(|| function(&slices)));
    }
    // A separate tuple: no text can be removed while it is read.
    let objects = texts.cast::<PyList>()?.to_tuple();
    let objects = objects.iter_borrowed().map(Borrowed::cast);
    let objects: Vec<Borrowed<PyBytes>> = objects.collect::<Result<_, _>>()?;
    let slices: Vec<&[u8]> = objects.iter().map(|text| text.as_bytes()).collect();
    Ok(py.detach(|| function(&slices)))
}

fn object<'py>(py: Python<'py>, text: Text) -> Option<Bound<'py, PyBytes>> {
    text.map(|text| PyBytes::new(py, text))
}

#[pymethods]
impl Texts {
    /// Copies the texts of a list.
    #[new]
    fn of(texts: Vec<Option<Bound<PyBytes>>>) -> Self {
        let texts: Vec<Text> = texts
            .iter()
            .map(|text| text.as_ref().map(pyo3::types::PyBytesMethods::as_bytes))
            .collect();
        Texts::new(SharedTexts::copied(&texts))
    }

    /// Concatenates several sequences.
    #[classmethod]
    fn join(_: &Bound<PyType>, sequences: Vec<Bound<Texts>>) -> Self {
        let shared = sequences.iter().map(|sequence| &sequence.get().texts);
        Texts::new(SharedTexts::join(shared))
    }

    /// Returns the texts at some indices, which are 64-bit integers in a buffer.
    fn take(&self, indices: PyBuffer<i64>, py: Python) -> PyResult<Self> {
        let indices = indices.to_vec(py)?;
        self.pick(indices.into_iter().map(|index| index as isize))
    }

    /// Returns the length of each text as 64-bit integers; -1 for None.
    #[getter]
    fn lengths(&self) -> Buffer {
        let length_of = |text: Text| text.map_or(-1, |text| text.len() as i64);
        Buffer::of::<i64>(self.texts.iter().map(length_of).collect())
    }

    /// Returns the first bytes, at most `size`, if all texts that are present have the same.
    fn shared_head<'py>(&self, py: Python<'py>, size: usize) -> Option<Bound<'py, PyBytes>> {
        let mut heads = self
            .texts
            .iter()
            .flatten()
            .map(|text| &text[..size.min(text.len())]);
        let first = heads.next()?;
        heads
            .all(|head| head == first)
            .then(|| PyBytes::new(py, first))
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let Ok(slice) = index.cast::<PySlice>() else {
            let index = self.checked(index.extract()?)?;
            return object(py, self.texts.get(index)).into_bound_py_any(py);
        };
        let at = slice.indices(self.len() as isize)?;
        let selected = if at.step == 1 {
            let stop = at.stop.max(at.start) as usize;
            Texts::new(self.texts.range(at.start as usize, stop))
        } else {
            self.pick((0..at.slicelength as isize).map(|n| at.start + n * at.step))?
        };
        selected.into_bound_py_any(py)
    }

    fn __contains__(&self, text: Option<&Bound<PyBytes>>) -> bool {
        self.count(text) > 0
    }

    /// Counts the texts that are equal to this one, or None.
    fn count(&self, text: Option<&Bound<PyBytes>>) -> usize {
        let wanted = text.map(pyo3::types::PyBytesMethods::as_bytes);
        self.texts.iter().filter(|&text| text == wanted).count()
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        if other.is_instance_of::<Texts>() || other.is_instance_of::<PyList>() {
            self.equals(other)?.into_bound_py_any(py)
        } else {
            Ok(py.NotImplemented().into_bound(py))
        }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyList>,))> {
        let objects: Vec<_> = self.texts.iter().map(|text| object(py, text)).collect();
        Ok((py.get_type::<PyList>(), (PyList::new(py, objects)?,)))
    }
}
