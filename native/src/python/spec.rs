//! Parse plans, which Python passes as tuples.
//!
//! An object is `("object", nullable, closed, fields)`, a field `(name, required, node)`. Other
//! nodes: `("rows", object)`, which is an array, `("literal", json)`, `("null",)`, and columns,
//! whose tuples are parsed in `column`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bitmap::Bitmap;
use crate::cells::{Cells, Pieces, Range};
use crate::column::Column;
use crate::cursor::FixedText;
use crate::node::Node;
use crate::object::{Field, Object};
use crate::rows::Rows;
use crate::runs::Runs;

/// An object: the plan of whole texts, and of rows in them.
pub fn root(spec: &Bound<PyTuple>) -> PyResult<Object> {
    match node(spec)? {
        Node::Object(object) => Ok(*object),
        _ => Err(PyValueError::new_err(
            "a plan, and each row in it, is an object",
        )),
    }
}

fn node(spec: &Bound<PyTuple>) -> PyResult<Node> {
    let kind: String = spec.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "object" => {
            let (_, nullable, closed, fields): (String, bool, bool, Vec<Bound<PyTuple>>) =
                spec.extract()?;
            let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
            Node::Object(Box::new(Object::new(nullable, closed, fields)))
        }
        "rows" => {
            let (_, inner): (String, Bound<PyTuple>) = spec.extract()?;
            Node::Rows(Box::new(Rows::new(root(&inner)?)))
        }
        "literal" => {
            let (_, json): (String, Vec<u8>) = spec.extract()?;
            Node::Literal(Box::new(FixedText::new(json)))
        }
        "null" => Node::Null,
        _ => column(&kind, spec)?,
    })
}

fn field(spec: &Bound<PyTuple>) -> PyResult<Field> {
    let (name, required, inner): (String, bool, Bound<PyTuple>) = spec.extract()?;
    Ok(Field::new(name.into_bytes(), required, node(&inner)?))
}

fn column(kind: &str, spec: &Bound<PyTuple>) -> PyResult<Node> {
    let mut placeholders = Vec::new();
    let cells = match kind {
        "integer" => integers(spec)?,
        "float" => {
            let (_, bits, special): (String, u32, bool) = spec.extract()?;
            match bits {
                32 => Cells::Float32(special, Vec::new()),
                64 => Cells::Float64(special, Vec::new()),
                _ => return Err(PyValueError::new_err(format!("no float has {bits} bits"))),
            }
        }
        "boolean" => Cells::Boolean(Bitmap::default()),
        "text" | "base64" | "unscaled" => {
            let (_, texts): (String, Vec<String>) = spec.extract()?;
            placeholders = texts.into_iter().map(String::into_bytes).collect();
            match kind {
                "text" => Cells::Text(Pieces::default()),
                "base64" => Cells::Base64(Pieces::default()),
                _ => Cells::Unscaled(Vec::new()),
            }
        }
        "decimal" => {
            let (_, precision, scale): (String, u32, u32) = spec.extract()?;
            if precision > 38 || scale > precision {
                return Err(PyValueError::new_err("a decimal has at most 38 digits"));
            }
            Cells::Decimal {
                precision,
                scale,
                values: Vec::new(),
            }
        }
        "choice" => {
            let (_, texts): (String, Vec<Vec<u8>>) = spec.extract()?;
            if texts.len() > 255 || texts.iter().any(Vec::is_empty) {
                return Err(PyValueError::new_err("a choice is among 255 texts at most"));
            }
            Cells::Choice(texts.into_iter().map(FixedText::new).collect(), Vec::new())
        }
        "numbered" => {
            let (_, separator, longest): (String, String, usize) = spec.extract()?;
            let (heads, numbers) = (Runs::default(), Vec::new());
            match separator.as_bytes() {
                [] => Cells::Numbered {
                    separator: None,
                    longest,
                    heads,
                    numbers,
                },
                [separator] if separator.is_ascii_punctuation() => Cells::Numbered {
                    separator: Some(*separator),
                    longest,
                    heads,
                    numbers,
                },
                _ => return Err(PyValueError::new_err("a separator is one mark of ASCII")),
            }
        }
        "raw" => Cells::Raw(Pieces::default()),
        "runs" => Cells::Runs(Runs::default()),
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no column {kind:?}"
            )));
        }
    };
    Ok(Node::Column(Box::new(Column::new(cells, placeholders))))
}

fn integers(spec: &Bound<PyTuple>) -> PyResult<Cells> {
    let (_, bits, divisor, low, high): (String, u32, i64, i64, i64) = spec.extract()?;
    let range = Range { divisor, low, high };
    if divisor < 1 || bits > 64 || low < i64::MIN >> (64 - bits) || high > i64::MAX >> (64 - bits) {
        return Err(PyValueError::new_err("integers do not fit their bits"));
    }
    Ok(match bits {
        8 => Cells::Int8(range, Vec::new()),
        16 => Cells::Int16(range, Vec::new()),
        32 => Cells::Int32(range, Vec::new()),
        64 => Cells::Int64(range, Vec::new()),
        _ => return Err(PyValueError::new_err(format!("no integer has {bits} bits"))),
    })
}
