#![forbid(unsafe_code)]
//! The account of the bytes that the server holds for clients. See [`account`].

pub mod account;

pub use account::{
    AccountFigures, ClientBytes, ClientShare, ListenerBytes, LoopAccount, NoRoom, Reservation,
    Resource,
};
