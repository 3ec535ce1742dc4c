//! Texts in memory without an object for each; objects are created on access.

use std::any::Any;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyType};

use crate::buffer::Buffer;

/// The owner of the memory of texts, which is freed with the last holder.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// The address and length of a text; its owner is stored separately.
#[derive(Clone, Copy)]
pub struct Span {
    /// A null pointer if there is no text.
    start: *const u8,
    length: usize,
}

// SAFETY: the memory after a span does not change while its owner lives.
unsafe impl Send for Span {}
unsafe impl Sync for Span {}

impl Span {
    /// A span of bytes at an address, which is null if there is no text.
    pub fn new(start: *const u8, length: usize) -> Self {
        Span { start, length }
    }

    /// Returns the bytes, None without a text.
    ///
    /// # Safety
    /// The owner of the memory must outlive the returned slice.
    unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        match self.start.is_null() {
            true => None,
            // SAFETY: the creator of the span guarantees this much memory.
            false => Some(unsafe { std::slice::from_raw_parts(self.start, self.length) }),
        }
    }
}

/// A sequence of bytes objects or None; each object is created on access.
///
/// It is pickled as a list.
#[pyclass(frozen, sequence, module = "ingestd_native")]
pub struct Texts {
    spans: Vec<Span>,
    /// Owners, each with the index after the last text that it may own.
    owners: Vec<(usize, Owner)>,
}

impl Texts {
    pub fn new(spans: Vec<Span>, owner: Owner) -> Self {
        let owners = vec![(spans.len(), owner)];
        Texts { spans, owners }
    }

