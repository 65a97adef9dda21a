//! Server side includes, page by page against nginx itself (Debian's nginx-light).

use kirin_tests::{Kirin, Site, wait_for};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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

/// Pages that both make the same of.
const ALIKE: &[&str] = &[
    // Text.
    "",
    "plain <!-- comment --> <!-- # else --> <!-#else--> <!x",
    "<<!--# echo var=\"arg_name\" --><!<!--# echo var=\"arg_x\" --><!x",
    // Variables and how they are written.
    "<!--# echo var=\"arg_name\" -->",
    "<!--#echo var=\"arg_name\"-->",
    "<!--#\n\techo\r\n var = \"arg_name\"\n-->",
    "<!--# echo var='arg_name' -->",
    "<!--# echo var=\"ARG_NAME\" --><!--# echo var=\"Arg_Name\" -->",
    "<!--# echo var=\"none\" -->|<!--# echo var=\"none\" default=\"\" -->|<!--# echo var=\"none\" default=\"no\" -->",
    "<!--# echo default=\"$arg_name <\" var=\"none\" -->",
    "<!--# echo var=\"arg_empty\" default=\"no\" -->|",
    "<!--# echo var=\"no name\" -->|<!--# echo var=\"\" -->|<!--# echo var=\"$arg_name\" -->",
    "<!--# echo var=\"cookie_tag\" --> <!--# echo var=\"cookie_tag\" encoding=\"entity\" -->",
    "<!--# echo var=\"cookie_tag\" encoding=\"none\" -->",
    "<!--# echo var=\"cookie_word\" encoding=\"url\" --> <!--# echo var=\"request_uri\" encoding=\"none\" -->",
    "<!--# echo var=\"uri\" encoding=\"url\" -->",
    "<!--# echo var=\"arg_name\" encoding=\"base64\" -->",
    "<!--# echo var=\"http_x_field\" --> <!--# echo var=\"http_host\" --> <!--# echo var=\"host\" --> <!--# echo var=\"scheme\" -->",
    "<!--# echo var=\"request_method\" --> <!--# echo var=\"query_string\" --> <!--# echo var=\"args\" --> <!--# echo var=\"is_args\" -->",
    "<!--# echo var=\"document_uri\" --> <!--# echo var=\"request\" default=\"no\" --> <!--# echo var=\"server_protocol\" -->",
    // Setting them.
    "<!--# set var=\"a\" value=\"<1>\" --><!--# echo var=\"a\" --><!--# echo var=\"A\" -->",
    "<!--# set var=\"a\" value=\"x$arg_name.${arg_x}y$none.z\" --><!--# echo var=\"a\" -->",
    "<!--# set var=\"a\" value=\"1\" --><!--# set var=\"a\" value=\"${a}2$a\" --><!--# echo var=\"a\" -->",
    "<!--# set var=\"arg_name\" value=\"mine\" --><!--# echo var=\"arg_name\" -->",
    "<!--# set var=\"odd name!\" value=\"1\" --><!--# echo var=\"odd name!\" -->",
    "<!--# set var=\"a\" value=\"\" -->|<!--# echo var=\"a\" default=\"no\" -->|",
    "<!--# set var=\"a\" value=\"\\$5 \\\"q\\\" \\'s\\' \\\\ \\n\" --><!--# echo var=\"a\" encoding=\"none\" -->",
    "<!--# set var=\"a\" value='\"$arg_x\" \\'' --><!--# echo var=\"a\" encoding=\"none\" -->",
    "<!--# set var=\"a\" value=\"-->\" --><!--# echo var=\"a\" -->",
    "<!--# set var=\"abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz\" value=\"1\" -->\
     <!--# echo var=\"abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz\" -->",
    // Conditions.
    "<!--# if expr=\"$arg_name\" -->a<!--# else -->b<!--# endif -->c",
    "<!--# if expr=\"$none\" -->a<!--# else -->b<!--# endif -->c",
    "<!--# if expr=\"$arg_empty\" -->a<!--# else -->b<!--# endif -->c",
    "<!--# if expr=\"\" -->a<!--# else -->b<!--# endif -->c",
    "<!--# if expr=\"$arg_x = 1\" -->a<!--# endif --><!--# if expr=\"$arg_x=1\" -->b<!--# endif --><!--# if expr=\"$arg_x != 1\" -->c<!--# endif -->",
    "<!--# if expr=\"$none\" -->a<!--# elif expr=\"$arg_x = 2\" -->b<!--# elif expr=\"$arg_x = 1\" -->c<!--# else -->d<!--# endif -->e",
    "<!--# if expr=\"$arg_x = 1\" -->a<!--# elif expr=\"$arg_x = 1\" -->b<!--# else -->c<!--# endif -->",
    "<!--# if expr=\"$arg_name = ${arg_name}\" -->a<!--# endif --><!--# if expr=\"$arg_name = x$none\" -->b<!--# endif -->",
    "<!--# if expr=\"$arg_name = /^al/\" -->a<!--# else -->b<!--# endif --><!--# if expr=\"$arg_name != /^al/\" -->a<!--# else -->b<!--# endif -->",
    "<!--# if expr=\"$arg_name = /CE\\$/\" -->a<!--# else -->b<!--# endif --><!--# if expr=\"$arg_name = /(?i)CE\\$/\" -->a<!--# else -->b<!--# endif -->",
    "<!--# if expr=\"$arg_name = /(a)(l)(?P<Rest>\\w+)/\" --><!--# echo var=\"0\" --> <!--# echo var=\"2\" --><!--# echo var=\"1\" --> <!--# echo var=\"rest\" --> <!--# echo var=\"4\" --><!--# endif --> <!--# echo var=\"1\" -->",
    "<!--# if expr=\"$arg_name = /(?<two>..)(z)?/\" --><!--# set var=\"v\" value=\"[$two$1$2]\" --><!--# echo var=\"v\" --><!--# endif -->",
    "<!--# if expr=\"$arg_name = /(l)(i)/\" --><!--# endif --><!--# if expr=\"$arg_name = /(z)/\" --><!--# endif --><!--# echo var=\"2\" --><!--# if expr=\"$arg_name = /(a)/\" --><!--# endif --><!--# echo var=\"2\" -->",
    "<!--# if expr=\"$uri = \\/d\" -->a<!--# else -->b<!--# endif --><!--# if expr=\"$arg_path = \\/d/\" -->a<!--# else -->b<!--# endif -->",
    "<!--# if expr=\"$arg_name = /\\d+|\\\\w{5}/\" -->a<!--# else -->b<!--# endif -->",
    "<!--# if expr=\"$arg_name < b\" -->a<!--# endif -->",
    "<!--# if expr=\"$arg_name = /(/\" -->a<!--# endif -->",
    "<!--# if expr=\"$arg_name = /al\" -->a<!--# endif -->",
    "<!--# else -->a<!--# endif -->b<!--# elif expr=\"$arg_x\" -->",
    "<!--# if -->a",
    // Includes.
    "a<!--# include virtual=\"/d/part.html\" -->b",
    "a<!--# include file=\"part.html\" -->b<!--#include virtual=\"part.html\"-->c",
    "<!--# include virtual=\"/d/part.html?name=bob\" --><!--# include virtual=\"/d/part.html?name=$arg_x\" -->",
    "<!--# include virtual=\"/d/part.html\" wait=\"yes\" -->|<!--# include virtual=\"/d/part.html\" wait=\"NO\" -->",
    "<!--# include virtual=\"/d/plain.txt\" -->|<!--# include virtual=\"/$none/../d/plain.txt\" -->",
    "<!--# include virtual=\"/up/text.html\" set=\"a\" -->[<!--# echo var=\"a\" -->|<!--# echo var=\"a\" encoding=\"none\" -->]",
    "<!--# include virtual=\"/d/empty.html\" -->|",
    "<!--# include virtual=\"/d/nested.html\" -->",
    "<!--# block name=\"b\" -->no<!--# endblock -->[<!--# include virtual=\"/d/empty.html\" stub=\"b\" -->]",
    "<!--# block name=\"b\" -->no <!--# echo var=\"http_x_field\" --><!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" -->]",
    "<!--# block name=\"b\" -->no<!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" --><!--# include virtual=\"/d/none.html\" stub=\"b\" -->]",
    "<!--# block name=\"b\" -->no<!--# endblock -->[<!--# include virtual=\"/d/text.html\" stub=\"b\" -->]",
    "<!--# block name=\"b\" --><!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" -->]",
    "<!--# block name=\"b\" -->1<!--# endblock --><!--# block name=\"b\" -->2<!--# endblock --><!--# include virtual=\"/d/none.html\" stub=\"b\" -->",
    "<!--# include virtual=\"/d/text.html\" stub=\"none\" -->",
    "<!--# include virtual=\"/d/text.html\" file=\"text.html\" -->",
    "<!--# include virtual=\"/d/text.html\" wait=\"maybe\" -->",
    "<!--# include -->|<!--# include nothing=\"a\" -->",
    "<!--# include virtual=\"/d/text.html\" set=\"a\" -->[<!--# echo var=\"a\" -->]",
    // A part has the variables of the page, and the page those of a part that it waits for.
    "<!--# set var=\"title\" value=\"<Home>\" --><!--# include virtual=\"/d/head.html\" --><!--# include file=\"head.html\" -->",
    "<!--# set var=\"title\" value=\"1\" --><!--# include virtual=\"/d/outer.html\" -->",
    "<!--# if expr=\"$arg_name = /^(?P<title>al)/\" --><!--# endif --><!--# include virtual=\"/d/head.html\" -->",
    "<!--# include virtual=\"/d/vars.html\" wait=\"yes\" --><!--# echo var=\"title\" -->|<!--# include virtual=\"/d/head.html\" -->",
    "<!--# set var=\"title\" value=\"mine\" --><!--# include virtual=\"/d/vars.html\" wait=\"yes\" --><!--# echo var=\"title\" -->",
    "<!--# include virtual=\"/d/vars.html\" --><!--# echo var=\"title\" -->",
    "<!--# config errmsg=\"oops\" timefmt=\"%Y\" --><!--# include virtual=\"/d/broken.html\" -->",
    // Configuration.
    "<!--# config errmsg=\"oops <1>\" --><!--# nonsense -->",
    "<!--# config timefmt=\"%Y-%%\" --><!--# echo var=\"date_gmt\" --> <!--# if expr=\"$date_local = /^\\d{4}-%\\$/\" -->year<!--# endif -->",
    "<!--# config timefmt=\"%A, %d-%b-%Y %Z\" --><!--# echo var=\"date_gmt\" -->",
    "<!--# config timefmt=\"%D %F %x %C %j %a %b %h %e %U %u %w %V %G %y %Ey %Od %p %E %J\" --><!--# echo var=\"date_gmt\" -->",
    "<!--# config timefmt=\"%c\" --><!--# if expr=\"$date_gmt = /^\\w{3} \\w{3} [ \\d]\\d \\d\\d:\\d\\d:\\d\\d \\d{4}\\$/\" -->as C has it<!--# endif -->",
    "<!--# config timefmt=\"%r %X\" --><!--# if expr=\"$date_gmt = /^\\d\\d:\\d\\d:\\d\\d [AP]M \\d\\d:\\d\\d:\\d\\d\\$/\" -->as C has it<!--# endif -->",
    "<!--# config something=\"x\" -->",
    // What is no directive.
    "<!--# nonsense --><!--#exec cmd=\"id\" --><!--#printenv --><!--# ECHO var=\"arg_x\" -->",
    "<!--# echo -->|<!--# echo var=\"arg_x\" more=\"y\" -->|<!--# echo var=\"arg_x\" var=\"arg_x\" -->",
    "<!--# echo var=\"arg_x\"default=\"y\" -->|<!--# set var=\"a\" -->|<!--# set value=\"a\" -->",
    "<!--# echo var= -->|<!--# echo =\"a\" -->|",
    "<!--# echo var=\"arg_x\" - -->|",
    "<!--# endblock x=\"y\" -->|<!--# else x=\"y\" -->",
];

