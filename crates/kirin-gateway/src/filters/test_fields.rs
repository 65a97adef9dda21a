//! For tests: fields as text.

use kirin_http::FieldLines;

/// Returns the fields of these lines, which are `NAME: VALUE`.
pub fn lines(text: &str) -> FieldLines {
    let mut fields = FieldLines::new();
    for line in text.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        fields.try_push(name.as_bytes(), value.as_bytes()).unwrap();
    }
    fields
}

/// Returns the fields as such lines.
pub fn text(fields: &FieldLines) -> String {
    let mut wire = Vec::new();
    fields.write_to(&mut wire);
    String::from_utf8(wire).unwrap().replace("\r\n", "\n").trim_end().to_owned()
}
