#![forbid(unsafe_code)]
//! What a running Kirin shows: what it counts, and the answers about it. The program fills these
//! parts, and `kirin-console` reads their answers.
//!
//! | part | what it has |
//! |---|---|
//! | [`observed`] | the parts of the program that can be seen |
//! | [`live`] | the live table: which URLs get requests now |
//! | [`metrics`] | the numbers for Prometheus |
//! | [`machines`] | all machines with the same origin |
//! | [`status`], [`top`] | the answers to `GET /status` and `GET /top` |
//! | [`status_page`] | the same numbers in a browser |
//! | [`profile`], [`advise`] | the answers to `kirin profile` and `kirin advise` |
//! | [`reload`], [`upgrade`] | the requests and the answers of these commands |
//! | [`program_state`] | the program as such, and the other one of an upgrade |
//! | [`served`], [`socket_directory`] | where a running Kirin is found |
//! | [`client_accounts`], [`stage`] | the memory of clients, and what the event loops are to do |

pub mod advise;
pub mod answers;
pub mod client_accounts;
pub mod live;
pub mod machines;
pub mod metrics;
pub mod observed;
pub mod profile;
pub mod program_state;
pub mod refusal;
pub mod reload;
pub mod served;
pub mod socket_directory;
pub mod stage;
pub mod status;
pub mod status_page;
pub mod top;
pub mod upgrade;
