//! Typed columns out of many JSON texts.
//!
//! A plan says which fields of the texts are wanted, in which form, and what every text must look
//! like. Reading many texts gives one buffer set a column, laid out as Arrow lays out its arrays.
//! A text that does not fit the plan to the letter ends the reading: what it means is decided
//! elsewhere. Nothing here knows what the texts are about.

mod among;
mod base64;
mod bitmap;
mod buffer;
mod cells;
mod column;
mod cursor;
mod kafka;
mod lane;
mod librdkafka;
mod node;
mod number;
mod object;
mod python;
mod records;
mod rows;
mod runs;
mod short;
mod skip;
mod slices;
mod spec;
mod text;
mod text_columns;
mod texts;
mod trail;
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
    use crate::{among::sorted_among, text_columns::take_texts, text_columns::text_bounds};

    #[pymodule_export]
    const KAFKA_FUNCTIONS: &[&str] = crate::librdkafka::SYMBOLS;
    #[pymodule_export]
    const COLUMNS_FORMAT: u32 = 1;
    #[pymodule_export]
    const FORMAT: u32 = 4;
}
