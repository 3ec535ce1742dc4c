//! Python arrays (numpy arrays or other objects with the buffer protocol) as slices.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An array that Python keeps alive as long as this object.
pub struct Items<T: Element>(PyBuffer<T>);

impl<T: Element> Items<T> {
    /// Raises ValueError for items that are not contiguous.
    pub fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<T>::get(array)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("an array with gaps"));
        }
        Ok(Items(buffer))
    }

    /// The items; the owner must not write to them meanwhile.
    pub fn slice(&self) -> &[T] {
        let count = self.0.item_count();
        if count == 0 {
            return &[];
        }
        // SAFETY: contiguous items of that type, which the buffer keeps.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<T>(), count) }
    }
}
