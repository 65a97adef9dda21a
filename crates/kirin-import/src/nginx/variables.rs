//! nginx's variables, written as those of Kirin.

use std::collections::HashMap;

/// The most variables inside each other by `set`.
const MAX_DEPTH: usize = 8;

/// A part of a text with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// A text.
    Text(&'a str),
    /// The name of a variable, without `$`.
    Variable(&'a str),
}

/// Splits a text into texts and variables.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    let mut searched = 0;
    while let Some(at) = rest.get(searched..).and_then(|text| text.find('$')) {
        let at = searched + at;
        let (before, from) = rest.split_at(at);
        let after = from.get(1..).unwrap_or_default();
        let (name, behind) = match after.strip_prefix('{').and_then(|inside| inside.split_once('}'))
        {
            Some((name, behind)) => (name, behind),
            None => after.split_at(name_length(after)),
        };
        if name.is_empty() {
            searched = at + 1;
            continue;
        }
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(Part::Variable(name));
        rest = behind;
        searched = 0;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// Returns the length of the name at the start of a text. A digit is a name of its own.
fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 1;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Returns the name of the variable if the text is one variable and nothing else.
pub fn only_variable(text: &str) -> Option<&str> {
    match parts(text).as_slice() {
        [Part::Variable(name)] => Some(name),
        _ => None,
    }
}

/// Where a text with variables will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// In a field. A `{` that is no variable is written twice.
    Field,
    /// In a path or an address. A `{` cannot stand there.
    Path,
}

/// What variables of nginx stand for in a location.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// What groups of the regular expression and `set` stand for, already as Kirin writes it.
    pub known: HashMap<String, String>,
    /// Texts of `set` with variables, as nginx writes them.
    pub set: HashMap<String, String>,
}

impl Variables {
    /// Returns `text` with Kirin's variables. An error is the name of the variable that Kirin does
    /// not have.
    pub fn translate(&self, text: &str, target: Target) -> Result<String, String> {
        let mut translated = String::new();
        self.append(text, target, 0, &mut translated)?;
        Ok(translated)
    }

    /// Returns `text` if all of its variables are known texts.
    pub fn constant(&self, text: &str) -> Option<String> {
        let translated = self.translate(text, Target::Path).ok()?;
        (!translated.contains('{')).then_some(translated)
    }

    fn append(
        &self,
        text: &str,
        target: Target,
        depth: usize,
        translated: &mut String,
    ) -> Result<(), String> {
        for part in parts(text) {
            match part {
                Part::Text(text) if target == Target::Field => {
                    translated.push_str(&text.replace('{', "{{"));
                }
                Part::Text(text) if text.contains(['{', '}']) => return Err("{".into()),
                Part::Text(text) => translated.push_str(text),
                Part::Variable(name) => {
                    if let Some(known) = self.known.get(name) {
                        translated.push_str(known);
                    } else if let Some(set) = self.set.get(name).filter(|_| depth < MAX_DEPTH) {
                        self.append(set, target, depth + 1, translated)?;
                    } else {
                        translated.push_str(&kirin_variable(name).ok_or(name)?);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the variable of Kirin with the same value.
pub fn kirin_variable(name: &str) -> Option<String> {
    let fixed = match name {
        "host" | "http_host" => "{host}",
        "uri" | "document_uri" | "request_uri" => "{path}",
        "remote_addr" | "binary_remote_addr" => "{client}",
        "scheme" | "request_scheme" => "{scheme}",
        "request_id" => "{request_id}",
        "remote_user" => "{user}",
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(fixed.into());
    }
    if let Some(argument) = name.strip_prefix("arg_").filter(|name| !name.is_empty()) {
        return Some(format!("{{query.{argument}}}"));
    }
    if let Some(field) = name.strip_prefix("http_").filter(|name| !name.is_empty()) {
        return Some(format!("{{header.{}}}", field_name(field)));
    }
    let cookie = name.strip_prefix("cookie_").filter(|name| !name.is_empty())?;
    Some(format!("{{cookie.{cookie}}}"))
}

/// Returns the name of a field as people write it: `User-Agent` for `user_agent`.
pub fn field_name(variable: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    variable.split('_').map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_the_names_of_kirin() {
        let mut variables = Variables::default();
        variables.known.insert("1".into(), "{id}".into());
        variables.set.insert("backend".into(), "web-$host".into());
        for (text, target, expected) in [
            ("a$host", Target::Field, Ok("a{host}")),
            ("${scheme}://$http_host$request_uri", Target::Path, Ok("{scheme}://{host}{path}")),
            ("/u/$1/$arg_q", Target::Path, Ok("/u/{id}/{query.q}")),
            ("$backend", Target::Path, Ok("web-{host}")),
            ("{\"a\":1}", Target::Field, Ok("{{\"a\":1}")),
            ("$http_x_api_key $cookie_a", Target::Field, Ok("{header.X-Api-Key} {cookie.a}")),
            ("cost 5$ and $", Target::Field, Ok("cost 5$ and $")),
            ("$connection", Target::Field, Err("connection")),
        ] {
            let found = variables.translate(text, target);
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
