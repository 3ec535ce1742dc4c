//! The Python interface: classes and functions of the module `ingestd_native`.

mod arrow_array;
mod avro;
mod buffer;
mod column_functions;
mod kafka;
mod librdkafka;
mod plan;
mod protobuf;
mod records;
mod slices;
mod spec;
mod texts;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
mod ingestd_native {
    #[pymodule_export]
    use super::arrow_array::ArrowArray;
    #[pymodule_export]
    use super::avro::AvroReader;
    #[pymodule_export]
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::column_functions::{sha2_texts, sorted_among, take_texts, text_bounds};
    #[pymodule_export]
    use super::kafka::Consumer;
    #[pymodule_export]
    use super::plan::{Column, Plan};
    #[pymodule_export]
    use super::protobuf::ProtobufReader;
    #[pymodule_export]
    use super::records::Records;
    #[pymodule_export]
    use super::texts::Texts;

    #[pymodule_export]
    const KAFKA_FUNCTIONS: &[&str] = super::librdkafka::SYMBOLS;
    #[pymodule_export]
    const COLUMNS_FORMAT: u32 = 2;
    #[pymodule_export]
    const FORMAT: u32 = 7;
}
