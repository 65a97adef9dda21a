//! The global options, in the block at the top of a Caddyfile.

use crate::caddy::address::Ports;
use crate::caddy::matchers::clients;
use crate::caddy::middleware::bytes;
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::section::Section;
use crate::text::size;
use crate::times::time_with_unit;

/// The global options.
#[derive(Debug, Default)]
pub(crate) struct Global {
    pub(crate) ports: Ports,
    pub(crate) email: Option<String>,
    /// The address of the authority.
    pub(crate) directory: Option<String>,
    /// Whether http is redirected to https.
    pub(crate) no_redirects: bool,
    /// Whether certificates come from an authority of Caddy's own.
    pub(crate) local_certificates: bool,
    /// The addresses that sites without `bind` listen on.
    pub(crate) bind: Vec<String>,
    /// The keys of all listeners.
    pub(crate) listener: Section,
}

impl Global {
    /// Reads the options.
    pub(crate) fn read(options: &[Directive], draft: &mut Draft) -> Self {
        let mut global = Self::default();
        for option in options {
            global.option(option, draft);
        }
        global
    }

    fn option(&mut self, option: &Directive, draft: &mut Draft) {
        let first = option.argument(0).unwrap_or_default();
        let line = option.line();
        let port = first.parse::<u16>().ok();
        let text = match option.name() {
            "http_port" if port.is_some() => {
                self.ports.http = port.unwrap_or(80);
                ""
            }
            "https_port" if port.is_some() => {
                self.ports.https = port.unwrap_or(443);
                ""
            }
            "email" => {
                self.email = Some(first.to_owned());
                ""
            }
            "acme_ca" => {
                self.directory = Some(first.to_owned());
                ""
            }
            "auto_https" => {
                match first {
                    "off" => self.ports.automatic = false,
                    "disable_redirects" => self.no_redirects = true,
                    _ => self.local_certificates = true,
                }
                ""
            }
            "default_bind" => {
                self.bind = option.arguments().to_vec();
                ""
            }
            "local_certs" => {
                self.local_certificates = true;
                let text = "Kirin has no authority of its own: put certificates into the files";
                draft.notes.left_out(&option.place, &line, text);
                return;
            }
            "servers" => {
                option.inner().iter().for_each(|inner| self.server_option(inner, draft));
                ""
            }
            name => {
                let (by_itself, text) = other(name);
                if by_itself {
                    draft.notes.by_itself(&option.place, &line, text);
                } else {
                    draft.notes.left_out(&option.place, &line, text);
                }
                return;
            }
        };
        draft.notes.carried(&option.place, &line, text);
    }

    fn server_option(&mut self, option: &Directive, draft: &mut Draft) {
        let words: Vec<_> = option.arguments().iter().map(String::as_str).collect();
        let line = option.line();
        let done = match (option.name(), words.as_slice()) {
            ("trusted_proxies", ["static", networks @ ..]) => match clients(networks) {
                Ok(networks) => {
                    self.listener.set("trusted", networks);
                    true
                }
                Err(_) => false,
            },
            ("client_ip_headers", [field]) => {
                self.listener.set("forwarded", *field);
                true
            }
            ("max_header_size", [text]) => match bytes(text) {
                Some(bytes) => {
                    self.listener.set("head_limit", size(bytes));
                    true
                }
                None => false,
            },
            ("timeouts", _) => {
                self.timeouts(option, draft);
                true
            }
            ("protocols" | "keepalive_interval" | "trusted_proxies_strict", _) => {
                let text = "HTTP/1.1 and HTTP/2 are always there, and HTTP/3 with `tls`";
                draft.notes.by_itself(&option.place, &line, text);
                return;
            }
            ("metrics" | "name" | "log_credentials", _) => {
                let text = "write `metrics = \"127.0.0.1:9145\"` (docs/metrics.md)";
                draft.notes.left_out(&option.place, &line, text);
                return;
            }
            ("listener_wrappers", _) => {
                let text = "write `proxy_protocol = true` with `trusted` for the PROXY protocol";
                draft.notes.left_out(&option.place, &line, text);
                return;
            }
            _ => false,
        };
        if done {
            draft.notes.carried(&option.place, &line, "");
        } else {
            draft.notes.left_out(
                &option.place,
                &line,
                "write it into the listeners, if Kirin has it",
            );
        }
    }

    fn timeouts(&mut self, option: &Directive, draft: &mut Draft) {
        for inner in option.inner() {
            let key = match inner.name() {
                "read_header" => "head_timeout",
                "read_body" => "body_timeout",
                "write" => "write_timeout",
                "idle" => "keep_alive",
                _ => {
                    draft.notes.unknown(&inner.place, &inner.line());
                    continue;
                }
            };
            if let Some(time) = time_with_unit(inner.argument(0).unwrap_or_default()) {
                self.listener.set(key, time);
                draft.notes.carried(&inner.place, &inner.line(), "");
            } else {
                draft.notes.left_out(&inner.place, &inner.line(), "a time is such as `30s`");
            }
        }
    }
}

fn other(name: &str) -> (bool, &'static str) {
    match name {
        "admin" | "persist_config" => (true, "commands ask a unix socket (docs/purge.md)"),
        "debug" => (true, "`KIRIN_LOG=debug` in the environment"),
        "grace_period" | "shutdown_delay" => (true, "responses in progress may take 30 s"),
        "skip_install_trust"
        | "default_sni"
        | "renew_interval"
        | "ocsp_stapling"
        | "ocsp_interval"
        | "key_type"
        | "storage_clean_interval" => (true, "Kirin has its own ways (docs/tls.md)"),
        "storage" => (false, "write `state` of `acme` (docs/tls.md)"),
        "acme_eab" => (false, "write `external_account` of `acme` (docs/tls.md)"),
        "acme_dns" | "cert_issuer" | "acme_ca_root" | "preferred_chains" => (
            false,
            "Kirin proves names by HTTP and TLS, not by DNS. Write `certificates` (docs/tls.md)",
        ),
        "on_demand_tls" => (false, "names stand in `acme` (docs/tls.md)"),
        "order" => (false, "Kirin has an order of its own (docs/routes.md): look at the routes"),
        "log" => (false, "errors go to standard error. `access_log` is a key of listeners"),
        _ => (false, "not known here"),
    }
}
