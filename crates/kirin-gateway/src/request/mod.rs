//! A request on its way through the gateway, and its subrequests.
//!
//! [`context::Request`] is what routes, places and filters get. It borrows from the connection's
//! read buffer; [`kept_request::KeptRequest`] outlives it. A page or a script asks the routes
//! again through [`answers::Answers`] ([`subrequest`]).

pub mod answered_by;
pub mod answers;
pub mod collected_body;
pub mod context;
pub mod field_changes;
pub mod given_names;
pub mod kept_request;
pub mod lineage;
pub mod subrequest;
#[cfg(test)]
pub mod test_requests;
