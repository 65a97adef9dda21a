//! A small memo site that is right but for one flaw.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub const SEEDED: u64 = 250;
pub const AUTHOR: &str = "chika";
pub const PASSWORD: &str = "secret word";
pub const STYLE: &[u8] = b"body { margin: 0 }";

/// The flaw of a site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    ShowsPrivate,
    ListsPrivate,
    OldFront,
    KeepsSession,
    MixesVisitors,
    CutsFile,
    Fails,
}

/// Returns words of a seeded memo's title.
pub fn words(id: u64) -> String {
    format!("walk number {id} to the harbour")
}

struct Memo {
    author: String,
    text: String,
    is_private: bool,
}

struct Site {
    flaw: Flaw,
    memos: BTreeMap<u64, Memo>,
    /// The name of the member for each cookie.
    sessions: HashMap<String, String>,
    cookies: u64,
    asked: u64,
}

struct Request {
    path: String,
    cookie: String,
    is_conditional: bool,
    form: HashMap<String, String>,
}

/// Starts a site on a free port. It runs as long as the test.
pub fn start(flaw: Flaw) -> SocketAddr {
    let memos = (1..=SEEDED)
        .map(|id| (id, Memo { author: AUTHOR.to_owned(), text: words(id), is_private: false }))
        .collect();
    let site = Site { flaw, memos, sessions: HashMap::new(), cookies: 0, asked: 0 };
    let site = Arc::new(Mutex::new(site));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let site = Arc::clone(&site);
            thread::spawn(move || serve(connection, &site));
        }
    });
    address
}

fn serve(connection: TcpStream, site: &Mutex<Site>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut connection = connection;
    loop {
        let request = read_request(&mut reader)?;
        let answer = site.lock().expect("nobody has panicked").answer(&request);
        connection.write_all(answer.as_bytes()).ok()?;
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let field = |name: &str| {
        lines.iter().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let mut body = vec![0; field("Content-Length: ").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let form = String::from_utf8(body).ok()?;
    let form = form.split('&').filter_map(|pair| pair.split_once('='));
    Some(Request {
        path: lines.first()?.split(' ').take(2).collect::<Vec<_>>().join(" "),
        cookie: field("Cookie: "),
        is_conditional: !field("If-None-Match: ").is_empty(),
        form: form.map(|(name, value)| (name.to_owned(), value.replace('+', " "))).collect(),
    })
}

impl Site {
    fn answer(&mut self, request: &Request) -> String {
        self.asked += 1;
        let name = self.sessions.get(&request.cookie).cloned();
        let (method, path) = request.path.split_once(' ').unwrap_or_default();
        let is_forged = request.form.get("csrf_token") != Some(&token(&request.cookie));
        match (method, path) {
            ("POST", _) if is_forged => plain("403 Forbidden", "", "forged"),
            ("POST", "/signin") if request.form["password"] == PASSWORD => {
                self.cookies += 1;
                let cookie = format!("session={}", self.cookies);
                self.sessions.insert(cookie.clone(), request.form["name"].clone());
                plain(
                    "303 See Other",
                    &format!("Location: /mypage\r\nSet-Cookie: {cookie}; Path=/\r\n"),
                    "",
                )
            }
            ("POST", "/signout") => {
                if self.flaw != Flaw::KeepsSession {
                    self.sessions.remove(&request.cookie);
                }
                plain("303 See Other", "Location: /\r\nSet-Cookie: session=; Max-Age=0\r\n", "")
            }
            ("POST", "/memo") => self.write(request, name.expect("who posts is signed in")),
            ("GET", "/signin") => {
                let cookie = "session=nobody";
                let form = format!(
                    "<form action=\"/signin\"><input name=\"csrf_token\" value=\"{}\"></form>",
                    token(cookie)
                );
                page("200 OK", &format!("Set-Cookie: {cookie}\r\n"), "", &form)
            }
            ("GET", "/memo.css") => self.style(request),
            ("GET", _) => self.page(path, name.as_deref(), &request.cookie),
            _ => plain("405 Not Allowed", "", ""),
        }
    }

    fn write(&mut self, request: &Request, author: String) -> String {
        let id = self.memos.len() as u64 + 1;
        let is_private = request.form.contains_key("is_private");
        self.memos.insert(id, Memo { author, text: request.form["content"].clone(), is_private });
        plain("303 See Other", &format!("Location: http://site.example/memo/{id}\r\n"), "")
    }

    fn style(&self, request: &Request) -> String {
        if request.is_conditional {
            return "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_owned();
        }
        let style = if self.flaw == Flaw::CutsFile { &STYLE[1..] } else { STYLE };
        plain(
            "200 OK",
            "Content-Type: text/css\r\nETag: \"1\"\r\n",
            &String::from_utf8_lossy(style),
        )
    }

    fn page(&self, path: &str, name: Option<&str>, cookie: &str) -> String {
        let shown = match self.flaw {
            Flaw::MixesVisitors => self.sessions.values().next().map(String::as_str).or(name),
            _ => name,
        };
        let bar = match shown {
            Some(name) => format!(
                "{name}<form action=\"/signout\"><input name=\"csrf_token\" value=\"{}\"></form>",
                token(cookie)
            ),
            None => "<a href=\"/signin\">Sign in</a>".to_owned(),
        };
        match (path, path.strip_prefix("/memo/").and_then(|id| id.parse().ok())) {
            ("/mypage", _) if name.is_none() => plain("303 See Other", "Location: /signin\r\n", ""),
            ("/mypage", _) => {
                let form = format!(
                    "<form action=\"/memo\"><input name=\"csrf_token\" value=\"{}\"></form>",
                    token(cookie)
                );
                page("200 OK", "", &bar, &form)
            }
            (_, Some(id)) => self.memo(id, name, &bar),
            _ => {
                let newest_first = self.memos.iter().rev().filter(|(id, memo)| {
                    let is_new = **id > SEEDED;
                    !(memo.is_private && self.flaw != Flaw::ListsPrivate
                        || is_new && self.flaw == Flaw::OldFront)
                });
                let links = newest_first.take(100);
                let list: String = links
                    .map(|(id, memo)| {
                        format!("<a href=\"/memo/{id}\">{}</a> {}\n", memo.text, memo.author)
                    })
                    .collect();
                page("200 OK", "", &bar, &list)
            }
        }
    }

    fn memo(&self, id: u64, name: Option<&str>, bar: &str) -> String {
        if self.flaw == Flaw::Fails && self.asked.is_multiple_of(3) {
            return plain("500 Internal Server Error", "", "");
        }
        match self.memos.get(&id) {
            Some(Memo { author, text, is_private })
                if !is_private || name == Some(author) || self.flaw == Flaw::ShowsPrivate =>
            {
                page("200 OK", "", bar, &format!("{text} by {author}"))
            }
            _ => page("404 Not Found", "", bar, "no such memo"),
        }
    }
}

fn page(status: &str, fields: &str, bar: &str, main: &str) -> String {
    let html = format!(
        "<!DOCTYPE html><html><body><header>{bar}</header><main>{main}</main></body></html>\n"
    );
    plain(status, &format!("Content-Type: text/html; charset=UTF-8\r\n{fields}"), &html)
}

fn plain(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns the token of a form, which is that of its session.
fn token(cookie: &str) -> String {
    cookie.replace('=', "-")
}
