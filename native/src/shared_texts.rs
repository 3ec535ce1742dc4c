//! Sequences of texts in memory that several sequences share.

use std::any::Any;
use std::sync::Arc;

/// The owner of the memory of texts, which is freed with the last holder.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// The bytes of a text; None if it is missing.
pub type Text<'a> = Option<&'a [u8]>;

/// Texts, and the owners of their memory.
pub struct SharedTexts {
    /// Valid while the owners live; methods return them with the lifetime of the sequence.
    texts: Vec<Text<'static>>,
    /// Owners, each with the index after the last text that it may own.
    owners: Vec<(usize, Owner)>,
}

impl SharedTexts {
    /// Returns a sequence of texts that are not copied.
    ///
    /// # Safety
    /// While the owner lives, the memory of all texts is neither freed nor changed.
    pub unsafe fn new(texts: Vec<Text<'_>>, owner: Owner) -> Self {
        let owners = vec![(texts.len(), owner)];
        // SAFETY: only the lifetime changes. The owner is dropped with the last sequence that has
        // one of its texts, and no method returns a text that outlives the sequence.
        let texts = unsafe { std::mem::transmute::<Vec<Text<'_>>, Vec<Text<'static>>>(texts) };
        SharedTexts { texts, owners }
    }

    /// Copies texts into new contiguous memory.
    pub fn copied(texts: &[Text<'_>]) -> Self {
        let size = texts.iter().flatten().map(|text| text.len()).sum();
        let mut memory = Vec::with_capacity(size);
        for text in texts.iter().flatten() {
            memory.extend_from_slice(text);
        }
        let memory: Arc<Vec<u8>> = Arc::new(memory);
        let mut rest = memory.as_slice();
        let mut next = |length| {
            let (text, after) = rest.split_at(length);
            rest = after;
            text
        };
        let copies = texts.iter().map(|text| text.map(|text| next(text.len())));
        let copies = copies.collect();
        // SAFETY: nothing changes the vector from here on.
        unsafe { SharedTexts::new(copies, memory.clone()) }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the text at an index, which must be below the length.
    pub fn get(&self, index: usize) -> Text<'_> {
        self.texts[index]
    }

    pub fn iter(&self) -> impl Iterator<Item = Text<'_>> {
        self.texts.iter().copied()
    }

    /// Returns the texts of a range of indices; None if one of them is missing.
    pub fn slices(&self, start: usize, stop: usize) -> Option<Vec<&[u8]>> {
        self.texts[start..stop].iter().copied().collect()
    }

    /// Returns a sequence of a range of indices, with the owners of its texts only.
    pub fn range(&self, start: usize, stop: usize) -> Self {
        let mut owners = Vec::new();
        let mut first = 0;
        for (end, owner) in &self.owners {
            if first < stop && *end > start {
                owners.push(((*end).min(stop) - start, owner.clone()));
            }
            first = *end;
        }
        SharedTexts {
            texts: self.texts[start..stop].to_vec(),
            owners,
        }
    }

    /// Returns a sequence of the texts at some indices, which must be below the length.
    pub fn pick(&self, indices: &[usize]) -> Self {
        let all = indices.len();
        let owners = self.owners.iter().map(|(_, owner)| (all, owner.clone()));
        SharedTexts {
            texts: indices.iter().map(|&index| self.texts[index]).collect(),
            owners: owners.collect(),
        }
    }

    /// Concatenates sequences.
    pub fn join<'a>(sequences: impl Iterator<Item = &'a SharedTexts>) -> Self {
        let mut texts = Vec::new();
        let mut owners = Vec::new();
        for sequence in sequences {
            let start = texts.len();
            texts.extend_from_slice(&sequence.texts);
            let moved = |(end, owner): &(usize, Owner)| (start + end, owner.clone());
            owners.extend(sequence.owners.iter().map(moved));
        }
        SharedTexts { texts, owners }
    }
}
