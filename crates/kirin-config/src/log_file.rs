//! Whether the file of an access log can be written.

use std::path::Path;

use rustix::fs::{Access, access};

/// Says why this process could not append to a file, or create it. It opens nothing.
pub fn obstacle(file: &Path) -> Option<String> {
    let name = file.display();
    if file.is_dir() {
        return Some(format!("{name} is a directory: name a file"));
    }
    let of_user = "run `kirin check` as the user that Kirin starts as, and if that is this user, \
                   give it the right";
    if file.exists() {
        let error = access(file, Access::WRITE_OK).err()?;
        return Some(format!("{name} cannot be written ({error}); {of_user}"));
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let directory = parent.display();
    if !parent.is_dir() {
        return Some(format!("there is no directory {directory}: create it"));
    }
    let error = access(parent, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("{name} cannot be created ({error}); {of_user}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_can_be_written_has_no_obstacle() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("old.log"), "").unwrap();
        for (name, expected) in [
            ("old.log", None),
            ("new.log", None),
            ("", Some("is a directory")),
            ("gone/new.log", Some("there is no directory")),
            ("old.log/new.log", Some("there is no directory")),
        ] {
            let found = obstacle(&path(name));
            let is_expected = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{name}: {found:?}");
        }
    }
}
