//! The adapters, the ways to their workers, and how Kirin is started with them.

use std::path::PathBuf;

use kirin_tests::{ADMIN, Kirin, Site, kirin_command, patient_seconds, repository, wait_for};
use toml::{Table, Value};

/// The keys of `[[app]]` that are times. The table has them in seconds.
const TIMES: [&str; 4] = ["deadline", "max_age", "queue_wait", "start_limit"];

/// An adapter: a language, and the interface of its applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adapter {
    /// PSGI.
    Perl,
    /// WSGI.
    Python,
    /// ASGI, in Python.
    Asgi,
    /// Rack.
    Ruby,
    /// The small adapter of `examples/node-adapter`.
    Node,
    /// The small adapter of `examples/php-adapter`.
    Php,
}

/// A way in which requests and answers go between Kirin and a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOver {
    /// Shared memory.
    Ring,
    /// Sockets, because the adapter has no other way or the configuration allows no shared memory.
    /// Large bodies are descriptors.
    Socket,
    /// Sockets, because the adapter does without its compiled part. All bodies are bytes.
    Plain,
}

impl Adapter {
    /// Those that come with Kirin.
    pub const OWN: [Self; 4] = [Self::Perl, Self::Python, Self::Asgi, Self::Ruby];
    /// Those of the examples, which have only the core of the suite.
    pub const SMALL: [Self; 2] = [Self::Node, Self::Php];

    /// Returns the name in `not_for`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perl => "perl",
            Self::Python => "python",
            Self::Asgi => "asgi",
            Self::Ruby => "ruby",
            Self::Node => "node",
            Self::Php => "php",
        }
    }

    /// Returns the name of the file with the application.
    pub fn file(self) -> &'static str {
        match self {
            Self::Perl => "app.psgi",
            Self::Python => "app.py",
            Self::Asgi => "asgi.py",
            Self::Ruby => "app.ru",
            Self::Node => "app.js",
            Self::Php => "app.php",
        }
    }

    /// Returns the ways in which requests reach the workers.
    pub fn ways(self) -> &'static [HandOver] {
        match self {
            Self::Perl | Self::Python | Self::Ruby => &HandOver::ALL,
            // A worker with several connections does not use the ring. Small adapters have none.
            Self::Asgi | Self::Node | Self::Php => &[HandOver::Socket],
        }
    }

    /// Returns the directory of the adapter if Kirin does not have it.
    fn directory(self) -> Option<PathBuf> {
        let example = match self {
            Self::Perl | Self::Python | Self::Asgi | Self::Ruby => return None,
            Self::Node => "node-adapter",
            Self::Php => "php-adapter",
        };
        Some(repository().join("examples").join(example).join("adapter"))
    }

    /// Returns the application of the suite.
    pub fn application(self) -> String {
        text_of(self.file())
    }

    /// Makes the directory of an application, with the files that its actions need.
    pub fn site(self) -> Site {
        let large: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        Site::new()
            .with(self.file(), self.application())
            .with("suite_tools.py", text_of("suite_tools.py"))
            .with("static/small.txt", "0123456789")
            .with("static/large.bin", large)
            .with("other/file.txt", "other")
            .with("front/file.txt", "front")
    }
}

/// Returns a file of `adapters/suite/apps`.
fn text_of(name: &str) -> String {
    let path = repository().join("adapters/suite/apps").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl HandOver {
    pub const ALL: [Self; 3] = [Self::Ring, Self::Socket, Self::Plain];

    /// Returns the name in `not_over`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Socket => "socket",
            Self::Plain => "plain",
        }
    }

    /// Returns the configuration for an application with more `keys` of `[[app]]`.
    pub fn config(self, adapter: Adapter, keys: &Table) -> String {
        let mut app = Table::new();
        app.insert("name".into(), "web".into());
        app.insert("load".into(), adapter.file().into());
        app.insert("workers".into(), 1.into());
        if let Some(directory) = adapter.directory() {
            app.insert("adapter".into(), directory.to_str().expect("UTF-8").into());
        }
        match self {
            Self::Ring => {}
            // Nothing need be configured if it is the only way.
            Self::Socket if adapter.ways().len() == 1 => {}
            Self::Socket => {
                app.insert("shared_memory".into(), "0B".into());
            }
            Self::Plain => {
                let variables = Table::from_iter([("KIRIN_RING".to_owned(), "0".into())]);
                app.insert("env".into(), Value::Table(variables));
            }
        }
        for (key, value) in keys {
            let value = match value {
                Value::Integer(seconds) if TIMES.contains(&key.as_str()) => {
                    patient_seconds(u64::try_from(*seconds).expect("seconds")).into()
                }
                value => value.clone(),
            };
            app.insert(key.clone(), value);
        }
        let keys: String = app.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        // The front alone answers below /front.
        format!(
            "threads = 1\n{ADMIN}[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\n{keys}\
             [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/mounted\"\nrewrite = \"/\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/front\"\nrewrite = \"/\"\ntry = [\"files:front\"]\n"
        )
    }

    /// Starts Kirin, and waits until all workers are there.
    pub fn start(self, site: &Site, adapter: Adapter, keys: &Table) -> Kirin {
        std::fs::write(site.path("kirin.toml"), self.config(adapter, keys)).expect("kirin.toml");
        let mut command = kirin_command(site);
        let kirin = Kirin::start_command(command.arg("serve").env_remove("KIRIN_RING"));
        self.wait_for_workers(&kirin, keys);
        kirin
    }

    /// Waits until all workers are there. All must get requests in this way.
    ///
    /// # Panics
    /// Panics if they do not.
    pub fn wait_for_workers(self, kirin: &Kirin, keys: &Table) {
        let count = keys.get("workers").and_then(Value::as_integer).unwrap_or(1);
        let count = u64::try_from(count).expect("a number of workers");
        let expected = if self == Self::Ring { count } else { 0 };
        let what = format!("{count} idle workers, {expected} of them with a ring");
        wait_for(&what, || {
            let app = kirin.status()["apps"][0].take();
            let rings = app["rings"].as_array().into_iter().flatten();
            let by_ring: u64 = rings.filter_map(|ring| ring["workers"].as_u64()).sum();
            (app["idle_workers"] == count && by_ring == expected).then_some(())
        });
    }
}
