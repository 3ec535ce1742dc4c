//! Text columns, sorted lookups, bitmaps and shared texts, each as the obvious code would do it.

use std::sync::Arc;

use proptest::prelude::*;

use super::cases;
use crate::bitmap::{Absent, Bitmap};
use crate::shared_texts::{SharedTexts, Text};
use crate::sorted_lookup::contains_sorted;
use crate::text_columns::{ColumnError, TextColumn, bounds, take};

type Texts = Vec<Option<Vec<u8>>>;

fn texts() -> impl Strategy<Value = Texts> {
    let bytes = prop_oneof![
        "[ab\0]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..100),
    ];
    prop::collection::vec(prop::option::weighted(0.8, bytes), 1..40)
}

/// Buffers of a column in the layout of Arrow, with rows before the first.
struct Column {
    offsets: Vec<i32>,
    data: Vec<u8>,
    validity: Vec<u8>,
    first: usize,
}

impl Column {
    fn of(texts: &[Option<Vec<u8>>], first: usize) -> Self {
        let mut column = Column {
            offsets: vec![3; first + 1],
            data: b"abc".to_vec(),
            validity: vec![0; (first + texts.len()).div_ceil(8)],
            first,
        };
        for (row, text) in texts.iter().enumerate() {
            let at = first + row;
            column.validity[at / 8] |= u8::from(text.is_some()) << (at % 8);
            // A null may have bytes, which do not count.
            column.data.extend(text.as_deref().unwrap_or(b"null"));
            column.offsets.push(column.data.len() as i32);
        }
        column
    }

