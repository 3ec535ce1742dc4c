//! Look up sorted numbers in other sorted numbers.

/// Returns for each of some ascending numbers 1 if it is among other ascending ones, else 0.
///
/// A search begins where the last one ended and doubles its steps, so its cost is logarithmic in the
/// distance between two numbers, and close to zero where numbers are as dense as the others.
pub fn contains_sorted(numbers: &[i32], known: &[i32]) -> Vec<u8> {
    let mut flags = vec![0; numbers.len()];
    let mut at = 0;
    for (flag, &number) in flags.iter_mut().zip(numbers) {
        at = lower_bound(known, at, number);
        match known.get(at) {
            None => break,
            Some(&next) => *flag = u8::from(next == number),
        }
    }
    flags
}

/// Returns the first index from `at` on whose number is not below `number`.
#[inline]
fn lower_bound(known: &[i32], mut at: usize, number: i32) -> usize {
    let mut step = 1;
    while let Some(&far) = known.get(at + step - 1) {
        if far >= number {
            break;
        }
        at += step;
        step *= 2;
    }
    // Everything before `at` is below; what `step` reaches is not, or is beyond the end.
    let end = (at + step - 1).min(known.len());
    at + known[at..end].partition_point(|&other| other < number)
}
