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
pub enum FailureKind {}

type Conf = Opaque<ConfKind>;
type Kafka = Opaque<KafkaKind>;
type Queue = Opaque<QueueKind>;
type List = Opaque<ListKind>;
type Metadata = Opaque<MetadataKind>;
type Topic = Opaque<TopicKind>;
type Failure = Opaque<FailureKind>;

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

/// What a client reports to, and what it asks for tokens.
pub struct Callbacks {
    library: Library,
    /// The latest errors of the client as a whole: code and text.
    errors: Mutex<VecDeque<(c_int, String)>>,
    token: Option<TokenFunction>,
}

/// A function of Python that returns a token for OAUTHBEARER: see `Token`.
pub type TokenFunction = Py<PyAny>;
/// The token, when it expires in seconds since 1970, the principal, and extensions by name.
type Token = (String, f64, String, HashMap<String, String>);
type ErrorCallback = extern "C" fn(&Kafka, c_int, CText<'_>, &Callbacks);
type TokenCallback = extern "C" fn(&Kafka, CText<'_>, &Callbacks);

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
    conf_set_opaque: unsafe extern "C" fn(&Conf, &Callbacks) = "rd_kafka_conf_set_opaque",
    conf_set_error_cb: extern "C" fn(&Conf, ErrorCallback) = "rd_kafka_conf_set_error_cb",
    conf_set_log_cb: extern "C" fn(&Conf, Option<extern "C" fn()>) = "rd_kafka_conf_set_log_cb",
    conf_set_token_cb: extern "C" fn(&Conf, TokenCallback)
        = "rd_kafka_conf_set_oauthbearer_token_refresh_cb",
    conf_enable_sasl_queue: extern "C" fn(&Conf, c_int) = "rd_kafka_conf_enable_sasl_queue",
    sasl_in_background: extern "C" fn(&Kafka) -> Option<Object<Failure>>
        = "rd_kafka_sasl_background_callbacks_enable",
    failure_destroy: extern "C" fn(Object<Failure>) = "rd_kafka_error_destroy",
    set_token: unsafe extern "C" fn(
        &Kafka,
        *const c_char,
        i64,
        *const c_char,
        *const *const c_char,
        usize,
        *mut c_char,
        usize,
    ) -> c_int = "rd_kafka_oauthbearer_set_token",
    set_token_failure: unsafe extern "C" fn(&Kafka, *const c_char) -> c_int
        = "rd_kafka_oauthbearer_set_token_failure",
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

    /// Gives a client the token of its brokers; the error says why it is invalid.
    fn set_token(&self, kafka: &Kafka, token: Token) -> Result<(), String> {
        let terminated = |text| CString::new(text).map_err(|error| error.to_string());
        let (value, expiry, principal, extensions) = token;
        let (value, principal) = (terminated(value)?, terminated(principal)?);
        let pairs = extensions
            .into_iter()
            .flat_map(|(name, value)| [name, value]);
        let pairs: Vec<CString> = pairs.map(terminated).collect::<Result<_, _>>()?;
        let pairs: Vec<*const c_char> = pairs.iter().map(|text| text.as_ptr()).collect();
        let mut text = [0; ERROR_TEXT];
        // SAFETY: the texts end in zero and outlive the call, which copies them, and the room for
        // an error has this size.
        let status = unsafe {
            (self.set_token)(
                kafka,
                value.as_ptr(),
                (expiry * 1000.0) as i64,
                principal.as_ptr(),
                pairs.as_ptr(),
                pairs.len(),
                text.as_mut_ptr().cast(),
                ERROR_TEXT,
            )
        };
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
extern "C" fn note_error(_: &Kafka, code: c_int, reason: CText<'_>, callbacks: &Callbacks) {
    if let Ok(mut errors) = callbacks.errors.lock() {
        if errors.len() == KEPT_ERRORS {
            errors.pop_front();
        }
        errors.push_back((code, reason.read()));
    }
}

/// Called on a thread of the client whenever it needs a token; after a failure it asks again.
extern "C" fn refresh_token(kafka: &Kafka, config: CText<'_>, callbacks: &Callbacks) {
    let library = &callbacks.library;
    let asked = Python::try_attach(|py| {
        let function = callbacks.token.as_ref()?;
        let token = function.call1(py, (config.read(),));
        let token = token.and_then(|token| token.extract::<Token>(py));
        Some(token.map_err(|error| error.value(py).to_string()))
    });
    let Some(token) = asked.flatten() else {
        return; // the interpreter ends
    };
    let Err(reason) = token.and_then(|token| library.set_token(kafka, token)) else {
        return;
    };
    let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the text ends in zero; the library copies it.
    unsafe { (library.set_token_failure)(kafka, reason.as_ptr()) };
}

/// A client of the brokers. Holders of its messages also hold the client, which must outlive them.
pub struct Client {
    pub library: Library,
    kafka: Object<Kafka>,
    queue: Object<Queue>,
    callbacks: Arc<Callbacks>,
    /// The process of the client's threads.
    process: u32,
}

impl Client {
    /// Creates a client that consumes; the error names an invalid property.
    ///
    /// `token` is the source of tokens where the library has none of its own.
    pub fn connect(
        library: Library,
        properties: &HashMap<String, String>,
        token: Option<TokenFunction>,
    ) -> Result<Self, String> {
        let callbacks = Arc::new(Callbacks {
            library,
            errors: Mutex::default(),
            token,
        });
        let conf = (library.conf_new)();
        let set = |(name, value): (&String, &String)| library.set(&conf, name, value);
        if let Err(error) = properties.iter().try_for_each(set) {
            (library.conf_destroy)(conf);
            return Err(error);
        }
        (library.conf_set_error_cb)(&conf, note_error);
        (library.conf_set_log_cb)(&conf, None);
        if callbacks.token.is_some() {
            (library.conf_set_token_cb)(&conf, refresh_token);
            (library.conf_enable_sasl_queue)(&conf, 1);
        }
        let mut text = [0; ERROR_TEXT];
        let room = text.as_mut_ptr().cast();
        // SAFETY: the callbacks are dropped after the client is destroyed, and the
        // room for an error has this size.
        let created = unsafe {
            (library.conf_set_opaque)(&conf, &callbacks);
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
        let client = Client {
            library,
            kafka,
            queue,
            callbacks,
            process: std::process::id(),
        };
        if client.callbacks.token.is_some() {
            client.ask_for_tokens_in_background()?;
        }
        Ok(client)
    }

    /// Has a thread of the client call `refresh_token`, so that an idle client has a valid token.
    fn ask_for_tokens_in_background(&self) -> Result<(), String> {
        let Some(failure) = (self.library.sasl_in_background)(&self.kafka) else {
            return Ok(());
        };
        (self.library.failure_destroy)(failure);
        Err("tokens need sasl.mechanism OAUTHBEARER and a SASL security.protocol".to_owned())
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

    /// Looks up the brokers of all assigned topics; without a response nothing changes.
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
        let errors = self.callbacks.errors.lock();
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
