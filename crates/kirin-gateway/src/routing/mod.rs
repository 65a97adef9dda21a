//! Routes: the places that a request is for, and the rules before and after them.

pub mod access;
pub mod auth_request;
pub mod basic_auth;
pub mod conditions;
pub mod continuation;
pub mod error_page;
pub mod host_table;
pub mod operator_maintenance;
pub mod password_checks;
pub mod password_file;
pub mod password_hash;
pub mod path_pattern;
pub mod path_template;
pub mod protection;
pub mod rate_limit;
pub mod redirect;
pub mod response_fields;
pub mod rewrite;
pub mod route;
pub mod route_names;
pub mod route_table;
pub mod router;
pub mod rules;
pub mod settings;
pub mod site;
pub mod site_names;
mod text_map;
