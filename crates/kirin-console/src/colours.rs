//! Whether people want colours.

/// Returns whether a terminal gets colours: not if the user has set `NO_COLOR`
/// (<https://no-color.org>), and not if the terminal has none.
pub fn are_wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let has_none = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    !no_color && !has_none
}
