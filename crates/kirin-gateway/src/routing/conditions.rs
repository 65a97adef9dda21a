//! The `match` of a route: what a request must have beside its path.
//!
//! Pure; made when the configuration is checked. Conditions look at the request as the client sent
//! it, or at the head of a subrequest. They choose between routes, and protect nothing: a client
//! writes its fields and its query itself.

use std::borrow::Cow;
use std::fmt;

use http::Method;
use kirin_http::cookies::{self, cookie_fields};
use kirin_http::token::is_token;
use kirin_http::{Origin, Peer, PeerSet, RequestHead, form};
use xxhash_rust::xxh3::xxh3_64;

/// All conditions of a route. Every one of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteConditions(Vec<Condition>);

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The method is one of these. `HEAD` goes with `GET`.
    Methods(Vec<Method>),
    /// A field.
    Field {
        /// The name in lower case.
        name: String,
        /// What one of its lines must be.
        wanted: Wanted,
    },
    /// An argument of the query.
    Argument {
        /// The name, decoded.
        name: String,
        /// What one of its values must be, decoded.
        wanted: Wanted,
    },
    /// The client is one of these. It is the client that trusted proxies name, as for `rate_limit`.
    Clients(PeerSet),
    /// A cookie.
    Cookie {
        /// The name. Upper and lower case differ.
        name: String,
        /// What one cookie of this name must be.
        wanted: Wanted,
    },
    /// Whether the client came by https, to Kirin or to a trusted proxy.
    Scheme {
        /// Whether it must be https.
        is_https: bool,
    },
    /// The condition must not hold.
    Not(Box<Condition>),
}

/// The client of a request, as conditions see it.
#[derive(Clone, Copy)]
pub struct RequestClient<'a> {
    /// The client that trusted proxies name.
    pub peer: &'a Peer,
    /// Whether it came by https.
    pub secure: bool,
}

impl<'a> RequestClient<'a> {
    /// Returns the client of a request with this origin.
    pub fn of(origin: Origin<'a>) -> Self {
        Self { peer: origin.peer, secure: origin.secure }
    }
}

/// What a field or an argument must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// There is none.
    Absent,
    /// There is one.
    Present,
    /// One is this value.
    Exactly(String),
    /// One begins with this text.
    Start(String),
    /// One ends in this text.
    End(String),
    /// One has this text somewhere.
    Part(String),
}

impl RouteConditions {
    /// Collects conditions. Their order makes no difference.
    pub fn new(mut conditions: Vec<Condition>) -> Self {
        // Equal conditions are found by their texts.
        conditions.sort_by_cached_key(Condition::to_string);
        conditions.dedup();
        Self(conditions)
    }

    /// Returns whether there are none, so that they hold for every request.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether one of them is on the method.
    pub fn has_methods(&self) -> bool {
        self.0.iter().any(|condition| matches!(condition, Condition::Methods(_)))
    }

    /// Returns whether all hold. It is never inlined, so that routes without conditions are found
    /// by short code.
    #[inline(never)]
    pub fn hold(&self, head: &RequestHead<'_>, client: RequestClient<'_>) -> bool {
        self.0.iter().all(|condition| condition.holds(head, client))
    }

    /// Returns the conditions that do not hold.
    pub fn unmet<'a>(
        &'a self,
        head: &'a RequestHead<'_>,
        client: RequestClient<'a>,
    ) -> impl Iterator<Item = &'a Condition> {
        self.0.iter().filter(move |condition| !condition.holds(head, client))
    }

    /// Returns a number that differs for different conditions. Returns `None` without conditions.
    pub fn digest(&self) -> Option<u64> {
        (!self.is_empty()).then(|| xxh3_64(self.to_string().as_bytes()))
    }
}

