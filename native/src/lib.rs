//! Read typed columns from many JSON texts.
//!
//! A plan defines the fields to read, their column types, and the structure that every text must
//! have. Reading many texts gives one set of buffers per column, in the layout of Arrow arrays. A
//! text that does not match the plan exactly ends the reading; the caller then decodes the texts in
//! Python. Nothing here depends on the meaning of the texts.

mod base64;
mod bitmap;
mod buffer;
mod cells;
mod column;
mod cursor;
mod fast_number;
mod kafka;
mod librdkafka;
mod node;
mod number;
mod object;
mod python;
mod records;
mod rows;
mod runs;
mod simd16;
mod skip;
mod slices;
mod sorted_lookup;
mod spec;
mod template;
mod text;
mod text_columns;
mod texts;
mod values;

#[cfg(target_endian = "big")]
compile_error!("Arrow buffers are little-endian, and so must the machine be");

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
mod ingestd_native {
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::python::{Column, Plan};

    #[pymodule_export]
    use crate::kafka::Consumer;
    #[pymodule_export]
    use crate::records::Records;
    #[pymodule_export]
    use crate::texts::Texts;

    #[pymodule_export]
    use crate::{sorted_lookup::sorted_among, text_columns::take_texts, text_columns::text_bounds};

    #[pymodule_export]
    const KAFKA_FUNCTIONS: &[&str] = crate::librdkafka::SYMBOLS;
    #[pymodule_export]
    const COLUMNS_FORMAT: u32 = 1;
    #[pymodule_export]
    const FORMAT: u32 = 4;
}
