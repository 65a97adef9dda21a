//! Server side includes, page by page, compared with nginx itself (Debian's nginx-light).

mod alike;
mod differences;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kirin_tests::{Kirin, Site, wait_for};

use alike::{ALIKE, ALIKE_TOO};
use differences::OTHERWISE;

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ntry = [\"files:public\"]\nssi = true\n";

const NGINX_CONFIG: &str = r"
daemon off; master_process off; pid nginx.pid; error_log error.log crit;
events {}
http {
    access_log off; types { text/html html; text/plain txt; }
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    server { listen unix:nginx.sock; server_name test; root public; ssi on;
             # Only an answer of another server can be included into a variable.
             location /up/ { proxy_pass http://unix:plain.sock; } }
    server { listen unix:plain.sock; server_name test; root public; }
}";

struct Nginx {
    process: Child,
    socket: PathBuf,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Nginx {
    fn start(site: &Site) -> Self {
        let config = NGINX_CONFIG.replace("unix:", &format!("unix:{}/", site.root().display()));
        fs::write(
            site.path("nginx.conf"),
            config.replace("root public", &format!("root {}", site.path("public").display())),
        )
        .expect("nginx.conf");
        let process = Command::new("nginx")
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(site.root())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("nginx (Debian package nginx-light)");
        let nginx = Self { process, socket: site.path("nginx.sock") };
        wait_for("nginx", || UnixStream::connect(&nginx.socket).ok());
        nginx
    }

    fn get(&self, target: &str, fields: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("nginx");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}\r\n")
            .expect("send");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("a reply");
        unchunked(&String::from_utf8_lossy(&reply))
    }
}

/// Returns the body of a response that ends with the connection, perhaps in chunks.
fn unchunked(reply: &str) -> String {
    let Some((head, mut rest)) = reply.split_once("\r\n\r\n") else { return "no answer".into() };
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return rest.to_owned();
    }
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
        if size == 0 {
            break;
        }
        body += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

const ARGUMENTS: &str = "name=alice&x=1&empty=&path=/d/";
const FIELDS: &str = "Cookie: tag=<b>&; quote='; word=b c\r\nX-Field: value\r\n";

/// Both servers, with the same files.
struct Both {
    site: Site,
    nginx: Nginx,
    kirin: Kirin,
    pages: usize,
}

impl Both {
    fn start() -> Self {
        let site = Site::new()
            .with("public/d/part.html", "(<!--# echo var=\"arg_name\" default=\"nobody\" -->)")
            .with("public/d/nested.html", "[<!--# include virtual=\"part.html?name=n\" -->]")
            .with("public/d/text.html", "text")
            .with("public/d/head.html", "[<!--# echo var=\"title\" -->]")
            .with("public/d/outer.html", "(<!--# include virtual=\"head.html\" -->)")
            .with("public/d/vars.html", "<!--# set var=\"title\" value=\"theirs\" -->vars ")
            .with("public/d/broken.html", "<!--# nonsense -->")
            .with("public/up/text.html", "<up>")
            .with("public/d/empty.html", "")
            .with("public/d/plain.txt", "plain <!--# echo var=\"arg_x\" -->");
        let nginx = Nginx::start(&site);
        let kirin = Kirin::start(&site, CONFIG);
        Self { site, nginx, kirin, pages: 0 }
    }

    /// Returns the results of nginx and of Kirin.
    fn show(&mut self, page: &str) -> (String, String) {
        self.pages += 1;
        let path = format!("d/page{}.html", self.pages);
        fs::write(self.site.path("public").join(&path), page).expect("a page");
        let target = format!("/{path}?{ARGUMENTS}");
        let ours = self.kirin.connect().request("GET", &target, FIELDS).text();
        (self.nginx.get(&target, FIELDS), ours)
    }
}

#[test]
fn pages_are_rendered_exactly_as_by_nginx() {
    let mut both = Both::start();
    let mut different = String::new();
    for page in ALIKE.iter().chain(ALIKE_TOO) {
        let (nginx, ours) = both.show(page);
        if nginx != ours {
            different += &format!("page:  {page}\nnginx: {nginx}\nours:  {ours}\n\n");
        }
    }
    assert!(different.is_empty(), "\n{different}");
}

#[test]
fn differences_from_nginx_are_intended() {
    let mut both = Both::start();
    for (page, shown, reason) in OTHERWISE {
        let (nginx, ours) = both.show(page);
        assert_eq!(ours, *shown, "{page}: {reason}");
        assert_ne!(ours, nginx, "{page}: nginx does the same by now: {reason}");
    }
}
