//! The memo example behind the built program, and its visitors.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Kirin, Memcached, Reply, Site, wait_for};

/// The files of the example in the sources.
pub const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/memo");

/// Returns the file of the application. `MEMO_APP` in the environment chooses its language.
///
/// # Panics
/// Panics if `MEMO_APP` names no application.
fn application() -> String {
    match std::env::var("MEMO_APP").as_deref() {
        Err(_) | Ok("perl") => format!("{EXAMPLE}/app.psgi"),
        Ok("python") => format!("{EXAMPLE}-python/app.py"),
        Ok("ruby") => format!("{EXAMPLE}-ruby/config.ru"),
        Ok(other) => panic!("MEMO_APP is perl, python or ruby, and not {other}"),
    }
}

/// Serves the example. `try_places` are the places of its main route.
///
/// # Panics
/// Panics as [`Kirin::start`] does.
pub fn serve(try_places: &[&str]) -> (Site, Kirin, Memcached) {
    let site = Site::new();
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
         session_cookie = \"memo_session\"\n[[app]]\nname = \"web\"\nload = \"{1}\"\nworkers = 2\n\
         env = {{ KIRIN_STORE = \"unix:{0}/m.sock\", MEMO_DATABASE = \"{0}/memo.sqlite\" }}\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n\
         [[route]]\npath = \"/memo\"\ntry = {try_places:?}\n\
         [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\nrewrite = \"/\"\n",
        site.root().display(),
        application()
    );
    assert!(Path::new(EXAMPLE).is_dir(), "{EXAMPLE}");
    let kirin = Kirin::start(&site, &config);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

/// A browser with the functions that these tests need.
pub struct Visitor<'a> {
    kirin: &'a Kirin,
    /// The cookies by name.
    pub cookies: BTreeMap<String, String>,
}

impl<'a> Visitor<'a> {
    /// Returns a visitor without a cookie.
    pub fn new(kirin: &'a Kirin) -> Self {
        Self { kirin, cookies: BTreeMap::new() }
    }

    /// Returns a visitor with an account of this name.
    ///
    /// # Panics
    /// Panics if that is refused.
    pub fn member(kirin: &'a Kirin, name: &str) -> Self {
        let mut visitor = Self::new(kirin);
        let reply = visitor.submit(
            "/signup",
            "/signup",
            &format!("name={name}&password=password+of+{name}"),
        );
        assert_eq!(reply.status, 303, "{}", reply.text());
        visitor
    }

    /// Returns a visitor with these cookies.
    pub fn with_cookies(kirin: &'a Kirin, cookies: &[(&str, &str)]) -> Self {
        let cookies = cookies.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { kirin, cookies: cookies.collect() }
    }

    /// Returns the session's cookie.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn session_id(&self) -> &str {
        &self.cookies["memo_session"]
    }

    /// Sends GET for `path`.
    pub fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, "", "")
    }

    /// Posts the form on `page`, with its token.
    ///
    /// # Panics
    /// Panics if there is no form.
    pub fn submit(&mut self, page: &str, path: &str, form: &str) -> Reply {
        let page = self.get(page).text();
        let token = csrf_token(&page).unwrap_or_else(|| panic!("no form in {page}")).to_owned();
        self.request("POST", path, "", &format!("csrf_token={token}&{form}"))
    }

    /// Writes a memo. Returns its path.
    ///
    /// # Panics
    /// Panics if it is refused.
    pub fn write(&mut self, form: &str) -> String {
        let reply = self.submit("/mypage", "/memo", form);
        reply.field("location").unwrap_or_else(|| panic!("{}", reply.text())).to_owned()
    }

    /// Sends a request with a form. `fields` are lines that end in CR LF.
    ///
    /// # Panics
    /// Panics if a cookie is malformed.
    pub fn request(&mut self, method: &str, path: &str, fields: &str, form: &str) -> Reply {
        let cookies: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let fields = format!(
            "Cookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n{fields}\r\n{form}",
            cookies.join("; "),
            form.len()
        );
        let mut client = self.kirin.connect();
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}"));
        let reply = client.read_reply();
        for line in reply.head.lines() {
            let Some((field, cookie)) = line.split_once(": ") else { continue };
            if !field.eq_ignore_ascii_case("set-cookie") {
                continue;
            }
            let (name, rest) = cookie.split_once('=').expect("a cookie");
            let value = rest.split(';').next().unwrap_or_default();
            match cookie.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        reply
    }
}

/// Returns the token of the first form on a page.
pub fn csrf_token(page: &str) -> Option<&str> {
    page.split_once("name=\"csrf_token\" value=\"")?.1.split('"').next()
}

/// Returns the name of the signed-in visitor on a page.
pub fn names(page: &str) -> Vec<&str> {
    page.split("signed in as <strong>")
        .skip(1)
        .filter_map(|rest| rest.split("</strong>").next())
        .collect()
}

/// Returns whether a page is for visitors who are not signed in.
pub fn is_strangers(page: &str) -> bool {
    page.contains("<a href=\"/signin\">Sign in</a>")
        && names(page).is_empty()
        && csrf_token(page).is_none()
}

/// Stops all workers while it exists.
pub struct StoppedWorkers(Vec<Pid>);

impl StoppedWorkers {
    /// Stops the workers of the example's application.
    ///
    /// # Panics
    /// Panics if there are not two in time.
    pub fn of(kirin: &Kirin) -> Self {
        let pids =
            wait_for("two workers", || Some(kirin.worker_pids()).filter(|pids| pids.len() == 2));
        let pids = pids.iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
        let stopped = Self(pids);
        stopped.signal(Signal::STOP);
        stopped
    }

    fn signal(&self, signal: Signal) {
        for pid in &self.0 {
            let _ = kill_process(*pid, signal);
        }
    }
}

impl Drop for StoppedWorkers {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// Returns the targets of the links to older and newer memos.
pub fn older_and_newer(page: &str) -> (Option<String>, Option<String>) {
    let link = |class: &str| {
        let (_, rest) = page.split_once(&format!(" class=\"{class}\" href=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    (link("older"), link("newer"))
}
