//! The Python interface: readers of Protobuf messages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrow_array::{ArrowArray, buffer};
use super::buffer::Buffer;
use super::texts::with_slices;
use crate::protobuf::{Field, Kind, Message, Reader};

/// Structs of fields, residual messages, and a byte for each message.
type Messages = (Py<ArrowArray>, Py<ArrowArray>, Py<Buffer>);

/// A reader of the simple fields of Protobuf messages of one type.
#[pyclass(module = "ingestd_native")]
pub struct ProtobufReader {
    reader: Reader,
}

#[pymethods]
impl ProtobufReader {
    /// `fields` are tuples of number, type, whether repeated, whether absent values are null, and the
    /// index of their oneof or None; the type of an inner message is the list of its fields.
    /// `residual` are the numbers and oneofs of the fields that are not decoded.
    #[new]
    fn new(fields: Vec<Bound<PyAny>>, residual: Vec<(u64, Option<usize>)>) -> PyResult<Self> {
        let reader = Reader::new(message(&fields, residual)?);
        Ok(ProtobufReader { reader })
    }

    /// Returns structs with the fields in the order of their numbers, the residual messages, and a
    /// byte for each message: 1 if it must be decoded in another way, else 0. Returns None if the
    /// arrays are too large.
    ///
    /// `texts` is a list of bytes objects or `Texts`. The first `skip` bytes of each are ignored.
    /// Releases the GIL while reading.
    fn read(
        &mut self,
        py: Python,
        texts: &Bound<PyAny>,
        skip: usize,
    ) -> PyResult<Option<Messages>> {
        let reader = &mut self.reader;
        reader.start(texts.len()?);
        if with_slices(texts, |slices| reader.read(slices, skip))?.is_err() {
            return Ok(None);
        }
        let array = ArrowArray::of(py, &mut reader.array)?;
        let residual = ArrowArray::of(py, &mut reader.residual)?;
        let irregular = buffer(py, std::mem::take(&mut reader.irregular))?;
        Ok(Some((array, residual, irregular)))
    }
}

fn message(fields: &[Bound<PyAny>], residual: Vec<(u64, Option<usize>)>) -> PyResult<Message> {
    let fields = fields.iter().map(field).collect::<PyResult<_>>()?;
    Ok(Message::new(fields, residual))
}

fn field(spec: &Bound<PyAny>) -> PyResult<Field> {
    let (number, kind, repeated, presence, oneof): (_, Bound<PyAny>, _, _, _) = spec.extract()?;
    let kind = match kind.extract::<Vec<Bound<PyAny>>>() {
        Ok(fields) => Kind::Message(message(&fields, Vec::new())?),
        Err(_) => scalar(&kind.extract::<String>()?)?,
    };
    Ok(Field {
        number,
        kind,
        repeated,
        presence,
        oneof,
    })
}

fn scalar(name: &str) -> PyResult<Kind> {
    Ok(match name {
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "uint32" => Kind::Uint32,
        "uint64" => Kind::Uint64,
        "sint32" => Kind::Sint32,
        "sint64" => Kind::Sint64,
        "bool" => Kind::Bool,
        "fixed32" => Kind::Fixed32,
        "fixed64" => Kind::Fixed64,
        "sfixed32" => Kind::Sfixed32,
        "sfixed64" => Kind::Sfixed64,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        _ => return Err(PyValueError::new_err(format!("there is no type {name:?}"))),
    })
}
