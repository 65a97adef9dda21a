//! The table: what a client sends, and what client and log must see.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kirin_tests::repository;
use serde::Deserialize;
use toml::Table;

use super::adapters::{Adapter, HandOver};
use super::left_out::LeftOut;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Keys of `[[app]]` for all its cases.
    #[serde(default)]
    pub app: Table,
    /// Why none of its cases is for a language.
    #[serde(default)]
    pub not_for: BTreeMap<String, String>,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// A case: one request and its response, or several steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// Keys of `[[app]]` for this case.
    #[serde(default)]
    pub app: Table,
    /// Files that the application's directory has from the start. Such a case has its own Kirin.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Why the case is not for a language.
    #[serde(default)]
    pub not_for: BTreeMap<String, String>,
    /// Why the case is not for a way: `ring`, `socket` or `plain`.
    #[serde(default)]
    pub not_over: BTreeMap<String, String>,
    /// Whether the case needs a Kirin of its own.
    #[serde(default)]
    pub alone: bool,
    pub request: Option<Request>,
    pub response: Option<Response>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Entries that the log must have. An entry is a line, and what is indented below it.
    #[serde(default)]
    pub log: Vec<Texts>,
    /// Texts that the log must not have.
    #[serde(default)]
    pub no_log: Vec<String>,
    /// Texts that the log must have exactly once.
    #[serde(default)]
    pub log_once: Vec<String>,
    /// Whether Kirin logs warnings or errors.
    #[serde(default)]
    pub warns: bool,
    #[serde(default)]
    pub worker: Worker,
    /// How often the application runs. The default is the number of requests.
    pub runs: Option<u64>,
}

impl Case {
    /// Returns whether the case has its own Kirin.
    pub fn is_alone(&self) -> bool {
        self.alone || !self.files.is_empty()
    }

    /// Returns whether the case is for an adapter in this way.
    pub fn is_for(&self, adapter: Adapter, hand_over: HandOver) -> bool {
        let is_excluded = self.not_for.contains_key(adapter.name());
        !is_excluded && !self.not_over.contains_key(hand_over.name())
    }
}

/// What happens to the only worker of an application in a case.
#[derive(Debug, Default, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Worker {
    /// It serves on, with no run of the application more than the case says.
    #[default]
    Stays,
    /// Another one follows.
    Ends,
    /// The steps look at it.
    Unchecked,
}

/// One text, or several that must stand in one entry of the log.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    One(String),
    All(Vec<String>),
}

/// Bytes: a text, whose characters are the bytes, or a pattern that is repeated up to a length.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Pattern(Pattern),
}

/// A pattern that is repeated up to a length.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The text, or `bytes` for all values from 0 to 250.
    pub pattern: String,
    /// The length of all in bytes.
    pub length: usize,
}

/// A request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The name of the connection.
    pub on: String,
    /// The default is POST with a body, and GET without.
    pub method: Option<String>,
    pub target: String,
    /// The default is `HTTP/1.1`.
    pub version: Option<String>,
    /// Lines `Name: value` behind `Host`.
    pub fields: Vec<String>,
    pub body: Option<Content>,
    /// The body in chunks.
    pub chunks: Vec<Content>,
    /// In how many pieces the bytes are sent. Between two pieces the front has read the first one.
    pub pieces: Option<usize>,
    /// All bytes, in place of everything else.
    pub raw: Option<String>,
}

/// What a client must see.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Response {
    /// The name of the connection.
    pub on: String,
    /// The default is 200.
    pub status: Option<u16>,
    /// Lines `Name: value`, in this order if a name comes twice.
    pub fields: Vec<String>,
    /// Names of fields that must be there.
    pub present: Vec<String>,
    /// Names of fields that must be absent.
    pub absent: Vec<String>,
    pub body: Option<Content>,
    /// The body must be another text.
    pub not_body: Option<String>,
    /// Lines that the body must have.
    pub lines: Vec<String>,
    /// Texts that the body must not have.
    pub without: Vec<String>,
    pub framing: Option<Framing>,
    /// The lines behind the last chunk. The default is none.
    pub trailers: Vec<String>,
    /// Whether the response begins and does not reach its end.
    pub cut: bool,
    /// Whether only the head is read: of an informational response, or a 101.
    pub head_only: bool,
    /// The name under which later steps know the body.
    pub remember: Option<String>,
}

