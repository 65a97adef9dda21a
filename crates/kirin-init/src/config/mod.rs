//! The text of a `kirin.toml`: settings, comments, and settings that are off.

mod places;
mod toml_text;

use crate::config::toml_text::TomlText;
use crate::found::{Found, Plan};

/// Returns the configuration for a project, with comments.
///
/// A line that begins with `#` and no space is a setting that is off. Each of them is good on its
/// own when the `#` is removed.
pub fn config(found: &Found) -> String {
    let mut text = TomlText::default();
    header(&mut text, found);
    listeners(&mut text, found);
    match &found.plan {
        Plan::Psgi(plan) => places::psgi(&mut text, plan),
        Plan::Python(plan) => places::python(&mut text, plan, &found.steps),
        Plan::Ruby(plan) => places::ruby(&mut text, plan, &found.steps),
        Plan::Php(plan) => places::php(&mut text, plan),
        Plan::Server(plan) => places::server(&mut text, plan, &found.steps),
        Plan::Site(plan) => places::site(&mut text, plan, &found.steps),
    }
    text.finish()
}

fn header(text: &mut TomlText, found: &Found) {
    let evidence = found.evidence.first().map(ToString::to_string).unwrap_or_default();
    text.comment("The configuration of Kirin for this project, written by `kirin init`.");
    text.comment(&format!("It serves {}: {evidence}.", found.name()));
    for unused in &found.unused {
        text.comment(&format!("Not used: {unused}."));
    }
    text.comment("");
    text.comment(
        "A line with `#` and no space after it is a setting that is off. Remove the `#` to turn it \
         on, then run `kirin check`. `kirin config-reference` prints all settings.",
    );
    text.blank();
}

/// Writes the listeners as one list, so that each line of it can be turned on alone.
fn listeners(text: &mut TomlText, found: &Found) {
    text.comment("The addresses of Kirin. Only this machine reaches 127.0.0.1.");
    text.line("listener = [");
    let log = "access_log = { path = \"stderr\", format = \"terminal\" }";
    text.line(&format!("    {{ address = \"{}\", {log} }},", found.address()));
    text.comment_inside("All networks:");
    text.off_inside("{ address = \"*:80\" },");
    text.comment_inside(
        "https. Kirin gets the certificate itself, for which it needs port 80, too:",
    );
    text.off_inside("{ address = \"*:443\", tls = { acme = { domains = [\"example.org\"] } } },");
    text.line("]");
    text.blank();
}
