//! What `kirin serve` shows to somebody in front of a terminal when it serves: the addresses to
//! open, what is served from where, and what to do next.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;

use kirin_console::colours;
use kirin_console::units::{bytes, number_of, plain};
use kirin_gateway::routing::settings::{RouteConfig, SiteConfig};
use kirin_observe::served::Served;

use crate::life::configured::Configured;

/// The most routes that are listed. `kirin explain` finds the others.
const ROUTES: usize = 10;

/// The start of a URL whose address stands for all addresses of the machine.
const ALL_ADDRESSES: [(&str, &str); 2] = [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")];

/// The text, as rows of a label and what belongs to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rows(Vec<(String, String)>);

/// Returns whether somebody reads standard error who wants to be told: not under systemd, not in a
/// pipe, and not with a `KIRIN_LOG` that hides the addresses.
pub fn is_wanted() -> bool {
    std::io::stderr().is_terminal() && tracing::enabled!(tracing::Level::INFO)
}

/// Returns the text. `admin` is the path of the default admin socket.
pub fn text(configured: &Configured, served: Option<&Served>, admin: Option<&Path>) -> String {
    let mut rows = Rows::default();
    rows.add_urls(&configured.urls());
    rows.add_routes(configured);
    rows.add_apps(configured);
    rows.add_store(configured);
    let admin = match (&configured.config.admin, admin) {
        (Some(address), _) => Some(address.to_string()),
        (None, Some(path)) => Some(format!("unix:{}", path.display())),
        (None, None) => None,
    };
    rows.add("admin", admin.unwrap_or_else(|| "no socket: see the log above".into()));
    rows.add_next(served);
    rows.text(colours::are_wanted())
}

impl Rows {
    /// Adds a row. The label of a row that continues another is empty.
    fn add(&mut self, label: &str, text: impl AsRef<str>) {
        // Names of files and hosts could have characters that control a terminal.
        self.0.push((label.to_owned(), plain(text.as_ref())));
    }

    fn add_urls(&mut self, urls: &[String]) {
        for (at, url) in urls.iter().enumerate() {
            let label = if at == 0 { "open" } else { "" };
            let for_all = ALL_ADDRESSES.iter().find(|(all, _)| url.contains(&format!("//{all}:")));
            self.add(
                label,
                match for_all {
                    Some((all, local)) => {
                        let local = url.replacen(all, local, 1);
                        format!("{local} and all other addresses of this machine")
                    }
                    None => url.clone(),
                },
            );
        }
    }

    fn add_routes(&mut self, configured: &Configured) {
        let gateway = &configured.config.gateway;
        let of_site = |(at, site): (usize, &'_ SiteConfig)| {
            let site_label = gateway.site_label(at).unwrap_or_default().into_owned();
            let described = |route: &RouteConfig| (described(&site_label, route), of(route));
            site.routes.iter().map(described).collect::<Vec<_>>()
        };
        let all: Vec<_> = gateway.sites.iter().enumerate().flat_map(of_site).collect();
        let listed = all.get(..ROUTES).unwrap_or(&all);
        let width = listed.iter().map(|(path, _)| path.chars().count()).max().unwrap_or_default();
        for (at, (path, what)) in listed.iter().enumerate() {
            self.add(if at == 0 { "serves" } else { "" }, format!("{path:width$}  {what}"));
        }
        let more = all.len() - listed.len();
        if more > 0 {
            self.add("", format!("and {more} more: kirin explain URL says which route answers"));
        }
    }

    fn add_apps(&mut self, configured: &Configured) {
        for (at, app) in configured.config.apps.iter().enumerate() {
            let workers = number_of(app.workers as u64, "worker");
            let text = format!("{}: {}, {workers}", app.name, app.code);
            self.add(if at == 0 { "apps" } else { "" }, text);
        }
    }

    fn add_store(&mut self, configured: &Configured) {
        let store = &configured.config.store;
        let mut text = bytes(store.engine.memory_bytes as u64);
        for address in &store.memcached {
            let _ = write!(text, ", memcached on {address}");
        }
        self.add("store", text);
    }

    fn add_next(&mut self, served: Option<&Served>) {
        self.add("next", "kirin top           what it does now; kirin status in short");
        let changes = match served {
            Some(Served::Config(_)) => "kirin reload        takes a changed configuration",
            _ => "kirin reload --apps loads changed code",
        };
        self.add("", format!("{changes}, without losing a request"));
        if matches!(served, Some(Served::Target(_) | Served::Server(_)))
            && let Some(arguments) = own_arguments()
        {
            let text = format!("kirin {arguments} --print-config > kirin.toml    to change it");
            self.add("", text);
        }
        self.add("", "Ctrl-C ends it");
    }

    /// Returns the rows below each other.
    fn text(&self, is_coloured: bool) -> String {
        let (dim, bold, plain) =
            if is_coloured { ("\x1b[2m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        let mut text = format!("\n  {bold}kirin {}{plain}\n\n", env!("CARGO_PKG_VERSION"));
        for (label, line) in &self.0 {
            let _ = writeln!(text, "  {dim}{label:7}{plain} {line}");
        }
        text
    }
}

/// Returns the requests that a route is for.
fn described(site: &str, route: &RouteConfig) -> String {
    match route.conditions.is_empty() {
        true => format!("{site}{}", route.path),
        false => format!("{site}{} ({})", route.path, route.conditions),
    }
}

/// Says what answers the requests of a route.
fn of(route: &RouteConfig) -> String {
    if route.places.is_empty() {
        let redirects = route.rules.redirect.is_some() || route.rules.redirects.is_some();
        return if redirects { "redirect" } else { "refused" }.into();
    }
    let places: Vec<_> = route.places.iter().map(ToString::to_string).collect();
    places.join(", ")
}

/// Returns the arguments of this process as a shell reads them, without `--pid-file`, which
/// `--print-config` does not allow. Returns `None` if one cannot be shown.
fn own_arguments() -> Option<String> {
    let mut arguments = std::env::args_os().skip(1);
    let mut shown = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.to_str()? {
            "--pid-file" => _ = arguments.next(),
            argument if argument.starts_with("--pid-file=") => {}
            argument => shown.push(quoted(argument)?),
        }
    }
    Some(shown.join(" "))
}

/// Returns an argument as a shell reads it.
fn quoted(argument: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if argument.chars().any(char::is_control) {
        return None;
    }
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => Some(argument.to_owned()),
        false => Some(format!("'{}'", argument.replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_written_as_a_shell_reads_them() {
        for (argument, expected) in [
            ("app.psgi", Some("app.psgi")),
            ("http://127.0.0.1:3000", Some("http://127.0.0.1:3000")),
            ("sp ace", Some("'sp ace'")),
            ("*:80", Some("'*:80'")),
            ("$HOME", Some("'$HOME'")),
            ("it's", Some("'it'\\''s'")),
            ("", Some("''")),
            ("a\u{1b}[31m", None),
        ] {
            assert_eq!(quoted(argument).as_deref(), expected);
        }
    }

    #[test]
    fn a_row_has_no_characters_that_control_a_terminal() {
        let mut rows = Rows::default();
        rows.add("serves", "/  files:e\u{1b}[31mvil\u{7}");
        assert_eq!(rows.0[0].1, "/  files:e\u{fffd}[31mvil\u{fffd}");
    }
}