/// How the end of a body is known.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    Length,
    Chunked,
    /// Neither field is there.
    None,
}

/// A step of a case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Sends a request, on a new connection if no open one has this name.
    Send(Request),
    /// Reads a response.
    Read(Response),
    /// Reads exactly these bytes.
    Bytes(Bytes),
    /// Reads exactly these bytes, and then the end of the connection.
    Last(Bytes),
    /// Opens a WebSocket.
    Websocket(WebSocket),
    /// Sends a text message over a WebSocket.
    Say(Message),
    /// Reads exactly this text message from a WebSocket.
    Hear(Message),
    /// Reads a close frame with this code and any reason, answers it, and reads the end of the
    /// connection.
    Closed(Closed),
    /// Sends these bytes, which are no request.
    Put(Bytes),
    /// Ends the client's side of a connection.
    End(String),
    /// Resets a connection.
    Reset(String),
    /// Sends the same request over many connections at the same time, then reads all responses.
    AtOnce(Box<AtOnce>),
    /// Repeats a GET, each on its own connection, until the body is this text.
    Until(Until),
    /// Makes a file in the application's directory.
    Write(File),
    /// Waits for a file in the application's directory.
    WaitFor(Appearance),
    /// Writes this text in place of the application. An empty text brings the application back.
    Application(String),
    /// Sends Kirin a signal.
    Signal(String),
    /// Sends a process a signal.
    Kill(Kill),
    /// Waits for a text in the log.
    Log(String),
    /// Waits until the application has so many workers, and all are idle.
    Workers(usize),
    /// Waits until a process has ended.
    Gone(String),
    /// Waits until Kirin, which stops, takes no connections any more.
    Draining(bool),
    /// Waits until Kirin has ended with this status.
    Exit(i32),
}

/// Bytes on a connection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    #[serde(default)]
    pub on: String,
    pub bytes: String,
}

/// A WebSocket.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSocket {
    #[serde(default)]
    pub on: String,
    pub target: String,
}

/// A text message of at most 125 bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    #[serde(default)]
    pub on: String,
    pub text: String,
}

/// The end of a WebSocket.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    #[serde(default)]
    pub on: String,
    pub code: u16,
}

/// Requests at the same time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtOnce {
    /// The number of requests. Each has a connection of its own.
    pub count: usize,
    pub request: Request,
    pub response: Response,
}

/// A target, and the body that it must have at last.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    pub target: String,
    pub body: String,
}

/// A file and its text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub file: String,
    pub text: String,
}

/// A file that must appear.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Appearance {
    pub file: String,
    /// The name under which later steps know the text of the file.
    pub remember: Option<String>,
}

/// A signal to a process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    pub process: String,
    pub signal: String,
}

/// Returns the directory of the table.
pub fn directory() -> PathBuf {
    repository().join("adapters/suite/cases")
}

/// Reads a file of cases. `not_for` of its cases also has the reasons of the small adapters.
///
/// # Panics
/// Panics if it is malformed.
pub fn read(name: &str) -> CaseFile {
    let path = directory().join(name).with_extension("toml");
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut file: CaseFile =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let left_out = LeftOut::read();
    for case in &mut file.cases {
        case.not_for.extend(file.not_for.clone());
        case.not_for.extend(left_out.reasons(name, &case.name));
        let (name, is_short) = (&case.name, case.request.is_some() && case.response.is_some());
        assert!(is_short == case.steps.is_empty(), "{name}: a request and a response, or steps");
        assert_eq!(case.request.is_some(), case.response.is_some(), "{name}");
    }
    file
}
