//! Tables as HTML. Paths come from strangers, so every text is escaped here.

use std::fmt::Write;

use crate::live::table::ViewTable;

/// Appends a table with its title.
pub fn push_table(html: &mut String, table: &ViewTable, note: &str) {
    push(html, format_args!("<section><h2>{}", Escaped(table.title)));
    if !note.is_empty() {
        push(html, format_args!(" <span class=\"note\">{}</span>", Escaped(note)));
    }
    html.push_str("</h2>\n<div class=\"scroll\"><table>\n");
    let class = |is_number| if is_number { " class=\"n\"" } else { "" };
    if table.columns.iter().all(|column| !column.name.is_empty()) {
        html.push_str("<thead><tr>");
        for column in &table.columns {
            let name = Escaped(column.name);
            push(html, format_args!("<th scope=\"col\"{}>{name}</th>", class(column.is_number)));
        }
        html.push_str("</tr></thead>\n");
    }
    html.push_str("<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in table.columns.iter().zip(row) {
            let text = Escaped(&cell.text);
            push(html, format_args!("<td{}>{text}</td>", class(column.is_number)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div></section>\n");
}

/// Appends formatted text.
pub fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    _ = html.write_fmt(text);
}

/// A text that is written so that it is the same text in HTML, also in a quoted attribute.
pub struct Escaped<'a>(pub &'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}
