//! Sorted numbers looked up in other sorted numbers.

use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::slices::Items;

/// For each of some ascending numbers 1 if it is among others that ascend, else 0.
///
/// A search begins where the last one ended and doubles its steps, so that it costs the logarithm
/// of the distance between two numbers, and where numbers are as dense as the others nearly nothing.
fn among(numbers: &[i32], known: &[i32]) -> Vec<u8> {
    let mut marks = vec![0; numbers.len()];
    let mut at = 0;
    for (mark, &number) in marks.iter_mut().zip(numbers) {
        at = lower_bound(known, at, number);
        match known.get(at) {
            None => break,
            Some(&found) => *mark = u8::from(found == number),
        }
    }
    marks
}

/// The first place from `at` on whose number is not below `number`.
#[inline]
fn lower_bound(known: &[i32], mut at: usize, number: i32) -> usize {
    let mut step = 1;
    while let Some(&found) = known.get(at + step - 1) {
        if found >= number {
            break;
        }
        at += step;
        step *= 2;
    }
    // Everything before `at` is below; what `step` reaches is not, or is behind the end.
    let end = (at + step - 1).min(known.len());
    at + known[at..end].partition_point(|&found| found < number)
}

/// Which of some sorted 32-bit integers are in a sorted array: a byte, 0 or 1, for each.
///
/// Of integers that are not sorted some may not be found. Other threads run meanwhile.
#[pyfunction]
pub fn sorted_among(
    py: Python<'_>,
    numbers: &Bound<'_, PyAny>,
    known: &Bound<'_, PyAny>,
) -> PyResult<Py<Buffer>> {
    let (numbers, known) = (Items::<i32>::of(numbers)?, Items::<i32>::of(known)?);
    let (numbers, known) = (numbers.slice(), known.slice());
    Py::new(py, Buffer::of(py.detach(|| among(numbers, known))))
}