/// The conditions, separated by commas.
impl fmt::Display for RouteConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.0.iter().enumerate() {
            write!(f, "{}{condition}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Condition {
    /// Creates the condition on the method. The error says what is allowed.
    pub fn methods<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut methods = Vec::new();
        for name in names {
            let parsed = Method::from_bytes(name.as_bytes());
            let method = parsed.map_err(|_| format!("`{name}` is not a method"))?;
            if matches!(method, Method::TRACE | Method::CONNECT) {
                return Err(format!("`{name}` reaches no route: Kirin answers it with 501"));
            }
            if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
                return Err(format!("write `{}`: methods have capitals", name.to_uppercase()));
            }
            methods.push(method);
        }
        if methods.is_empty() {
            return Err("an empty list of methods matches no request".into());
        }
        methods.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        methods.dedup();
        Ok(Self::Methods(methods))
    }

    /// Creates the condition on a field. The error says what is allowed.
    pub fn field(name: &str, wanted: Wanted) -> Result<Self, String> {
        if !is_token(name.as_bytes()) {
            return Err(format!("`{name}` is not the name of a field"));
        }
        if name.eq_ignore_ascii_case("host") {
            return Err("`Host` is not a condition: use `hosts` of a [[site]]".into());
        }
        if wanted.text().contains(char::is_control) {
            return Err(format!("`{name}`: no field has a control character in its value"));
        }
        Ok(Self::Field { name: name.to_ascii_lowercase(), wanted })
    }

    /// Creates the condition on an argument of the query.
    pub fn argument(name: &str, wanted: Wanted) -> Self {
        Self::Argument { name: name.to_owned(), wanted }
    }

    /// Creates the condition on a cookie. The error says what is allowed.
    pub fn cookie(name: &str, wanted: Wanted) -> Result<Self, String> {
        if !is_token(name.as_bytes()) {
            return Err(format!("`{name}` is not the name of a cookie"));
        }
        Ok(Self::Cookie { name: name.to_owned(), wanted })
    }

    /// Creates the condition on the client. The error says what is allowed.
    pub fn clients(clients: PeerSet) -> Result<Self, String> {
        if clients.is_empty() {
            return Err("an empty list of clients matches no request".into());
        }
        Ok(Self::Clients(clients))
    }

    /// Returns whether the request meets the condition.
    pub fn holds(&self, head: &RequestHead<'_>, client: RequestClient<'_>) -> bool {
        match self {
            Condition::Methods(methods) => allows(methods, &head.method),
            Condition::Field { name, wanted } => wanted.is_met_by(head.lines(name)),
            Condition::Argument { name, wanted } => {
                let values = arguments(head, name).map(decoded);
                wanted.is_met_by(values)
            }
            Condition::Clients(clients) => clients.contains(client.peer),
            Condition::Cookie { name, wanted } => wanted.is_met_by(cookies(head, name)),
            Condition::Scheme { is_https } => client.secure == *is_https,
            Condition::Not(condition) => !condition.holds(head, client),
        }
    }

    /// Returns what the request has instead of what the condition wants, for people.
    pub fn difference(&self, head: &RequestHead<'_>, client: RequestClient<'_>) -> String {
        match self {
            Condition::Methods(_) => format!("method is `{}`, wanted {self}", head.method),
            Condition::Field { name, wanted } => {
                let lines = head.lines(name).map(Cow::Borrowed);
                format!("header {}", wanted.difference(name, lines))
            }
            Condition::Argument { name, wanted } => {
                let values = arguments(head, name).map(decoded);
                format!("query argument {}", wanted.difference(name, values))
            }
            Condition::Clients(_) => format!("client is {}, wanted {self}", client.peer),
            Condition::Cookie { name, wanted } => {
                let values = cookies(head, name).map(Cow::Borrowed);
                format!("cookie {}", wanted.difference(name, values))
            }
            Condition::Scheme { .. } => {
                format!("scheme is `{}`, wanted {self}", scheme(client.secure))
            }
            Condition::Not(condition) => format!("{condition} holds, wanted not"),
        }
    }
}

