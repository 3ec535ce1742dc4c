//! Parallel columns of records, from the messages of the client library.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::prelude::*;

use super::buffer::Buffer;
use super::librdkafka::{Client, Message, Object};
use super::texts::Texts;
use crate::shared_texts::{SharedTexts, Text};

/// Shorter texts are copied: the client's overhead for each message is about this large.
const LEAST_KEPT: i64 = 512;

/// Records of one topic partition as parallel columns, and the client's events between them.
///
/// Events of no partition have the topic "". `offsets`, `timestamps` and `sizes` (bytes of key and
/// value) are 64-bit integers. An event consists of an error code, its text and the offset at which
/// it occurred.
#[pyclass(frozen, get_all, module = "ingestd_native")]
pub struct Records {
    topic: String,
    partition: i32,
    offsets: Py<Buffer>,
    timestamps: Py<Buffer>,
    sizes: Py<Buffer>,
    keys: Py<Texts>,
    values: Py<Texts>,
    events: Vec<(c_int, String, i64)>,
}

impl Records {
    /// Returns the records of a batch. With `keep` texts are not copied.
    pub fn of(py: Python, batch: Arc<Batch>, keep: bool) -> PyResult<Records> {
        let columns = batch.columns();
        let least = LEAST_KEPT * columns.sizes.len() as i64;
        let (keys, values) = if keep && columns.sizes.iter().sum::<i64>() >= least {
            let texts_of = |texts| {
                // SAFETY: the batch keeps its messages, which nothing changes.
                unsafe { SharedTexts::new(texts, batch.clone()) }
            };
            (texts_of(columns.keys), texts_of(columns.values))
        } else {
            let (keys, values) = (&columns.keys, &columns.values);
            (SharedTexts::copied(keys), SharedTexts::copied(values))
        };
        let (topic, partition) = batch.topic_partition();
        Ok(Records {
            topic,
            partition,
            offsets: Py::new(py, Buffer::of(columns.offsets))?,
            timestamps: Py::new(py, Buffer::of(columns.timestamps))?,
            sizes: Py::new(py, Buffer::of(columns.sizes))?,
            keys: Py::new(py, Texts::new(keys))?,
            values: Py::new(py, Texts::new(values))?,
            events: batch.events(),
        })
    }
}

/// The records among messages.
struct Columns<'a> {
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    sizes: Vec<i64>,
    keys: Vec<Text<'a>>,
    values: Vec<Text<'a>>,
}

/// Messages of one topic partition, destroyed with the last reader of their texts.
pub struct Batch {
    client: Arc<Client>,
    messages: Vec<Object<Message>>,
}

impl Batch {
    /// Groups successive messages of one topic partition.
    pub fn split(client: &Arc<Client>, messages: Vec<Object<Message>>) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for message in messages {
            match batches.last_mut() {
                Some(batch) if batch.messages[0].is_beside(&message) => {
                    batch.messages.push(message);
                }
                _ => batches.push(Batch {
                    client: client.clone(),
                    messages: vec![message],
                }),
            }
        }
        batches
    }

    /// Returns topic and partition; the topic is "" for messages of no partition.
    fn topic_partition(&self) -> (String, i32) {
        let first = &self.messages[0];
        match &first.topic {
            Some(topic) => {
                let name = (self.client.library.topic_name)(topic);
                (name.read(), first.partition)
            }
            None => (String::new(), -1),
        }
    }

    /// Returns columns of the messages that are records, in one pass.
    fn columns(&self) -> Columns<'_> {
        let count = self.messages.len();
        let mut columns = Columns {
            offsets: Vec::with_capacity(count),
            timestamps: Vec::with_capacity(count),
            sizes: Vec::with_capacity(count),
            keys: Vec::with_capacity(count),
            values: Vec::with_capacity(count),
        };
        let timestamp = self.client.library.message_timestamp;
        for message in self.messages.iter().filter(|message| message.error == 0) {
            let [key, value] = message.texts();
            let size = |text: Text| text.map_or(0, <[u8]>::len) as i64;
            columns.offsets.push(message.offset);
            columns.timestamps.push(timestamp(message, None));
            columns.sizes.push(size(key) + size(value));
            columns.keys.push(key);
            columns.values.push(value);
        }
        columns
    }

    /// Returns the client's events between records: code, text, and offset.
    fn events(&self) -> Vec<(c_int, String, i64)> {
        let text_of = self.client.library.message_errstr;
        self.messages
            .iter()
            .filter(|message| message.error != 0)
            .map(|message| (message.error, text_of(message).read(), message.offset))
            .collect()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.client.is_here() {
            for message in self.messages.drain(..) {
                (self.client.library.message_destroy)(message);
            }
        }
    }
}
