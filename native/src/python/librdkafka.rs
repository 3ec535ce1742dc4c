//! librdkafka: its functions, by the addresses that Python has found, and its client.
//!
//! The types of the functions state what the library's header demands, so that most calls are safe.
//! Only this module calls the library with raw pointers.

use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::shared_texts::Text;

const CONSUMER: c_int = 0x1;
const ERROR_TEXT: usize = 512;
const KEPT_ERRORS: usize = 8;
const METADATA_MILLISECONDS: c_int = 2000;

/// An object of the library. It lives until a function takes it by value.
#[repr(transparent)]
pub struct Object<T>(NonNull<T>);

// SAFETY: the library's objects may be used and destroyed on any thread.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above, and by several threads at once.
unsafe impl<T> Sync for Object<T> {}

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: only the library creates objects, and what destroys one takes it by value.
        unsafe { self.0.as_ref() }
    }
}

/// A text of the library that ends in zero, or a null pointer.
#[repr(transparent)]
pub struct CText<'a>(Option<NonNull<c_char>>, PhantomData<&'a CStr>);

impl CText<'_> {
    /// Returns a copy; empty for a null pointer.
    pub fn read(&self) -> String {
        self.0.map_or_else(String::new, |start| {
            // SAFETY: only the library creates these, and it ends its texts in zero.
            let text = unsafe { CStr::from_ptr(start.as_ptr()) };
            text.to_string_lossy().into_owned()
        })
    }
}

/// Memory of the library whose content is unknown here.
#[repr(C)]
pub struct Opaque<Kind>(UnsafeCell<[u8; 0]>, PhantomData<Kind>);

pub enum ConfKind {}
pub enum KafkaKind {}
pub enum QueueKind {}
pub enum ListKind {}
pub enum MetadataKind {}
pub enum TopicKind {}

type Conf = Opaque<ConfKind>;
type Kafka = Opaque<KafkaKind>;
type Queue = Opaque<QueueKind>;
type List = Opaque<ListKind>;
type Metadata = Opaque<MetadataKind>;
type Topic = Opaque<TopicKind>;

/// The head of `rd_kafka_message_t`, which is part of the library's stable interface.
#[repr(C)]
pub struct Message {
    pub error: c_int,
    pub topic: Option<Object<Topic>>,
    pub partition: i32,
    payload: *const u8,
    length: usize,
    key: *const u8,
    key_length: usize,
    pub offset: i64,
}

impl Message {
    /// Returns key and value.
    pub fn texts(&self) -> [Text<'_>; 2] {
        [(self.key, self.key_length), (self.payload, self.length)].map(|(start, length)| {
            // SAFETY: a message's key and value live, unchanged, as long as the message.
            (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, length) })
        })
    }

    /// Whether two messages are of the same topic partition.
    pub fn is_beside(&self, other: &Message) -> bool {
        let topic = |message: &Message| message.topic.as_ref().map(|topic| topic.0);
        topic(self) == topic(other) && self.partition == other.partition
    }
}