/// The condition as the configuration has it.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Methods(methods) => write_list(f, "method", methods.iter()),
            Condition::Field { name, wanted } => write!(f, "header {name} = {wanted}"),
            Condition::Argument { name, wanted } => write!(f, "query argument {name} = {wanted}"),
            Condition::Clients(clients) => write_list(f, "client", clients.names().into_iter()),
            Condition::Cookie { name, wanted } => write!(f, "cookie {name} = {wanted}"),
            Condition::Scheme { is_https } => write!(f, "scheme `{}`", scheme(*is_https)),
            Condition::Not(condition) => write!(f, "not {condition}"),
        }
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        match index {
            0 => write!(f, "{name} `{item}`")?,
            _ => write!(f, " or `{item}`")?,
        }
    }
    Ok(())
}

impl Wanted {
    /// Parses a value of the configuration. The error says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Present);
        }
        let (text, from_start) = match text.strip_prefix('*') {
            Some(rest) => (rest, false),
            None => (text, true),
        };
        let (text, to_end) = match text.strip_suffix('*') {
            Some(rest) => (rest, false),
            None => (text, true),
        };
        if text.contains('*') || (text.is_empty() && !(from_start && to_end)) {
            return Err("`*` may stand at the beginning, at the end, or alone".into());
        }
        let text = text.to_owned();
        Ok(match (from_start, to_end) {
            (true, true) => Self::Exactly(text),
            (true, false) => Self::Start(text),
            (false, true) => Self::End(text),
            (false, false) => Self::Part(text),
        })
    }

    fn text(&self) -> &str {
        match self {
            Wanted::Absent | Wanted::Present => "",
            Wanted::Exactly(text)
            | Wanted::Start(text)
            | Wanted::End(text)
            | Wanted::Part(text) => text,
        }
    }

    fn is_met_by(&self, mut values: impl Iterator<Item = impl AsRef<[u8]>>) -> bool {
        match self {
            Wanted::Absent => values.next().is_none(),
            _ => values.any(|value| self.matches(value.as_ref())),
        }
    }

    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Wanted::Absent => false,
            Wanted::Present => true,
            Wanted::Exactly(text) => value == text.as_bytes(),
            Wanted::Start(text) => value.starts_with(text.as_bytes()),
            Wanted::End(text) => value.ends_with(text.as_bytes()),
            Wanted::Part(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
        }
    }

    fn difference<'a>(&self, name: &str, values: impl Iterator<Item = Cow<'a, [u8]>>) -> String {
        let values: Vec<_> =
            values.map(|value| format!("`{}`", String::from_utf8_lossy(&value))).collect();
        match values.as_slice() {
            [] => format!("`{name}` is missing, wanted {self}"),
            values => format!("`{name}` is {}, wanted {self}", values.join(" and ")),
        }
    }
}

/// The value as the configuration has it.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Absent => f.write_str("none"),
            Wanted::Present => f.write_str("`*`"),
            Wanted::Exactly(text) => write!(f, "`{text}`"),
            Wanted::Start(text) => write!(f, "`{text}*`"),
            Wanted::End(text) => write!(f, "`*{text}`"),
            Wanted::Part(text) => write!(f, "`*{text}*`"),
        }
    }
}

/// Returns whether a list of methods has `method`. The response to `HEAD` is the head of that to
/// `GET` (RFC 9110 section 9.3.2), so the same route must answer both.
fn allows(methods: &[Method], method: &Method) -> bool {
    methods.contains(method) || (*method == Method::HEAD && methods.contains(&Method::GET))
}

/// Returns the values of all cookies of a name.
fn cookies<'a>(head: &RequestHead<'a>, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let pairs = cookie_fields(head).flat_map(cookies::pairs);
    pairs.filter(move |(other, _)| *other == name.as_bytes()).map(|(_, value)| value)
}

fn scheme(is_https: bool) -> &'static str {
    if is_https { "https" } else { "http" }
}

/// Returns the values of all arguments of a name, encoded.
fn arguments<'a>(head: &RequestHead<'a>, name: &str) -> impl Iterator<Item = &'a [u8]> {
    form::arguments(head.query.unwrap_or_default().as_bytes(), name)
}

fn decoded(value: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr2(b'%', b'+', value) {
        None => Cow::Borrowed(value),
        Some(_) => Cow::Owned(form::decoded(value).collect()),
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
