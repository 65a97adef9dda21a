//! `default.vcl`: the configuration of Varnish.
//!
//! Kirin has no program like VCL. The usual statements of `vcl_recv`, `vcl_backend_response` and
//! `vcl_deliver` become keys of routes, and all others are left out, with their text.

mod backends;
mod branches;
mod conditions;
mod expressions;
mod reader;
mod statements;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use crate::draft::Draft;
use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Place};
use crate::steps::{Scope, sites};
use crate::vcl::backends::access_list;
use crate::vcl::reader::VclReader;
use crate::vcl::tokens::line_of;

/// Imports a configuration of Varnish.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let declarations = tree::read(file, files)?;
    let start = Place { file: file.to_owned(), line: 1 };
    let mut draft = Draft::default();
    let section = &mut draft.listener("*:80").section;
    section.comment("Write the address that `varnishd -a` had.");
    let mut reader = VclReader::new(&mut draft);
    for declaration in &declarations {
        let line = line_of(&declaration.words);
        match declaration.word(0) {
            "backend" | "probe" => reader.backends.declare(declaration, reader.draft),
            "acl" => access_list(declaration, &mut reader.lists, reader.draft),
            "vcl" => reader.draft.notes.by_itself(&declaration.place, &line, "a version"),
            "import" => {
                let text = "a module: the statements that use it are below";
                reader.draft.notes.by_itself(&declaration.place, &line, text);
            }
            "sub" => {}
            _ => reader.draft.notes.unknown(&declaration.place, &line),
        }
    }
    let order = [
        "vcl_init",
        "vcl_recv",
        "vcl_hash",
        "vcl_backend_fetch",
        "vcl_backend_response",
        "vcl_deliver",
    ];
    for name in order {
        let found = declarations.iter().filter(|d| d.word(0) == "sub" && d.word(1) == name);
        for declaration in found {
            reader.subroutine = name.to_owned();
            reader.body(&declaration.body, &Scope::default(), 0)?;
        }
    }
    let others = declarations.iter().filter(|d| d.word(0) == "sub" && !order.contains(&d.word(1)));
    for declaration in others {
        reader.other(&declaration.body, declaration.word(1), 0);
    }
    let steps = reader.steps(&start)?;
    draft.sites = sites(steps, &start)?;
    let mut import = draft.finish(&start)?;
    import.notes.sort_by(|one, other| {
        (&one.place.file, one.place.line).cmp(&(&other.place.file, other.place.line))
    });
    Ok(import)
}
