//! The Python interface: readers of Avro messages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arrow_array::{ArrowArray, buffer};
use super::buffer::Buffer;
use super::texts::with_slices;
use crate::avro::{Items, Node, Reader};

/// A reader of Avro messages with one writer schema, given as nested tuples.
#[pyclass(module = "ingestd_native")]
pub struct AvroReader {
    reader: Reader,
}

#[pymethods]
impl AvroReader {
    /// Raises ValueError if a requested field contains a union other than with null.
    #[new]
    fn new(spec: &Bound<PyTuple>) -> PyResult<Self> {
        match Reader::new(node(spec)?) {
            Some(reader) => Ok(AvroReader { reader }),
            None => Err(PyValueError::new_err("a union is requested")),
        }
    }

    /// Returns the records as an array, and a byte for each message: 0, 1 if it does not match the
    /// schema, or 2 if it has more cells than its budget. Returns None if the array is too large.
    ///
    /// `texts` is a list of bytes objects or `Texts`. The first `skip` bytes of each are ignored.
    /// Releases the GIL while reading.
    fn read(
        &mut self,
        py: Python,
        texts: &Bound<PyAny>,
        skip: usize,
        least: i64,
        per_byte: i64,
    ) -> PyResult<Option<(Py<ArrowArray>, Py<Buffer>)>> {
        let reader = &mut self.reader;
        reader.start(texts.len()?);
        if with_slices(texts, |slices| reader.read(slices, skip, least, per_byte))?.is_err() {
            return Ok(None);
        }
        let array = ArrowArray::of(py, &mut reader.array)?;
        let invalid = buffer(py, std::mem::take(&mut reader.invalid))?;
        Ok(Some((array, invalid)))
    }
}

/// Parses a type: a tuple of its name and what the name requires.
fn node(spec: &Bound<PyTuple>) -> PyResult<Node> {
    let kind: String = spec.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "null" => Node::Null,
        "boolean" => Node::Boolean,
        "int" => Node::Int,
        "long" => Node::Long,
        "float" => Node::Float,
        "double" => Node::Double,
        "bytes" => Node::Bytes,
        "string" => Node::Text,
        "fixed" => Node::Fixed(spec.get_item(1)?.extract()?),
        "enum" => {
            let symbols: Vec<String> = spec.get_item(1)?.extract()?;
            Node::Enum(symbols.into_iter().map(String::into_bytes).collect())
        }
        "nullable" => {
            let (_, null_at, inner): (String, usize, Bound<PyTuple>) = spec.extract()?;
            Node::Nullable(null_at == 0, Box::new(node(&inner)?))
        }
        "union" => {
            let branches: Vec<Bound<PyTuple>> = spec.get_item(1)?.extract()?;
            Node::Union(branches.iter().map(node).collect::<PyResult<_>>()?)
        }
        "record" => {
            let fields: Vec<(bool, Bound<PyTuple>)> = spec.get_item(1)?.extract()?;
            let fields = fields
                .iter()
                .map(|(requested, field)| Ok((*requested, node(field)?)));
            Node::Record(fields.collect::<PyResult<_>>()?)
        }
        "items" => {
            let (_, cells, empty, item): (String, i64, bool, Bound<PyTuple>) = spec.extract()?;
            if cells < 1 {
                return Err(PyValueError::new_err("an item has at least one cell"));
            }
            let item = node(&item)?;
            Node::Items(Box::new(Items { item, cells, empty }))
        }
        _ => return Err(PyValueError::new_err(format!("there is no type {kind:?}"))),
    })
}