/// The latest errors of a client as a whole: code and text.
type Errors = Mutex<VecDeque<(c_int, String)>>;
type ErrorCallback = extern "C" fn(&Kafka, c_int, CText<'_>, &Errors);

macro_rules! functions {
    ($($name:ident: $type:ty = $symbol:literal,)*) => {
        /// Functions of the library, with the types of its header.
        #[derive(Clone, Copy)]
        pub struct Library { $(pub $name: $type,)* }

        /// Names of the functions whose addresses are needed.
        pub const SYMBOLS: &[&str] = &[$($symbol,)*];

        impl Library {
            /// Returns the functions at these addresses; the error names a missing one.
            pub fn at(addresses: &HashMap<String, usize>) -> Result<Self, String> {
                Ok(Library { $($name: {
                    let address = addresses.get($symbol).copied().unwrap_or(0);
                    if address == 0 {
                        return Err(concat!("no address of ", $symbol).to_owned());
                    }
                    // SAFETY: the caller guarantees the address; the type is the header's.
                    unsafe { std::mem::transmute::<usize, $type>(address) }
                },)* })
            }
        }
    };
}

functions! {
    conf_new: extern "C" fn() -> Object<Conf> = "rd_kafka_conf_new",
    conf_destroy: extern "C" fn(Object<Conf>) = "rd_kafka_conf_destroy",
    conf_set: unsafe extern "C" fn(&Conf, *const c_char, *const c_char, *mut c_char, usize) -> c_int
        = "rd_kafka_conf_set",
    conf_set_opaque: unsafe extern "C" fn(&Conf, &Errors) = "rd_kafka_conf_set_opaque",
    conf_set_error_cb: extern "C" fn(&Conf, ErrorCallback) = "rd_kafka_conf_set_error_cb",
    conf_set_log_cb: extern "C" fn(&Conf, Option<extern "C" fn()>) = "rd_kafka_conf_set_log_cb",
    new: unsafe extern "C" fn(c_int, &Conf, *mut c_char, usize) -> Option<Object<Kafka>>
        = "rd_kafka_new",
    poll_set_consumer: extern "C" fn(&Kafka) -> c_int = "rd_kafka_poll_set_consumer",
    queue_get_consumer: extern "C" fn(&Kafka) -> Option<Object<Queue>>
        = "rd_kafka_queue_get_consumer",
    queue_destroy: extern "C" fn(Object<Queue>) = "rd_kafka_queue_destroy",
    consume: unsafe extern "C" fn(&Queue, c_int, *mut Object<Message>, usize) -> isize
        = "rd_kafka_consume_batch_queue",
    message_destroy: extern "C" fn(Object<Message>) = "rd_kafka_message_destroy",
    message_timestamp: extern "C" fn(&Message, Option<&mut c_int>) -> i64
        = "rd_kafka_message_timestamp",
    message_errstr: extern "C" fn(&Message) -> CText<'_> = "rd_kafka_message_errstr",
    topic_name: extern "C" fn(&Topic) -> CText<'_> = "rd_kafka_topic_name",
    metadata: extern "C" fn(&Kafka, c_int, Option<&Topic>, &mut Option<Object<Metadata>>, c_int) -> c_int
        = "rd_kafka_metadata",
    metadata_destroy: extern "C" fn(Object<Metadata>) = "rd_kafka_metadata_destroy",
    list_new: extern "C" fn(c_int) -> Object<List> = "rd_kafka_topic_partition_list_new",
    list_add: unsafe extern "C" fn(&List, *const c_char, i32) -> *const u8
        = "rd_kafka_topic_partition_list_add",
    list_set_offset: unsafe extern "C" fn(&List, *const c_char, i32, i64) -> c_int
        = "rd_kafka_topic_partition_list_set_offset",
    list_destroy: extern "C" fn(Object<List>) = "rd_kafka_topic_partition_list_destroy",
    assign: extern "C" fn(&Kafka, Option<&List>) -> c_int = "rd_kafka_assign",
    error_text: extern "C" fn(c_int) -> CText<'static> = "rd_kafka_err2str",
    close: extern "C" fn(&Kafka) -> c_int = "rd_kafka_consumer_close",
    destroy: extern "C" fn(Object<Kafka>) = "rd_kafka_destroy",
}

impl Library {
    /// Sets a property of a configuration; the error names an invalid one.
    fn set(&self, conf: &Conf, name: &str, value: &str) -> Result<(), String> {
        let terminated = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let (name, value) = (terminated(name)?, terminated(value)?);
        let mut text = [0; ERROR_TEXT];
        let room = text.as_mut_ptr().cast();
        // SAFETY: name and value end in zero, and the room for an error has this size.
        let status =
            unsafe { (self.conf_set)(conf, name.as_ptr(), value.as_ptr(), room, ERROR_TEXT) };
        if status == 0 {
            Ok(())
        } else {
            Err(first_text(&text))
        }
    }

    /// Converts a status of the library; the error is the library's text for it.
    fn checked(&self, status: c_int) -> Result<(), String> {
        if status == 0 {
            Ok(())
        } else {
            Err((self.error_text)(status).read())
        }
    }
}

/// Returns the text before the first zero.
fn first_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Called by the client while its queue is read.
extern "C" fn note_error(_: &Kafka, code: c_int, reason: CText<'_>, errors: &Errors) {
    if let Ok(mut errors) = errors.lock() {
        if errors.len() == KEPT_ERRORS {
            errors.pop_front();
        }
        errors.push_back((code, reason.read()));
    }
}

/// A client of the brokers. Holders of its messages also hold the client, which must outlive them.
pub struct Client {
    pub library: Library,
    kafka: Object<Kafka>,
    queue: Object<Queue>,
    errors: Arc<Errors>,
    /// The process of the client's threads.
    process: u32,
}

impl Client {
    /// Creates a client that consumes; the error names an invalid property.
    pub fn connect(library: Library, properties: &HashMap<String, String>) -> Result<Self, String> {
        let errors: Arc<Errors> = Arc::default();
        let conf = (library.conf_new)();
        let set = |(name, value): (&String, &String)| library.set(&conf, name, value);
        if let Err(error) = properties.iter().try_for_each(set) {
            (library.conf_destroy)(conf);
            return Err(error);
        }
        (library.conf_set_error_cb)(&conf, note_error);
        (library.conf_set_log_cb)(&conf, None);
        let mut text = [0; ERROR_TEXT];
        let room = text.as_mut_ptr().cast();
        // SAFETY: the errors are dropped after the client is destroyed, and the
        // room for an error has this size.
        let created = unsafe {
            (library.conf_set_opaque)(&conf, &errors);
            (library.new)(CONSUMER, &conf, room, ERROR_TEXT)
        };
        let Some(kafka) = created else {
            (library.conf_destroy)(conf);
            return Err(first_text(&text));
        };
        (library.poll_set_consumer)(&kafka);
        let Some(queue) = (library.queue_get_consumer)(&kafka) else {
            (library.destroy)(kafka);
            return Err("a consumer needs the property group.id".to_owned());
        };
        Ok(Client {
            library,
            kafka,
            queue,
            errors,
            process: std::process::id(),
        })
    }

    /// Whether this process created the client, rather than a fork of it.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Reads only these topic partitions, each from its offset.
    pub fn assign(&self, offsets: &[(CString, i32, i64)]) -> Result<(), String> {
        let library = &self.library;
        let list = (library.list_new)(c_int::try_from(offsets.len()).unwrap_or(0));
        for (topic, partition, offset) in offsets {
            // SAFETY: the name ends in zero; the list copies it.
            unsafe {
                (library.list_add)(&list, topic.as_ptr(), *partition);
                (library.list_set_offset)(&list, topic.as_ptr(), *partition, *offset);
            }
        }
        let status = (library.assign)(&self.kafka, Some(&list));
        (library.list_destroy)(list);
        library.checked(status)
    }

    /// Reads no topic partition.
    pub fn unassign(&self) -> Result<(), String> {
        self.library
            .checked((self.library.assign)(&self.kafka, None))
    }

    /// Looks up the brokers of all assigned topics; without an answer nothing changes.
    pub fn look_up_brokers(&self) {
        let mut metadata = None;
        (self.library.metadata)(&self.kafka, 0, None, &mut metadata, METADATA_MILLISECONDS);
        if let Some(metadata) = metadata {
            (self.library.metadata_destroy)(metadata);
        }
    }

    /// Returns at most `count` messages that arrive within some milliseconds; None if the queue
    /// cannot be read.
    pub fn consume(&self, count: usize, milliseconds: c_int) -> Option<Vec<Object<Message>>> {
        let mut messages = Vec::with_capacity(count);
        let start = messages.as_mut_ptr();
        // SAFETY: there is room for `count` messages.
        let received = unsafe { (self.library.consume)(&self.queue, milliseconds, start, count) };
        // SAFETY: the library has written that many.
        unsafe { messages.set_len(usize::try_from(received).ok()?) };
        Some(messages)
    }

    /// Removes and returns the latest errors of the client as a whole.
    pub fn take_errors(&self) -> Vec<(c_int, String)> {
        let errors = self.errors.lock();
        errors.map_or_else(|_| Vec::new(), |mut errors| errors.drain(..).collect())
    }

    /// Leaves the group; messages stay valid.
    pub fn close(&self) {
        (self.library.close)(&self.kafka);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        // The fields are not used again.
        let (queue, kafka) = (Object(self.queue.0), Object(self.kafka.0));
        let library = self.library;
        Python::attach(|py| {
            py.detach(|| {
                (library.queue_destroy)(queue);
                (library.destroy)(kafka);
            });
        });
    }
}
