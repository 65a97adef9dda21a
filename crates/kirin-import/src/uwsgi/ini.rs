//! The lines of an INI file as uWSGI reads them.

/// A line with an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IniLine<'a> {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The section that it is in.
    pub(crate) section: &'a str,
    pub(crate) key: &'a str,
    /// The value. `None`: there is no `=`.
    pub(crate) value: Option<&'a str>,
}

/// Returns the options of a text.
///
/// # Errors
/// Returns the line of an error, and what is wrong.
pub(crate) fn lines(text: &str) -> Result<Vec<IniLine<'_>>, (usize, String)> {
    let mut found = Vec::new();
    let mut section = "";
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split_once(']').map(|(name, _)| name);
            section = name.ok_or_else(|| (number, "a section without its `]`".to_owned()))?;
            continue;
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim_start())),
            None => (line, None),
        };
        if key.is_empty() {
            return Err((number, "there is no name before the `=`".to_owned()));
        }
        found.push(IniLine { line: number, section, key, value });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_sections_and_lines() {
        let lines = lines("[uwsgi]\n; c\n# d\nmaster\n env = A=b \n").expect("INI");
        let line = |line, key, value| IniLine { line, section: "uwsgi", key, value };
        assert_eq!(lines, [line(4, "master", None), line(5, "env", Some("A=b"))]);
    }

    #[test]
    fn an_error_has_its_line() {
        assert_eq!(lines("\n[a").map_err(|(line, _)| line), Err(2));
        assert_eq!(lines("= a").map_err(|(line, _)| line), Err(1));
    }
}
