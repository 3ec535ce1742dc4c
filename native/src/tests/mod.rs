//! Tests of the crate without Python: each compares with the simplest code that is right.

mod avro;
mod base64;
mod blocks;
mod columns;
mod hashes;
mod irregular;
mod layouts;
mod model;
mod numbers;
mod protobuf;
mod strings;
mod templates;
mod texts;

use proptest::test_runner::Config;

/// Number of cases of a property, or less for an interpreter that is a thousand times slower.
fn cases(count: u32) -> Config {
    let cases = if cfg!(miri) { 6 } else { count };
    Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    }
}
