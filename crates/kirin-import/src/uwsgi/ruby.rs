//! An application in Ruby: what is loaded, and which Ruby loads it.

use crate::draft::Draft;
use crate::uwsgi::options::UwsgiOption;

/// Returns the option that names a Rack application, and the value of `load`. `None` if there is
/// none, or one that Kirin cannot load.
pub(crate) fn application(options: &[UwsgiOption]) -> Option<(&UwsgiOption, String)> {
    let option = options.iter().find(|option| option.key == "rack" && !option.conditional)?;
    let file = option.value.trim();
    // Kirin knows a file in Ruby by its name.
    let is_known = file.ends_with(".ru") || file.ends_with(".rb");
    is_known.then(|| (option, file.to_owned()))
}

/// Reads an option of Ruby. Returns whether it is one.
pub(crate) fn option(option: &UwsgiOption, draft: &mut Draft) -> bool {
    let text = match option.key.as_str() {
        "rack" => {
            let text = "A request may take as long as `deadline` says, which is a minute unless \
                        `harakiri` is set.";
            draft.notes.carried(&option.place, &option.directive(), text);
            return true;
        }
        "rbrequire" | "rb-require" | "ruby-require" | "shared-rbrequire" => {
            "write `require` into the Rack file"
        }
        "gemset" | "rvm-path" => "write the path of its ruby into `interpreter`",
        _ => return false,
    };
    draft.notes.left_out(&option.place, &option.directive(), text);
    true
}
