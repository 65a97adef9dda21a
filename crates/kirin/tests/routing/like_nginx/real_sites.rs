//! Configurations as they are in packages and in the documentation of applications, imported and
//! compared with nginx over a generated list of URLs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kirin_tests::Kirin;

use super::imported::imported;
use super::pair::Pair;
use super::{Comparison, Prepared};

/// A script that shows which one of them runs.
const SCRIPT: &str = "<?php header('Content-Type: text/plain; charset=utf-8');
echo basename(__FILE__), ' ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['QUERY_STRING'];";

/// The sites. A pair without requests gets those that are generated from its files.
const SITES: &[Pair] = &[
    site(
        "the default site of Debian's package",
        r"server { listen {listen} default_server; root {files};
            index index.html index.htm index.nginx-debian.html; server_name _;
            location / { try_files $uri $uri/ =404; } }",
        &[("index.nginx-debian.html", "welcome"), ("a/index.html", "a"), ("b/x.txt", "x")],
    ),
    site(
        "WordPress with php-fpm",
        r"server { listen {listen}; server_name example.org www.example.org test; root {files};
            index index.php; client_max_body_size 64m;
            location = /favicon.ico { log_not_found off; access_log off; }
            location = /robots.txt { allow all; log_not_found off; access_log off; }
            location / { try_files $uri $uri/ /index.php?$args; }
            location ~* /(?:uploads|files)/.*\.php$ { deny all; }
            location ~ \.php$ { include /etc/nginx/fastcgi_params; fastcgi_intercept_errors on;
                fastcgi_pass unix:{php};
                fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }
            location ~* \.(js|css|png|jpg|jpeg|gif|ico)$ { expires max; log_not_found off; }
            location ~ /\. { deny all; } }",
        &[
            ("index.php", SCRIPT),
            ("wp-login.php", SCRIPT),
            ("wp-admin/index.php", SCRIPT),
            ("wp-content/uploads/2026/evil.php", "<?php echo 'evil';"),
            ("wp-content/uploads/2026/photo.jpg", "photo"),
            ("wp-content/themes/x/style.css", "css"),
            ("wp-includes/js/a.js", "js"),
            ("robots.txt", "User-agent: *"),
            (".htaccess", "secret"),
            ("readme.html", "readme"),
        ],
    ),
    site(
        "Django with gunicorn",
        r"upstream app_server { server {echo} fail_timeout=0; }
        server { listen {listen} deferred; client_max_body_size 4G; server_name test;
            keepalive_timeout 5;
            location /static/ { alias {files}/static/; expires 30d; }
            location /media/ { alias {files}/media/; }
            location = /favicon.ico { access_log off; log_not_found off; return 404; }
            location / { proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header Host $http_host;
                proxy_redirect off; proxy_pass http://app_server; } }",
        &[
            ("static/css/a.css", "css"),
            ("static/admin/b.js", "js"),
            ("media/photo.jpg", "photo"),
            ("secret.txt", "secret"),
        ],
    ),
    site(
        "Rails with Puma",
        r"upstream puma { server {echo}; }
        server { listen {listen}; server_name test; root {files}/public;
            location ^~ /assets/ { gzip_static on; expires max; add_header Cache-Control public; }
            try_files $uri/index.html $uri @puma;
            location @puma { proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_set_header Host $http_host; proxy_redirect off; proxy_pass http://puma; }
            error_page 500 502 503 504 /500.html; client_max_body_size 4G; keepalive_timeout 10; }",
        &[
            ("public/assets/app-0123456789abcdef.css", "css"),
            ("public/robots.txt", "robots"),
            ("public/about/index.html", "about"),
            ("public/500.html", "error"),
            ("config/master.key", "secret"),
        ],
    ),
    site(
        "a single-page application with an API",
        r#"server { listen {listen}; root {files}/dist; index index.html;
            location /api/ { proxy_pass http://{echo}/; proxy_set_header Host $host; }
            location /assets/ { add_header Cache-Control "public, max-age=31536000, immutable"; }
            location / { try_files $uri $uri/ /index.html; } }"#,
        &[
            ("dist/index.html", "<div id=app></div>"),
            ("dist/assets/app-0123abcd.js", "js"),
            ("dist/docs/index.html", "docs"),
            ("src/secret.js", "secret"),
        ],
    ),
    site(
        "static files with the rules of h5bp",
        r#"server { listen {listen}; server_name test; root {files}; charset utf-8;
            error_page 404 /404.html;
            add_header X-Content-Type-Options nosniff always;
            add_header Referrer-Policy strict-origin-when-cross-origin always;
            location ~* /\.(?!well-known\/) { deny all; }
            location ~* (?:#.*#|\.(?:bak|conf|dist|fla|in[ci]|log|orig|psd|sh|sql|sw[op])|~)$ {
                deny all; }
            location = /old.html { return 301 /new.html; }
            location /moved/ { rewrite ^/moved/(.*)$ /here/$1 permanent; } }"#,
        &[
            ("index.html", "home"),
            ("404.html", "nothing"),
            ("new.html", "new"),
            ("here/a.html", "a"),
            ("dump.sql", "secret"),
            ("site.conf", "secret"),
            (".env", "secret"),
            (".git/config", "secret"),
            (".well-known/security.txt", "contact"),
        ],
    ),
    site(
        "an application with WebSockets behind a password",
        r#"map $http_upgrade $connection_upgrade { default upgrade; '' close; }
        upstream ws { server {echo}; keepalive 8; }
        server { listen {listen}; location / { allow 192.0.2.0/24; deny all; proxy_pass http://ws; }
            location /open { proxy_pass http://ws; proxy_http_version 1.1; proxy_set_header Host $host;
                proxy_set_header Upgrade $http_upgrade; proxy_read_timeout 3600s;
                proxy_set_header Connection $connection_upgrade; }
            location /password { auth_basic "Staff"; auth_basic_user_file {files}/htpasswd;
                proxy_pass http://ws; } }"#,
        // The password is `secret`.
        &[("htpasswd", "me:$apr1$Zn.xQkzE$9Nhe9zWbMZqTnRMdLCW2L0\n")],
    ),
];

/// A difference of two answers: the site or nothing for all, the starts of the parts of nginx's and
/// of Kirin's answer that differ (an empty one has no part), and the reason.
type Known = (&'static str, &'static str, &'static str, &'static str);

const DJANGO: &str = "Django with gunicorn";
const H5BP: &str = "static files with the rules of h5bp";
const SPA: &str = "a single-page application with an API";
const WORDPRESS: &str = "WordPress with php-fpm";

const KNOWN: &[Known] = &[
    ("", "301; location: ", "404", NO_INDEX),
    ("", "403", "404", NO_INDEX),
    ("", "301; body: own text; location: ", "404", NO_INDEX),
    (WORDPRESS, "301; body: own text; location: ", "200; body: index.php", NO_INDEX_SCRIPT),
    (WORDPRESS, "403; body: own text", "200; body: index.php", NO_INDEX_SCRIPT),
    ("", "405; body: own text", "204; allow: GET, HEAD, OPTIONS", "Kirin answers OPTIONS"),
    ("", "", "allow: GET, HEAD, OPTIONS", "Kirin says which methods files have"),
    ("", "content-type: application/javascript", "content-type: text/javascript", "RFC 9239"),
    ("", "cache-control: max-age=315360000", "cache-control: public, max-age=31536000", "a year"),
    ("", "expires: present", "", "there is no `Expires` beside `Cache-Control`"),
    (DJANGO, "200; body: echo got GET /static", "404; body: own text", SEGMENTS),
    (DJANGO, "200; body: echo got GET /media", "404; body: own text", SEGMENTS),
    (DJANGO, "301; expires: present", "404", NO_INDEX),
    (DJANGO, "", "cache-control: max-age=2592000", "`headers` are on errors, too"),
    (H5BP, "etag: present", "", "an error page has no validator"),
    (H5BP, "404; body: nothing", "403; body: own text", "a suffix matches before a slash, too"),
    (SPA, "", "cache-control: no-cache; vary: Accept", "the page is asked for again each time"),
    (SPA, "200; body: ; length: 18", "404", NAVIGATION),
    (SPA, "405", "404", NAVIGATION),
    (
        WORDPRESS,
        "404; body: File not found.",
        "200; body: index.php",
        "the front controller answers",
    ),
    (WORDPRESS, "301", "308", "the method is kept"),
    (
        WORDPRESS,
        "200; body: index.php",
        "404; body: own text",
        "the route of a suffix has files only",
    ),
    (
        WORDPRESS,
        "200; body: index.php",
        "403; body: own text",
        "a suffix matches before a slash, too",
    ),
    (WORDPRESS, "405", "200; body: index.php", "the application answers OPTIONS"),
];

const NO_INDEX: &str = "a directory without an index page and without `listing` is not there";
const NO_INDEX_SCRIPT: &str =
    "what is no file is for the front controller, directories and dot names too";
const SEGMENTS: &str = "the path of a route matches the directory without the slash, too";
const NAVIGATION: &str = "`fallback` is for pages that a visitor opens";

/// Returns the number of the known difference that one is.
fn known(site: &str, nginx: &str, kirin: &str) -> Option<usize> {
    let starts = |parts: &str, start: &str| match start {
        "" => parts.is_empty(),
        start => parts.starts_with(start),
    };
    KNOWN.iter().position(|(of, of_nginx, of_kirin, _)| {
        (of.is_empty() || *of == site) && starts(nginx, of_nginx) && starts(kirin, of_kirin)
    })
}

/// Returns a site whose requests are generated.
const fn site(
    name: &'static str,
    nginx: &'static str,
    files: &'static [(&'static str, &'static str)],
) -> Pair {
    Pair { name, nginx, kirin: "", files, requests: &[] }
}

/// Returns the requests for a site: its files and directories, with and without what may follow,
/// and what is not there.
fn requests(site: &Pair) -> BTreeSet<String> {
    let mut paths = BTreeSet::from(["/".to_owned(), "/none".to_owned(), "/none/".to_owned()]);
    for word in ["/api/x", "/open/x", "/password/x", "/static/", "/moved/x", "/a.php", "/x.css"] {
        paths.insert(word.to_owned());
    }
    for (name, _) in site.files {
        let mut path = String::new();
        for part in name.split('/') {
            let _ = write!(path, "/{part}");
            paths.insert(path.clone());
            paths.insert(format!("{path}/"));
            paths.insert(format!("{path}/none"));
        }
        // The document root may be the first directory.
        if let Some((_, below)) = name.split_once('/') {
            paths.insert(format!("/{below}"));
        }
    }
    let queries: BTreeSet<String> =
        paths.iter().map(|path| format!("GET {path}?a=b\nAccept: text/html,*/*;q=0.8")).collect();
    let others = ["HEAD /", "POST /\n\nx=y", "POST /none\n\nx=y", "OPTIONS /", "HEAD /none"];
    let plain = paths.iter().map(|path| format!("GET {path}\nAccept: text/html,*/*;q=0.8"));
    plain.chain(queries).chain(others.map(str::to_owned)).collect()
}

#[test]
fn real_configurations_that_are_imported_answer_as_nginx() {
    let all = Comparison::start(SITES);
    let (mut problems, mut met) = (String::new(), BTreeSet::new());
    for (of_site, met_there) in all.of_each(|prepared| compare(prepared, &all)) {
        problems += &of_site;
        met.extend(met_there);
    }
    for (number, known) in KNOWN.iter().enumerate().filter(|(number, _)| !met.contains(number)) {
        let _ = writeln!(problems, "=== the known difference {number} has gone: {known:?}");
    }
    assert!(problems.is_empty(), "{problems}");
}

/// Compares the answers to all requests of a site. Returns the differences that are not known, and
/// the numbers of those that are.
fn compare(prepared: &Prepared<'_>, all: &Comparison<'_>) -> (String, BTreeSet<usize>) {
    let config = imported(prepared, &all.backends);
    let kirin = Kirin::start(&prepared.site, &config);
    let (mut problems, mut met) = (String::new(), BTreeSet::new());
    for request in requests(prepared.pair) {
        let (nginx, kirin) = all.differences(prepared, &kirin, &request);
        if nginx.is_empty() && kirin.is_empty() {
            continue;
        }
        match known(prepared.pair.name, &nginx, &kirin) {
            Some(number) => _ = met.insert(number),
            None => {
                let name = prepared.pair.name;
                let _ =
                    writeln!(problems, "=== {name}: {request:?}\nnginx: {nginx}\nkirin: {kirin}");
            }
        }
    }
    (problems, met)
}
