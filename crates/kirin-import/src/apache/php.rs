//! Whether scripts in PHP run, and in which server.

use crate::apache::backend::Balancers;
use crate::apache::file_names::FileNames;
use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::section::Section;

/// The server of scripts in PHP.
#[derive(Debug, Default, Clone)]
pub(crate) struct Php {
    /// The address of the server, as Kirin writes it.
    pub(crate) server: Option<String>,
    /// Whether scripts run, in this server or in Apache itself.
    pub(crate) runs: bool,
    /// The script that gets all paths that name none.
    pub(crate) front: Option<String>,
}

impl Php {
    /// Looks for handlers of PHP in directives and their sections.
    pub(crate) fn find(&mut self, directives: &[Directive], draft: &mut Draft) {
        for directive in directives {
            let handler = directive.arguments.iter().any(|word| word.contains("httpd-php"));
            match directive.name.as_str() {
                "addhandler" | "addtype" | "sethandler" if handler => self.inside(directive, draft),
                name if name.starts_with("php") => self.runs = true,
                "files" | "filesmatch" => self.files(directive, draft),
                "proxypassmatch" if directive.argument(1).contains("fcgi://") => {
                    self.pass_match(directive, draft);
                }
                "fallbackresource" if directive.argument(0).ends_with(".php") => {
                    self.runs = true;
                    let front = directive.argument(0).trim_start_matches('/');
                    self.front = Some(front.to_owned());
                }
                "directoryindex" if directive.argument(0) == "index.php" => self.runs = true,
                _ => self.find(directive.body(), draft),
            }
        }
    }

    /// Reads a handler that runs scripts inside of Apache.
    fn inside(&mut self, directive: &Directive, draft: &mut Draft) {
        self.runs = true;
        let text =
            "run the scripts in php-fpm, and write its socket into `servers` (docs/proxy.md)";
        draft.notes.left_out(&directive.place, &directive.line, text);
    }

    /// Reads `<FilesMatch \.php$>` with a handler.
    fn files(&mut self, section: &Directive, draft: &mut Draft) {
        let FileNames::Ends(ends) = FileNames::read(section) else { return };
        if !ends.iter().any(|end| end == ".php") {
            return;
        }
        for directive in section.body().iter().filter(|inner| inner.name == "sethandler") {
            match directive.argument(0).strip_prefix("proxy:") {
                Some(url) => {
                    self.runs = true;
                    self.server = Balancers::address(url).or(self.server.take());
                    draft.notes.carried(&directive.place, &directive.line, "");
                }
                None if directive.argument(0).contains("php") => self.inside(directive, draft),
                None => {}
            }
        }
        draft.notes.carried(&section.place, &section.line, "");
    }

    /// Reads `ProxyPassMatch ^/(.*\.php)$ fcgi://127.0.0.1:9000/srv/www/$1`.
    fn pass_match(&mut self, directive: &Directive, draft: &mut Draft) {
        let url = directive.argument(1);
        let server = match url.split_once("$1") {
            Some((start, _)) => start,
            None => url,
        };
        if !directive.argument(0).contains(".php") {
            return;
        }
        self.runs = true;
        self.server = Balancers::address(server).or(self.server.take());
        draft.notes.carried(&directive.place, &directive.line, "");
    }

    /// Returns the place for scripts below a directory.
    pub(crate) fn place(&self, root: &str, comment: &str, draft: &mut Draft) -> Option<String> {
        if !self.runs {
            return None;
        }
        let mut keys = Section::default();
        keys.comment(comment);
        let server = self.server.clone().unwrap_or_else(|| {
            keys.comment("Write the socket of php-fpm.");
            "fastcgi://unix:/run/php/php-fpm.sock".to_owned()
        });
        keys.set("servers", vec![server]);
        keys.set("root", root);
        if let Some(front) = self.front.as_ref().filter(|front| *front != "index.php") {
            keys.set("index", front.as_str());
        }
        Some(format!("proxy:{}", draft.upstreams.add("php", keys)))
    }
}