    /// Copies texts into new contiguous memory.
    ///
    /// # Safety
    /// The owners of the spans' memory must live during the call.
    pub unsafe fn copied(texts: &[Span]) -> Self {
        let there = |one: &Span| !one.start.is_null();
        let size = texts
            .iter()
            .filter(|one| there(one))
            .map(|one| one.length)
            .sum();
        let mut memory: Vec<u8> = Vec::with_capacity(size);
        let mut spans = Vec::with_capacity(texts.len());
        for &text in texts {
            let start = memory.len();
            // SAFETY: the caller's promise.
            let Some(bytes) = (unsafe { text.bytes() }) else {
                spans.push(text);
                continue;
            };
            memory.extend_from_slice(bytes);
            // SAFETY: the capacity suffices for all of them, so that none is moved.
            spans.push(Span::new(
                unsafe { memory.as_ptr().add(start) },
                text.length,
            ));
        }
        Texts::new(spans, Arc::new(memory))
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the texts at some indices; None if one of them is missing.
    pub fn slices(&self, start: usize, stop: usize) -> Option<Vec<&[u8]>> {
        let spans = &self.spans[start..stop];
        // SAFETY: the owners are kept at least as long as this object is borrowed.
        spans.iter().map(|one| unsafe { one.bytes() }).collect()
    }

    fn text(&self, place: usize) -> Option<&[u8]> {
        // SAFETY: as above.
        unsafe { self.spans[place].bytes() }
    }

    /// Returns the texts of a range of indices, with only their owners.
    fn part(&self, start: usize, stop: usize) -> Self {
        let mut owners = Vec::new();
        let mut first = 0;
        for (end, owner) in &self.owners {
            if first < stop && *end > start {
                owners.push(((*end).min(stop) - start, owner.clone()));
            }
            first = *end;
        }
        Texts {
            spans: self.spans[start..stop].to_vec(),
            owners,
        }
    }

    fn picked(&self, places: impl Iterator<Item = isize>) -> PyResult<Self> {
        let spans = places
            .map(|place| Ok(self.spans[self.place(place)?]))
            .collect::<PyResult<Vec<_>>>()?;
        let owners: Vec<Owner> = self.owners.iter().map(|(_, owner)| owner.clone()).collect();
        Ok(Texts::new(spans, Arc::new(owners)))
    }

    fn place(&self, index: isize) -> PyResult<usize> {
        let length = self.spans.len();
        let place = match index < 0 {
            true => length.checked_sub(index.unsigned_abs()),
            false => Some(index.unsigned_abs()),
        };
        place
            .filter(|&place| place < length)
            .ok_or_else(|| PyIndexError::new_err("there is no text at this place"))
    }

    fn object<'py>(&self, py: Python<'py>, place: usize) -> Option<Bound<'py, PyBytes>> {
        self.text(place).map(|text| PyBytes::new(py, text))
    }

    fn same_as(&self, other: &Bound<PyAny>) -> PyResult<bool> {
        if let Ok(other) = other.cast::<Texts>() {
            let other = other.get();
            let same = |place| self.text(place) == other.text(place);
            return Ok(self.len() == other.len() && (0..self.len()).all(same));
        }
        let other = other.cast::<PyList>()?;
        if self.len() != other.len() {
            return Ok(false);
        }
        for (place, one) in other.iter().enumerate() {
            if !self
                .object(other.py(), place)
                .into_pyobject(other.py())?
                .eq(one)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[pymethods]
impl Texts {
    /// Copies the texts of a list.
    #[new]
    fn of(texts: Vec<Option<Bound<PyBytes>>>) -> Self {
        let span_of = |text: &Option<Bound<PyBytes>>| match text {
            Some(text) => Span::new(text.as_bytes().as_ptr(), text.as_bytes().len()),
            None => Span::new(std::ptr::null(), 0),
        };
        let spans: Vec<Span> = texts.iter().map(span_of).collect();
        // SAFETY: the objects live during the call.
        unsafe { Texts::copied(&spans) }
    }

    /// Concatenates several sequences.
    #[classmethod]
    fn join(_: &Bound<PyType>, parts: Vec<Bound<Texts>>) -> Self {
        let count = parts.iter().map(|part| part.get().len()).sum();
        let mut spans = Vec::with_capacity(count);
        let mut owners = Vec::new();
        for part in &parts {
            let part = part.get();
            let start = spans.len();
            spans.extend_from_slice(&part.spans);
            let later = |(end, owner): &(usize, Owner)| (start + end, owner.clone());
            owners.extend(part.owners.iter().map(later));
        }
        Texts { spans, owners }
    }

    /// Returns the texts at some indices, which are 64-bit integers in a buffer.
    fn take(&self, places: PyBuffer<i64>, py: Python) -> PyResult<Self> {
        let places = places.to_vec(py)?;
        self.picked(places.into_iter().map(|place| place as isize))
    }

    /// Returns the length of each text as 64-bit integers; -1 for None.
    #[getter]
    fn lengths(&self) -> Buffer {
        let length_of = |one: &Span| match one.start.is_null() {
            true => -1,
            false => one.length as i64,
        };
        Buffer::of::<i64>(self.spans.iter().map(length_of).collect())
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let Ok(slice) = index.cast::<PySlice>() else {
            let place = self.place(index.extract()?)?;
            return self.object(py, place).into_bound_py_any(py);
        };
        let at = slice.indices(self.len() as isize)?;
        let part = match at.step {
            1 => self.part(at.start as usize, at.stop.max(at.start) as usize),
            _ => self.picked((0..at.slicelength as isize).map(|n| at.start + n * at.step))?,
        };
        part.into_bound_py_any(py)
    }

    fn __contains__(&self, text: Option<&Bound<PyBytes>>) -> bool {
        self.count(text) > 0
    }

    /// Counts the texts that are equal to this one, or None.
    fn count(&self, text: Option<&Bound<PyBytes>>) -> usize {
        let wanted = text.map(|text| text.as_bytes());
        (0..self.len())
            .filter(|&place| self.text(place) == wanted)
            .count()
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match other.is_instance_of::<Texts>() || other.is_instance_of::<PyList>() {
            true => self.same_as(other)?.into_bound_py_any(py),
            false => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyList>,))> {
        let texts = PyList::new(py, (0..self.len()).map(|place| self.object(py, place)))?;
        Ok((py.get_type::<PyList>(), (texts,)))
    }
}
