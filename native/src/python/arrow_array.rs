//! The Python interface: arrays of any nesting.

use pyo3::prelude::*;

use super::buffer::Buffer;
use crate::arrays::{Array, Values};

/// An Arrow array: its length, buffers and children in the order of Arrow, and number of nulls.
#[pyclass(frozen, get_all, module = "ingestd_native")]
pub struct ArrowArray {
    length: usize,
    nulls: usize,
    buffers: Vec<Option<Py<Buffer>>>,
    children: Vec<Py<ArrowArray>>,
}

impl ArrowArray {
    pub fn of(py: Python, array: &mut Array) -> PyResult<Py<Self>> {
        let (nulls, validity) = array.validity();
        let mut buffers = vec![validity.map(|bits| buffer(py, bits)).transpose()?];
        match &mut array.values {
            Values::Null | Values::Struct => {}
            Values::Boolean(bits) => {
                buffers.push(Some(buffer(py, std::mem::take(&mut bits.bytes))?));
            }
            Values::Int32(values) => buffers.push(Some(buffer(py, std::mem::take(values))?)),
            Values::Int64(values) => buffers.push(Some(buffer(py, std::mem::take(values))?)),
            Values::Float32(values) => buffers.push(Some(buffer(py, std::mem::take(values))?)),
            Values::Float64(values) => buffers.push(Some(buffer(py, std::mem::take(values))?)),
            Values::List(offsets) => buffers.push(Some(buffer(py, std::mem::take(offsets))?)),
            Values::Bytes(pieces) => {
                buffers.push(Some(buffer(py, std::mem::take(&mut pieces.offsets))?));
                buffers.push(Some(buffer(py, std::mem::take(&mut pieces.data))?));
            }
        }
        let children = array
            .children
            .iter_mut()
            .map(|child| ArrowArray::of(py, child));
        let children = children.collect::<PyResult<_>>()?;
        let (length, nulls) = (array.length, nulls);
        Py::new(
            py,
            ArrowArray {
                length,
                nulls,
                buffers,
                children,
            },
        )
    }
}

pub fn buffer<T: Send + Sync + 'static>(py: Python, values: Vec<T>) -> PyResult<Py<Buffer>> {
    Py::new(py, Buffer::of(values))
}
