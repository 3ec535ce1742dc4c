//! Read typed columns from many JSON texts, Avro or Protobuf messages.
//!
//! A plan defines the fields to read, their column types, and the structure that every text must
//! have. Reading many texts gives one set of buffers per column, in the layout of Arrow arrays. A
//! text that does not match the plan exactly ends the reading; the caller then decodes the texts in
//! Python. Nothing here depends on the meaning of the texts. `avro` and `protobuf` read other
//! encodings, into the nested arrays of `arrays`.
//!
//! Everything that needs Python is in `python`, a feature that is on by default: the rest is
//! tested without an interpreter.

#![cfg_attr(
    not(feature = "python"),
    allow(dead_code, reason = "Python is the caller")
)]

mod arrays;
mod avro;
mod base64;
mod bitmap;
mod cells;
mod column;
mod cursor;
mod fast_number;
mod hashes;
mod node;
mod number;
mod object;
mod plan;
mod protobuf;
#[cfg(feature = "python")]
mod python;
mod rows;
mod runs;
mod shared_texts;
mod simd16;
mod skip;
mod sorted_lookup;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod text_columns;
mod values;

#[cfg(target_endian = "big")]
compile_error!("Arrow buffers are little-endian, and so must the machine be");
