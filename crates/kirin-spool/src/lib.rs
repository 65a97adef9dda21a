#![forbid(unsafe_code)]
//! Request bodies that are read to their end before they are passed on. See [`SpooledBody`].

mod spooled_body;

pub use spooled_body::{SpoolError, SpooledBody, is_out_of_descriptors};