    fn view(&self, has_nulls: bool) -> TextColumn<'_> {
        TextColumn {
            offsets: &self.offsets,
            data: &self.data,
            validity: has_nulls.then_some(&self.validity),
            first: self.first,
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn rows_of_a_text_column_are_taken(
        texts in texts(), first in 0_usize..20,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
    ) {
        let has_nulls = texts.contains(&None);
        let column = Column::of(&texts, first);
        let rows: Vec<usize> = picks.iter().map(|pick| pick.index(texts.len())).collect();
        let indices: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let expected: Texts = rows.iter().map(|&row| texts[row].clone()).collect();
        let taken = take(&column.view(has_nulls), &indices);
        let Ok(taken) = taken else { return Err(TestCaseError::fail("a row is missing")) };
        prop_assert_eq!(taken.nulls, expected.iter().filter(|text| text.is_none()).count());
        prop_assert_eq!(taken.validity.is_some(), taken.nulls > 0);
        for (row, text) in expected.iter().enumerate() {
            let range = taken.offsets[row] as usize..taken.offsets[row + 1] as usize;
            prop_assert_eq!(&taken.data[range], text.as_deref().unwrap_or_default());
            let bits = taken.validity.as_ref();
            let is_valid = bits.is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
            prop_assert_eq!(is_valid, text.is_some());
        }
        prop_assert_eq!(taken.data.len(), taken.offsets[rows.len()] as usize);
    }

    #[test]
    fn bounds_are_the_first_of_the_smallest_and_largest_texts(
        texts in texts(), first in 0_usize..20,
    ) {
        let column = Column::of(&texts, first);
        let valid = || texts.iter().enumerate().filter_map(|(row, text)| Some((text.as_ref()?, row)));
        let smallest = valid().min().map(|(_, row)| row);
        let largest = valid().rev().max_by_key(|(text, _)| *text).map(|(_, row)| row);
        prop_assert_eq!(bounds(&column.view(true), texts.len()), Ok(smallest.zip(largest)));
    }

    #[test]
    fn irregular_columns_are_an_error_and_never_a_panic(
        offsets in prop::collection::vec(-2..12_i32, 0..6), first in prop_oneof![0..4_usize, Just(usize::MAX)],
        data in prop::collection::vec(any::<u8>(), 0..10), row in -2..8_i64,
        validity in prop::option::of(prop::collection::vec(any::<u8>(), 0..2)),
    ) {
        let column = TextColumn { offsets: &offsets, data: &data, validity: validity.as_deref(), first };
        let range = usize::try_from(row).ok().and_then(|row| {
            let at = first.checked_add(row)?;
            let (start, end) = (*offsets.get(at)?, *offsets.get(at + 1)?);
            (0 <= start && start <= end && end as usize <= data.len()).then_some(())
        });
        prop_assert_eq!(take(&column, &[row]).map(|_| ()), range.ok_or(ColumnError::Row));
        let _ = bounds(&column, row.unsigned_abs() as usize);
    }

    #[test]
    fn sorted_numbers_are_found_as_in_a_set(
        mut numbers in prop::collection::vec(-60..60_i32, 0..60),
        mut known in prop::collection::vec(prop_oneof![-60..60_i32, any::<i32>()], 0..300),
    ) {
        numbers.sort_unstable();
        known.sort_unstable();
        let expected: Vec<u8> = numbers.iter().map(|it| u8::from(known.contains(it))).collect();
        prop_assert_eq!(contains_sorted(&numbers, &known), expected);
    }

    #[test]
    fn bits_of_null_ranges_are_clear_and_all_others_set(
        ranges in prop::collection::vec((0..40_usize, 0..40_usize), 0..8), after in 0..30_usize,
    ) {
        let (mut absent, mut cells) = (Absent::default(), Vec::new());
        for (valid, null) in ranges {
            cells.extend(vec![true; valid]);
            if null > 0 {
                absent.add(cells.len(), null);
            }
            cells.extend(vec![false; null]);
        }
        cells.extend(vec![true; after]);
        let mut bits = Bitmap::default();
        for &cell in &cells {
            bits.push(cell);
        }
        let expected = cells.contains(&false).then_some(bits.bytes);
        prop_assert_eq!(absent.validity(cells.len()), expected);
    }

    #[test]
    fn shared_texts_outlive_the_sequences_that_they_are_from(
        left in texts(), right in texts(), range in (0..40_usize, 0..40_usize),
    ) {
        let shared = |texts: &Texts| {
            SharedTexts::copied(&texts.iter().map(Option::as_deref).collect::<Vec<_>>())
        };
        let joined = SharedTexts::join([shared(&left), shared(&right)].iter());
        let all = [left, right].concat();
        let read = |texts: &SharedTexts| -> Texts {
            texts.iter().map(|text| text.map(<[u8]>::to_vec)).collect()
        };
        prop_assert_eq!(read(&joined), all.clone());
        let (start, stop) = (range.0.min(all.len()), range.1.min(all.len()));
        let (start, stop) = (start.min(stop), stop.max(start));
        let indices: Vec<usize> = (0..all.len()).rev().step_by(3).collect();
        let (slice, picked) = (joined.range(start, stop), joined.pick(&indices));
        drop(joined);
        prop_assert_eq!(read(&slice), all[start..stop].to_vec());
        prop_assert_eq!(read(&picked), indices.iter().map(|&at| all[at].clone()).collect::<Texts>());
        let slices = slice.slices(0, slice.len());
        prop_assert_eq!(slices.is_none(), all[start..stop].contains(&None));
    }
}

#[test]
fn a_range_holds_only_the_memory_of_its_own_texts() {
    let memory = |text: &[u8]| {
        let owner = Arc::new(text.to_vec());
        let texts: Vec<Text> = vec![Some(owner.as_slice())];
        // SAFETY: the vector is not changed.
        let shared = unsafe { SharedTexts::new(texts, owner.clone()) };
        (shared, Arc::downgrade(&owner))
    };
    let ((one, first), (two, second)) = (memory(b"first"), memory(b"second"));
    let joined = SharedTexts::join([one, two].iter());
    let range = joined.range(1, 2);
    drop(joined);
    assert!(first.upgrade().is_none() && second.upgrade().is_some());
    assert_eq!(range.get(0), Some(&b"second"[..]));
    drop(range);
    assert!(second.upgrade().is_none());
}
