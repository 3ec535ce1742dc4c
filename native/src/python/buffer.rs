//! Memory filled by Rust that Python reads without a copy.

use std::any::Any;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A block of memory with the buffer protocol.
#[pyclass(frozen, module = "ingestd_native")]
pub struct Buffer {
    /// Keeps the memory: a vector.
    _owner: Box<dyn Any + Send + Sync>,
    /// Written once. Rust does not read the memory again; as with any array, Python code that
    /// writes to it must consider other readers.
    address: AtomicPtr<u8>,
    length: usize,
}

impl Buffer {
    pub fn of<T: Send + Sync + 'static>(mut values: Vec<T>) -> Self {
        if values.capacity() / 2 > values.len() {
            values.shrink_to_fit();
        }
        let address = AtomicPtr::new(values.as_mut_ptr().cast());
        let length = std::mem::size_of_val(values.as_slice());
        Buffer {
            _owner: Box::new(values),
            address,
            length,
        }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.length
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let this = slf.get();
        // SAFETY: the view is valid, and keeps this object and so the memory alive.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.address.load(Ordering::Relaxed).cast(),
                this.length as ffi::Py_ssize_t,
                0,
                flags,
            )
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}
