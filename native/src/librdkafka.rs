//! The functions of librdkafka in use, by the addresses that Python has found.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The head of `rd_kafka_message_t`, which is part of the library's stable interface.
#[repr(C)]
pub struct Message {
    pub error: c_int,
    pub topic: *mut c_void,
    pub partition: i32,
    pub payload: *const u8,
    pub length: usize,
    pub key: *const u8,
    pub key_length: usize,
    pub offset: i64,
}

pub type Handle = *mut c_void;
pub type ErrorCallback = unsafe extern "C" fn(Handle, c_int, *const c_char, Handle);
macro_rules! functions {
    ($($name:ident: $type:ty = $symbol:literal,)*) => {
        /// Functions of the library, with the types of its header.
        #[derive(Clone, Copy)]
        pub struct Library { $(pub $name: $type,)* }

        /// Names of the functions whose addresses are needed.
        pub const SYMBOLS: &[&str] = &[$($symbol,)*];

        impl Library {
            pub fn at(addresses: &HashMap<String, usize>) -> PyResult<Self> {
                Ok(Library { $($name: {
                    let address = addresses.get($symbol).copied().unwrap_or(0);
                    if address == 0 {
                        return Err(PyValueError::new_err(concat!("no address of ", $symbol)));
                    }
                    // SAFETY: the caller vouches for the address; the type is the header's.
                    unsafe { std::mem::transmute::<usize, $type>(address) }
                },)* })
            }
        }
    };
}

functions! {
    conf_new: unsafe extern "C" fn() -> Handle = "rd_kafka_conf_new",
    conf_destroy: unsafe extern "C" fn(Handle) = "rd_kafka_conf_destroy",
    conf_set: unsafe extern "C" fn(Handle, *const c_char, *const c_char, *mut c_char, usize) -> c_int
        = "rd_kafka_conf_set",
    conf_set_opaque: unsafe extern "C" fn(Handle, Handle) = "rd_kafka_conf_set_opaque",
    conf_set_error_cb: unsafe extern "C" fn(Handle, ErrorCallback) = "rd_kafka_conf_set_error_cb",
    conf_set_log_cb: unsafe extern "C" fn(Handle, *const c_void) = "rd_kafka_conf_set_log_cb",
    new: unsafe extern "C" fn(c_int, Handle, *mut c_char, usize) -> Handle = "rd_kafka_new",
    poll_set_consumer: unsafe extern "C" fn(Handle) -> c_int = "rd_kafka_poll_set_consumer",
    queue_get_consumer: unsafe extern "C" fn(Handle) -> Handle = "rd_kafka_queue_get_consumer",
    queue_destroy: unsafe extern "C" fn(Handle) = "rd_kafka_queue_destroy",
    consume: unsafe extern "C" fn(Handle, c_int, *mut *mut Message, usize) -> isize
        = "rd_kafka_consume_batch_queue",
    message_destroy: unsafe extern "C" fn(*mut Message) = "rd_kafka_message_destroy",
    message_timestamp: unsafe extern "C" fn(*const Message, *mut c_int) -> i64
        = "rd_kafka_message_timestamp",
    message_errstr: unsafe extern "C" fn(*const Message) -> *const c_char = "rd_kafka_message_errstr",
    topic_name: unsafe extern "C" fn(*const c_void) -> *const c_char = "rd_kafka_topic_name",
    metadata: unsafe extern "C" fn(Handle, c_int, *const c_void, *mut *const c_void, c_int) -> c_int
        = "rd_kafka_metadata",
    metadata_destroy: unsafe extern "C" fn(*const c_void) = "rd_kafka_metadata_destroy",
    list_new: unsafe extern "C" fn(c_int) -> Handle = "rd_kafka_topic_partition_list_new",
    list_add: unsafe extern "C" fn(Handle, *const c_char, i32) -> Handle
        = "rd_kafka_topic_partition_list_add",
    list_set_offset: unsafe extern "C" fn(Handle, *const c_char, i32, i64) -> c_int
        = "rd_kafka_topic_partition_list_set_offset",
    list_destroy: unsafe extern "C" fn(Handle) = "rd_kafka_topic_partition_list_destroy",
    assign: unsafe extern "C" fn(Handle, *const c_void) -> c_int = "rd_kafka_assign",
    error_text: unsafe extern "C" fn(c_int) -> *const c_char = "rd_kafka_err2str",
    close: unsafe extern "C" fn(Handle) -> c_int = "rd_kafka_consumer_close",
    destroy: unsafe extern "C" fn(Handle) = "rd_kafka_destroy",
}

/// Returns the text at an address; empty for a null pointer.
pub unsafe fn text_at(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller says that a text that ends in zero begins there.
    unsafe { CStr::from_ptr(start) }
        .to_string_lossy()
        .into_owned()
}
