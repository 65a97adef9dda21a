//! Which Python runs an application: that of a virtual environment, if there is one.

use std::path::{Path, PathBuf};

use crate::config::AppConfig;

/// The names of virtual environments that are looked for. uv, Poetry and PDM make `.venv`.
const NAMES: [&str; 3] = [".venv", "venv", "env"];

/// Returns the interpreter of the environment in `VIRTUAL_ENV`, or else of one in the directory of
/// the application or of its file, or else `python3` in `PATH`. `VIRTUAL_ENV` in `env` of the
/// application comes before that of Kirin's own environment.
pub(super) fn interpreter(config: &AppConfig) -> PathBuf {
    let in_app = config.env.iter().find(|(name, _)| name == "VIRTUAL_ENV");
    let named = in_app.map(|(_, value)| PathBuf::from(value));
    let named = named.or_else(|| std::env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    let directory = config.directory.as_deref().unwrap_or(Path::new("."));
    if let Some(environment) = named.filter(|environment| !environment.as_os_str().is_empty()) {
        return directory.join(environment).join("bin/python");
    }
    let of_file = config.code.file().and_then(Path::parent);
    [Some(directory), of_file]
        .into_iter()
        .flatten()
        .flat_map(|directory| NAMES.map(|name| directory.join(name)))
        .find(|environment| environment.join("pyvenv.cfg").is_file())
        .map_or_else(|| "python3".into(), |environment| environment.join("bin/python"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app_code::AppCode;

    #[test]
    fn the_environment_of_the_project_is_found() {
        let site = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            std::fs::create_dir_all(site.path().join(name)).unwrap();
            std::fs::write(site.path().join(name).join("pyvenv.cfg"), "").unwrap();
            site.path().join(name).join("bin/python")
        };
        let mut config =
            AppConfig::new("web", AppCode::parse("src/app.py", site.path(), site.path()));
        config.directory = Some(site.path().to_owned());
        // A directory of this name need not be an environment.
        std::fs::create_dir_all(site.path().join("env/bin")).unwrap();
        // The tests may run in an environment.
        if std::env::var_os("VIRTUAL_ENV").is_none() {
            assert_eq!(interpreter(&config), Path::new("python3"));
            let of_file = make("src/venv");
            assert_eq!(interpreter(&config), of_file);
            let of_project = make(".venv");
            assert_eq!(interpreter(&config), of_project);
        }
        config.env.push(("VIRTUAL_ENV".into(), "/srv/venv".into()));
        assert_eq!(interpreter(&config), Path::new("/srv/venv/bin/python"));
        config.env[0].1 = "other".into();
        assert_eq!(interpreter(&config), site.path().join("other/bin/python"));
    }
}