/// Pages that we show otherwise, how, and why.
const OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "<!--# set var=\"title\" value=\"1\" --><!--# include virtual=\"/d/outer.html\" --><!--# set var=\"title\" value=\"2\" -->",
        "([1])",
        "a part has the variables as they are where it is included",
    ),
    (
        "<!--# echo var=\"cookie_tag\" encoding=\"none\" --><!--# echo var=\"cookie_tag\" -->",
        "<b>&&lt;b&gt;&amp;",
        "an encoding is for one echo and not for all that follow",
    ),
    ("<!--# echo var=\"cookie_quote\" -->", "&#39;", "a value may stand in an attribute with either quote"),
    ("a<!--", "a<!--", "nginx loses what could have become a directive at the end of a page"),
    (
        "<!--# config errmsg=\"\" -->a<!--# nonsense -->b",
        "ab",
        "nginx cuts the connection where it shows an empty message",
    ),
    (
        "<!--# block name=\"b\" -->no <!--# echo var=\"arg_x\" --><!--# endblock -->[<!--# include virtual=\"/d/empty.html\" stub=\"b\" -->]",
        "[no 1]",
        "nginx shows directives as text in the stub for an empty file",
    ),
    (
        "<!--# echo var=\"arg_x\" --->|",
        "[an error occurred while processing the directive]|",
        "nginx shows nothing of the rest of the page",
    ),
    (
        "<!--# echo var=\"query_string\" encoding=\"url\" -->",
        "name%3Dalice%26x%3D1%26empty%3D%26path%3D/d/",
        "nginx leaves & and = as they are, which would make arguments of a value",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# if expr=\"$none\" -->b<!--# else -->c<!--# endif -->d<!--# endif -->",
        "acd",
        "conditions nest",
    ),
    (
        "a<!--# include virtual=\"/d/none.html\" -->b",
        "a[an error occurred while processing the directive]b",
        "nginx shows the error page of the part in the middle of the page",
    ),
    ("a<!--# echo var=\"arg_x\"", "a<!--# echo var=\"arg_x\"", "nginx shows nothing of what does not end"),
    (
        "a<!--# echo var=\"arg_x -->b",
        "a[an error occurred while processing the directive]b",
        "nginx shows nothing of the rest of the page",
    ),
    (
        "<!--# -->b<!--# echo var=\"arg_x\" -->",
        "[an error occurred while processing the directive]b1",
        "nginx looks for the end behind it",
    ),
    ("<!--# echo var=arg_x -->", "1", "quotes may be left out, as recaro does in includes"),
    (
        "<!--# set var=\"a\" value=\"5$ $\" --><!--# echo var=\"a\" -->",
        "5$ $",
        "a dollar sign that starts no name is one",
    ),
    (
        "<!--# if expr=\"$arg_name = /^alice$/\" -->a<!--# endif -->",
        "a",
        "and in a regular expression it is the end",
    ),
    (
        "<!--# if expr=\"$arg_name = /^$arg_name/\" -->a<!--# endif -->",
        "[an error occurred while processing the directive]a[an error occurred while processing the directive]",
        "visitors must not write regular expressions",
    ),
    (
        "<!--# if expr=\"$arg_name = /(?=a)/\" -->a<!--# endif -->",
        "[an error occurred while processing the directive]a[an error occurred while processing the directive]",
        "regular expressions take linear time, so they do not look ahead",
    ),
    (
        "<!--# if expr=\" $arg_x = 1 \" -->a<!--# else -->b<!--# endif -->",
        "a",
        "space around an expression means nothing",
    ),
    ("<!--# echo var=\"none\" default=\"a\\\"b\" -->", "a&quot;b", "nginx shows the backslash"),
    (
        "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/d/none.html\" stub=\"b\" set=\"a\" -->[<!--# echo var=\"a\" -->]",
        "[no]",
        "a stub can be what a variable is set to",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# else -->b<!--# else -->c<!--# endif -->",
        "a",
        "what is not carried out shows no error either",
    ),
];

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

/// The body of a response that ends with the connection, perhaps in chunks.
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

/// Both servers over the same files.
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

    /// What nginx shows, and what we show.
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
fn pages_come_out_as_nginx_shows_them() {
    let mut both = Both::start();
    let mut different = String::new();
    for page in ALIKE {
        let (nginx, ours) = both.show(page);
        if nginx != ours {
            different += &format!("page:  {page}\nnginx: {nginx}\nours:  {ours}\n\n");
        }
    }
    assert!(different.is_empty(), "\n{different}");
}

#[test]
fn where_we_differ_from_nginx_it_is_on_purpose() {
    let mut both = Both::start();
    for (page, shown, reason) in OTHERWISE {
        let (nginx, ours) = both.show(page);
        assert_eq!(ours, *shown, "{page}: {reason}");
        assert_ne!(ours, nginx, "{page}: nginx does the same by now: {reason}");
    }
}
