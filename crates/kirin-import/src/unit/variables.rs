//! Variables of Unit: `$uri`, `${host}` and others.

/// A part of a text with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text that stands for itself.
    Text(&'a str),
    /// The name of a variable, without `$` and braces.
    Variable(&'a str),
}

/// Returns the parts of a text.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        let (before, behind) = rest.split_at(start);
        let behind = behind.get(1..).unwrap_or_default();
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        // A name ends before the next variable, so that the search is short.
        let end = behind.get(1..).and_then(|name| name.find(['}', '$']));
        let braced = behind.strip_prefix('{').and_then(|name| name.split_at_checked(end?));
        let braced = braced.and_then(|(name, after)| Some((name, after.strip_prefix('}')?)));
        let (name, after) = braced.unwrap_or_else(|| behind.split_at(name_length(behind)));
        parts.push(Part::Variable(name));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// Returns a text as a value of Kirin that may have variables, or the variable that Kirin lacks.
pub(crate) fn template(text: &str) -> Result<String, &str> {
    let mut value = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => value.push_str(&crate::text::without_variables(text)),
            Part::Variable("dollar") => value.push('$'),
            Part::Variable(name) => {
                let variable = variable(name).ok_or(name)?;
                value.push_str(&format!("{{{variable}}}"));
            }
        }
    }
    Ok(value)
}

/// Returns the variable of Kirin for one of Unit.
fn variable(name: &str) -> Option<String> {
    let found = match name {
        "host" => "host",
        "uri" | "request_uri" => "path",
        "remote_addr" => "client",
        "request_id" => "request_id",
        _ => {
            let dashes = |name: &str| name.replace('_', "-");
            let header =
                name.strip_prefix("header_").map(|name| format!("header.{}", dashes(name)));
            let argument = name.strip_prefix("arg_").map(|name| format!("query.{name}"));
            let cookie = name.strip_prefix("cookie_").map(|name| format!("cookie.{name}"));
            return header.or(argument).or(cookie);
        }
    };
    Some(found.to_owned())
}

fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_with_and_without_braces() {
        let expected =
            [Part::Text("/a/"), Part::Variable("host"), Part::Text("x"), Part::Variable("uri")];
        assert_eq!(parts("/a/${host}x$uri"), expected);
    }

    #[test]
    fn a_template_names_the_variable_that_kirin_lacks() {
        assert_eq!(template("{a} $header_x_tenant$dollar"), Ok("{{a} {header.x-tenant}$".into()));
        assert_eq!(template("$njs"), Err("njs"));
    }
}
