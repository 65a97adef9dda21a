//! The log of requests: `logto`, `req-logger` and `log-format`.

use toml::{Table, Value};

use crate::draft::Draft;
use crate::uwsgi::options::UwsgiOption;

/// Where the log goes, and in which format.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    path: Option<String>,
    format: Option<String>,
    off: bool,
}

impl RequestLog {
    /// Reads an option. Returns whether it is one about the log.
    pub(crate) fn option(&mut self, option: &UwsgiOption, draft: &mut Draft) -> bool {
        let directive = option.directive();
        match option.key.as_str() {
            "logto" | "logto2" | "daemonize" | "daemonize2" | "req-logger" | "logger" => {
                let path = option.value.strip_prefix("file:").unwrap_or(&option.value);
                let path = match path.split_once(':') {
                    Some(("syslog" | "rsyslog", _)) => "syslog",
                    None if path == "syslog" => path,
                    None if path == "stdio" => "stdout",
                    None if path.starts_with('/') => path,
                    _ => {
                        let text = "write `access_log` of a listener (docs/access-log.md)";
                        draft.notes.left_out(&option.place, &directive, text);
                        return true;
                    }
                };
                self.path = Some(path.to_owned());
                let text = "The lines of requests. Errors go to standard error, and Kirin stays \
                            in the foreground, for systemd.";
                draft.notes.carried(&option.place, &directive, text);
            }
            "log-format" | "logformat" => match directives(&option.value) {
                Ok(format) => {
                    self.format = Some(format);
                    draft.notes.carried(&option.place, &directive, "");
                }
                Err(name) => {
                    let text = format!(
                        "Kirin has no value for `%({name})`: write a format (docs/access-log.md)"
                    );
                    draft.notes.left_out(&option.place, &directive, &text);
                }
            },
            "disable-logging" => {
                self.off = true;
                draft.notes.by_itself(
                    &option.place,
                    &directive,
                    "without `access_log` no request \
                                                                  is logged",
                );
            }
            "log-maxsize" | "log-backupname" => {
                let text = "use logrotate, and USR1 (docs/signals.md)";
                draft.notes.left_out(&option.place, &directive, text);
            }
            _ => return false,
        }
        true
    }

    /// Writes the log into all listeners.
    pub(crate) fn finish(self, draft: &mut Draft) {
        let Some(path) = self.path.filter(|_| !self.off) else { return };
        let log = match self.format {
            None => Value::from(path),
            Some(format) => Value::Table(Table::from_iter([
                ("path".to_owned(), Value::from(path)),
                ("format".to_owned(), Value::from(format)),
            ])),
        };
        for listener in &mut draft.listeners {
            listener.section.set("access_log", log.clone());
        }
    }
}

/// Returns the directives of Kirin for a format of uWSGI, or the variable that Kirin lacks.
fn directives(format: &str) -> Result<String, &str> {
    let mut written = String::new();
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        let (before, behind) = rest.split_at(start);
        written.push_str(before);
        let name = behind.strip_prefix("%(").and_then(|name| name.split_once(')'));
        match name {
            Some((name, after)) => {
                written.push_str(directive(name).ok_or(name)?);
                rest = after;
            }
            None => {
                written.push_str("%%");
                rest = behind.get(1..).unwrap_or_default();
            }
        }
    }
    written.push_str(rest);
    Ok(written.replace("[%{%d/%b/%Y:%H:%M:%S +0000}t]", "%t"))
}

fn directive(name: &str) -> Option<&'static str> {
    Some(match name {
        "addr" => "%h",
        "user" => "%u",
        "ltime" => "%{%d/%b/%Y:%H:%M:%S +0000}t",
        "ctime" | "ftime" => "%{%a %b %e %H:%M:%S %Y}t",
        "time" => "%{sec}t",
        "epoch" => "%{end:sec}t",
        "method" => "%m",
        "uri" => "%{uri}k",
        "proto" => "%H",
        "host" => "%V",
        "status" => "%s",
        "size" | "rsize" => "%B",
        "cl" => "%{bytes_in}k",
        "referer" => "%{Referer}i",
        "uagent" => "%{User-Agent}i",
        "msecs" => "%{ms}T",
        "micros" => "%D",
        "secs" => "%T",
        "pid" => "%P",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_combined_format_of_uwsgi_has_directives() {
        let format = "%(addr) - %(user) [%(ltime)] \"%(method) %(uri) %(proto)\" %(status) %(size) \
                      \"%(referer)\" \"%(uagent)\" 5%";
        assert_eq!(
            directives(format),
            Ok(r#"%h - %u %t "%m %{uri}k %H" %s %B "%{Referer}i" "%{User-Agent}i" 5%%"#.into())
        );
        assert_eq!(directives("%(vsz)"), Err("vsz"));
    }
}
