//! The template of an object: its constant text, learned from the latest object.
//!
//! Objects of one origin have their fields in the same order, and many values never change. So an
//! object consists of a few constant texts with varying values between them, and comparing text is
//! faster than parsing it. At a difference the rest of the object is read field by field, and the
//! template is learned again.

use crate::cursor::FixedText;

/// Maximum number of times that a template is learned in one reading.
const MAX_REVISIONS: usize = 24;
/// Longer values are always parsed.
const LONGEST_CONSTANT: usize = 64;

/// A field at its position in the latest object.
pub struct FieldPosition {
    /// `"name":`
    pub token: FixedText,
    pub field: Option<usize>,
    /// The text from the previous value to this value.
    lead: Vec<u8>,
    /// The value, if it has been the same since the field was first seen here.
    constant: Option<Vec<u8>>,
}

impl FieldPosition {
    pub fn new(token: Vec<u8>, field: Option<usize>) -> Self {
        let token = FixedText::new(token);
        FieldPosition {
            token,
            field,
            lead: Vec::new(),
            constant: None,
        }
    }

    /// Whether nothing has been recorded yet.
    fn is_new(&self) -> bool {
        self.lead.is_empty()
    }
}

/// What follows a constant text.
#[derive(Clone, Copy)]
pub enum Then {
    /// The value of a field.
    Field(usize),
    /// A value that is skipped.
    Skip,
    /// The end of the object.
    End,
}

/// A constant text, and what follows it.
pub struct Step {
    pub text: FixedText,
    pub then: Then,
    /// The index of the first field in the text.
    pub first: usize,
    /// Known fields in the text.
    pub named: Vec<usize>,
    /// Fields whose constant value is also a cell, with the value.
    pub repeated: Vec<(usize, Vec<u8>)>,
}

#[derive(Default)]
pub struct Template {
    /// The fields of the latest object that was read field by field.
    pub positions: Vec<FieldPosition>,
    pub steps: Vec<Step>,
    revisions: usize,
}

impl Template {
    pub fn forget(&mut self) {
        *self = Template::default();
    }

    /// Whether the template may still be learned again.
    pub fn learns(&self) -> bool {
        self.revisions < MAX_REVISIONS
    }

    /// The number of the latest revision, zero before the first.
    pub fn revision(&self) -> usize {
        self.revisions
    }

    /// Records the field at an index; `stable` says that its value may be constant.
    pub fn note(&mut self, index: usize, lead: &[u8], value: &[u8], stable: bool) {
        let Some(noted) = self.positions.get_mut(index) else {
            return;
        };
        if noted.is_new() {
            let kept = stable && value.len() <= LONGEST_CONSTANT;
            noted.constant = kept.then(|| value.to_vec());
        } else if noted.constant.as_deref() != Some(value) {
            noted.constant = None;
        }
        noted.lead.clear();
        noted.lead.extend_from_slice(lead);
    }

    /// Builds the steps of an object that was read completely: `count` fields, then `tail`.
    ///
    /// `is_cell` returns whether the constant value of a field is a cell.
    pub fn learn(&mut self, count: usize, tail: &[u8], is_cell: impl Fn(usize) -> bool) {
        self.revisions += 1;
        self.positions.truncate(count);
        self.steps.clear();
        let mut draft = Draft::default();
        for (index, noted) in self.positions.iter().enumerate() {
            draft.text.extend_from_slice(&noted.lead);
            draft.named.extend(noted.field);
            if let Some(value) = &noted.constant {
                draft.text.extend_from_slice(value);
                let cell = noted.field.filter(|&field| is_cell(field));
                let repeated = cell.map(|field| (field, value.clone()));
                draft.repeated.extend(repeated);
            } else {
                let then = noted.field.map_or(Then::Skip, Then::Field);
                self.steps.push(draft.step(then));
                draft.first = index + 1;
            }
        }
        draft.text.extend_from_slice(tail);
        self.steps.push(draft.step(Then::End));
    }
}

/// A step under construction.
#[derive(Default)]
struct Draft {
    text: Vec<u8>,
    first: usize,
    named: Vec<usize>,
    repeated: Vec<(usize, Vec<u8>)>,
}

impl Draft {
    fn step(&mut self, then: Then) -> Step {
        Step {
            text: FixedText::new(std::mem::take(&mut self.text)),
            then,
            first: self.first,
            named: std::mem::take(&mut self.named),
            repeated: std::mem::take(&mut self.repeated),
        }
    }
}
