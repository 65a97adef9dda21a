//! Fields of requests and responses.

use toml::{Table, Value};

use crate::caddy::placeholders::template;
use crate::draft::one_line;
use crate::text::is_settable;

/// Reads a field: `Name value`, `-Name`, `+Name value`, `?Name value` or `>Name value`.
pub(crate) fn field(words: &[String], fields: &mut Table, lacking: &mut Vec<String>) {
    let (name, values) = match words.split_first() {
        Some((name, values)) => (name.as_str(), values),
        None => return,
    };
    let name = name.trim_end_matches(':');
    let plain = name.trim_start_matches(['-', '+', '?', '>']);
    let value = match (name.starts_with('-'), values) {
        (true, []) => Some(String::new()),
        (false, [value]) => template(value).ok(),
        _ => None,
    };
    match value.filter(|_| is_settable(plain)) {
        Some(value) => drop(fields.insert(plain.to_owned(), Value::from(value))),
        None => lacking.push(one_line(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_and_removed_as_a_whole() {
        let (mut fields, mut lacking) = (Table::new(), Vec::new());
        for line in ["X-A b", "-X-B", "+X-C {host}", "X-D e f", "Date now", "X-E {unknown.name}"] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            field(&words, &mut fields, &mut lacking);
        }
        assert_eq!(fields.to_string(), "X-A = \"b\"\nX-B = \"\"\nX-C = \"{host}\"\n");
        assert_eq!(lacking, ["X-D", "Date", "X-E"]);
    }
}
