//! Configurations of Apache and Debian, and what becomes a `kirin.toml`.

use proptest::prelude::*;

use super::import;
use crate::testing::{MemoryFiles, check, check_parts, imported};

#[test]
fn the_default_site_of_debian_serves_files() {
    check(
        import,
        "<VirtualHost *:80>
	# The ServerName directive sets the request scheme, hostname and port
	#ServerName www.example.com

	ServerAdmin webmaster@localhost
	DocumentRoot /var/www/html

	ErrorLog ${APACHE_LOG_DIR}/error.log
	CustomLog ${APACHE_LOG_DIR}/access.log combined
</VirtualHost>
",
        r#"
# f:1
[[listener]]
address = "*:80"

# f:6
# The source of scripts is not shown. To run them, see docs/proxy.md.
[[route]]
path = "*.php"
deny = 403
access_log = "/var/log/apache2/access.log"

# f:6
[[route]]
path = "/"
try = ["files:/var/www/html"]
access_log = "/var/log/apache2/access.log"
"#,
        "
1 + <VirtualHost *:80>
5 = ServerAdmin webmaster@localhost
6 + DocumentRoot /var/www/html
8 = ErrorLog /var/log/apache2/error.log
9 + CustomLog /var/log/apache2/access.log combined
",
    );
}

#[test]
fn rules_of_directories_replace_those_around_them() {
    check_parts(
        import,
        "DocumentRoot /var/www\n<Directory />\nRequire all denied\n</Directory>\n<Directory /var/www>\n\
         Options Indexes\nRequire all granted\n</Directory>\n<Directory /var/www/private>\n\
         AuthType Basic\nAuthUserFile /etc/users\nRequire valid-user\n</Directory>\n\
         Alias /x /srv/x\nProxyPass /api http://127.0.0.1:3000/api\n",
        &[
            "path = \"/\"\ntry = [\"files:/var/www\"]\nlisting = true\n",
            "path = \"/private\"\ntry = [\"files:/var/www\"]\nlisting = true\nbasic_auth = \"/etc/users\"",
            // `<Directory />` is all that an alias has.
            "path = \"/x\"\ntry = [\"files:/srv\"]\ndeny = 403",
            // A proxy has no directory.
            "path = \"/api\"\ntry = [\"proxy:127-0-0-1-3000\"]\n",
        ],
    );
}

#[test]
fn http_and_https_of_a_host_are_one_site() {
    let text = "<VirtualHost *:443>\nServerName a.example\nSSLEngine on\nSSLCertificateFile a.pem\n\
                SSLCertificateKeyFile a.key\nDocumentRoot /srv/a\n</VirtualHost>\n\
                <VirtualHost *:80>\nServerName a.example\n";
    check_parts(
        import,
        &format!("{text}Redirect permanent / https://a.example/\n</VirtualHost>\n"),
        &[
            "address = \"*:80\"\nredirect_to_https = 443",
            "hosts = [\"a.example\"]",
            "certificates = [{ chain = \"a.pem\", key = \"a.key\" }]",
        ],
    );
    check_parts(
        import,
        &format!("{text}DocumentRoot /srv/b\n</VirtualHost>\n"),
        &[
            "path = \"/\"\nmatch = { scheme = \"http\" }\ntry = [\"files:/srv/b\"]",
            "path = \"/\"\ntry = [\"files:/srv/a\"]",
        ],
    );
}

#[test]
fn a_host_of_an_inner_address_is_not_served_to_all() {
    let text = "<VirtualHost *:80>\nDocumentRoot /srv/a\n</VirtualHost>\n\
                <VirtualHost 127.0.0.1:8080>\nDocumentRoot /srv/inner\n</VirtualHost>\n";
    let config = imported(import, text).config();
    assert!(!config.contains("inner") && !config.contains("8080"), "{config}");
}

/// Directives beside a document root, with parts of the `kirin.toml` or of the notes.
const DIRECTIVES: &[(&str, &[&str])] = &[
    (
        "<Location /a>\nRequire ip 10.0.0.0/8\n</Location>",
        &["path = \"/a\"\ntry = [\"files:/srv\"]\nallow = [\"10.0.0.0/8\"]"],
    ),
    (
        "<Location /server-status>\nSetHandler server-status\nRequire local\n</Location>",
        &[
            "path = \"/server-status\"\ntry = [\"status\"]\nallow = [\"127.0.0.0/8\", \"::1\", \"unix:\"]",
        ],
    ),
    (
        "<Location /server-status>\nSetHandler server-status\n</Location>",
        &["# Closed: the handler is not there in Kirin.", "path = \"/server-status\"\ndeny = 403"],
    ),
    (
        "<Location /p>\nSetHandler perl-script\nPerlResponseHandler Plack::Handler::Apache2\n\
      PerlSetVar psgi_app /srv/a.psgi\n</Location>",
        &["load = \"/srv/a.psgi\"", "path = \"/p\"\ntry = [\"app:app-1\"]\nrewrite = \"/\""],
    ),
    (
        "<Location /p>\nSetHandler perl-script\nPerlResponseHandler My::Handler\n</Location>",
        &["plackup -s Kirin", "path = \"/p\"\ndeny = 403"],
    ),
    (
        "<LocationMatch \"^/a[0-9]\">\nRequire all denied\n</LocationMatch>",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "<LocationMatch \"^/a/\">\nRequire all denied\n</LocationMatch>",
        &["path = \"/a\"\ntry = [\"files:/srv\"]\ndeny = 403"],
    ),
    ("<Files \"*.bak\">\nRequire all denied\n</Files>", &["path = \"*.bak\"\ndeny = 403"]),
    (
        "<FilesMatch \"\\.(sql|old)$\">\nRequire all denied\n</FilesMatch>",
        &["path = \"*.sql\"\ndeny = 403", "path = \"*.old\"\ndeny = 403"],
    ),
    ("<FilesMatch \"^\\.ht\">\nRequire all denied\n</FilesMatch>", &["= <FilesMatch \"^\\.ht\">"]),
    (
        "<FilesMatch \"[0-9]\">\nRequire all denied\n</FilesMatch>",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>",
        &["match = { not = { methods = [\"GET\", \"POST\"] } }\ndeny = 403"],
    ),
    (
        "<Directory /srv>\nRequire user bob\n</Directory>",
        &["deny = 403", "`Require user bob` is not there in Kirin"],
    ),
    ("<DirectoryMatch \"/\\.git\">\nRequire all denied\n</DirectoryMatch>", &["= <DirectoryMatch"]),
    ("Alias /x/ /srv/other/", &["path = \"/x\"\ntry = [\"files:/srv/other\"]\nrewrite = \"/\""]),
    (
        "Alias /favicon.ico /srv/i/f.ico",
        &["path = \"= /favicon.ico\"\ntry = [\"files:/srv/i\"]\nrewrite = \"/f.ico\""],
    ),
    (
        "ScriptAlias /cgi-bin/ /usr/lib/cgi-bin/",
        &["path = \"/cgi-bin\"\ntry = [\"cgi:/usr/lib/cgi-bin\"]"],
    ),
    ("Redirect 301 /old /new", &["path = \"/old\"\nredirect = \"/new\"\nredirect_status = 301"]),
    ("Redirect gone /gone", &["path = \"/gone\"\ndeny = 404"]),
    (
        "RedirectMatch 301 ^/a/(.*)$ https://b.example/$1",
        &["path = \"/a\"\nredirect = \"https://b.example\"\nredirect_status = 301"],
    ),
    ("RedirectMatch 404 ^/x/[0-9]+", &["path = \"/x\"\ndeny = 404", "PROTECTION NOT CARRIED OVER"]),
    (
        "RewriteEngine On\nRewriteRule ^/old/(.*)$ /new/$1 [R=301,L]",
        &["path = \"/old\"\nredirect = \"/new\"\nredirect_status = 301"],
    ),
    (
        "RewriteEngine On\nRewriteCond %{HTTPS} off\nRewriteRule ^(.*)$ https://%{HTTP_HOST}%{REQUEST_URI} [R=301]",
        &["match = { scheme = \"http\" }\nredirect = \"https://{host}{path}\""],
    ),
    (
        "RewriteEngine On\nRewriteCond %{HTTP_HOST} ^www\\.a\\.example$ [NC]\nRewriteRule ^(.*)$ https://a.example/$1 [R=301]",
        &["hosts = [\"www.a.example\"]", "redirect = \"https://a.example/\""],
    ),
    ("RewriteEngine On\nRewriteRule ^/secret/ - [F]", &["path = \"/secret\"\ndeny = 403"]),
    (
        "RewriteEngine On\nRewriteCond %{QUERY_STRING} a=b\nRewriteRule ^/x/(.*) - [F]",
        &["path = \"/x\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "RewriteEngine On\nRewriteCond %{HTTP_USER_AGENT} BadBot\nRewriteRule ^ - [F]",
        &["match = { headers = { User-Agent = \"*BadBot*\" } }\ndeny = 403"],
    ),
    (
        "RewriteEngine On\nRewriteRule ^/api/(.*)$ http://127.0.0.1:3000/$1 [P]",
        &["path = \"/api\"\ntry = [\"proxy:127-0-0-1-3000\"]\nrewrite = \"/\""],
    ),
    ("RewriteEngine On\nRewriteRule ^/u/([0-9]+)$ /user?id=$1", &["Kirin has no such expression"]),
    (
        "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ /index.php [L]",
        &["try = [\"files:/srv\", \"proxy:php\"]", "root = \"/srv\""],
    ),
    ("FallbackResource /index.html", &["fallback = \"index.html\""]),
    (
        "<FilesMatch \\.php$>\nSetHandler \"proxy:unix:/run/php.sock|fcgi://localhost\"\n</FilesMatch>",
        &["servers = [\"fastcgi://unix:/run/php.sock\"]\nroot = \"/srv\""],
    ),
    (
        "AddType application/x-httpd-php .php",
        &["run the scripts in php-fpm", "fastcgi://unix:/run/php/php-fpm.sock"],
    ),
    (
        "ProxyPass /a !\nProxyPass / http://127.0.0.1:3000/",
        &[
            "path = \"/a\"\ntry = [\"files:/srv\"]",
            "path = \"/\"\ntry = [\"proxy:127-0-0-1-3000\"]",
        ],
    ),
    (
        "ProxyPass / http://127.0.0.1:3000/ timeout=5 lbset=1",
        &[
            "first_byte_timeout = \"5s\"",
            "- ProxyPass / http://127.0.0.1:3000/ timeout=5 lbset=1",
            "Kirin has no `lbset=1`",
        ],
    ),
    (
        "<Proxy balancer://b>\nBalancerMember http://a:1 loadfactor=2\nBalancerMember http://b:1 status=+H\n\
      </Proxy>\nProxyPass /b balancer://b/c stickysession=S",
        &[
            "sticky_cookie = \"S\"",
            "servers = [{ address = \"a:1\", weight = 2 }, { address = \"b:1\", backup = true }]",
            "rewrite = \"/c\"",
        ],
    ),
    (
        "Header set X-A b\nHeader unset X-B\nRequestHeader set X-C %{REMOTE_ADDR}s\nHeader append X-D e",
        &["headers = { X-A = \"b\", X-B = \"\" }", "- Header append X-D e"],
    ),
    (
        "ErrorDocument 404 /404.html\nErrorDocument 500 \"Sorry\"",
        &["error_pages = { 404 = \"/404.html\" }", "- ErrorDocument 500"],
    ),
    ("ExpiresDefault \"access plus 1 month\"", &["Cache-Control = \"max-age=2592000\""]),
    (
        "AddType text/html .webc\nAddDefaultCharset utf-8\nDirectoryIndex a.html index.php",
        &["mime_types = { webc = \"text/html\" }", "charset = \"utf-8\"", "index = [\"a.html\"]"],
    ),
    (
        "LogFormat \"%h %O\" x\nCustomLog /v/a.log x",
        &["access_log = { format = \"%h %B\", path = \"/v/a.log\" }"],
    ),
    ("<If \"%{HTTP_HOST} == 'a'\">\nRequire all denied\n</If>", &["write `match` of routes"]),
    ("<IfModule !mod_x.c>\nNewThing\n</IfModule>", &["its condition does not hold here"]),
    (
        "RemoteIPHeader X-Real-IP\nRemoteIPTrustedProxy 10.0.0.0/8 a.example",
        &["forwarded = \"X-Real-IP\"\ntrusted = [\"10.0.0.0/8\"]", "- RemoteIPTrustedProxy"],
    ),
    (
        "AddType application/x-httpd-php .php\n<Directory /srv/up>\nphp_admin_flag engine off\n</Directory>",
        &[
            "path = \"/up\"\ntry = [\"files:/srv\"]\n\n",
            "path = \"/\"\ntry = [\"files:/srv\", \"proxy:php\"]",
        ],
    ),
    (
        "AddType application/x-httpd-php .php\n<Directory /srv/up>\n<FilesMatch \\.php$>\nRequire all denied\n\
      </FilesMatch>\n</Directory>",
        &["path = \"/up/*.php\"\ndeny = 403", "path = \"/up\"\ntry = [\"files:/srv\"]\n\n"],
    ),
    (
        "<Files xmlrpc.php>\nRequire all denied\n</Files>",
        &["path = \"*xmlrpc.php\"\ndeny = 403", "path = \"/xmlrpc.php\"\ndeny = 403"],
    ),
    ("NewThing a b", &["- NewThing a b: not known here"]),
    ("Header set X-A ${UNKNOWN}", &["X-A = \"${UNKNOWN}\""]),
];

#[test]
fn a_directive_becomes_routes() {
    for (directives, parts) in DIRECTIVES {
        check_parts(import, &format!("DocumentRoot /srv\n{directives}\n"), parts);
    }
}

#[test]
fn an_htaccess_of_the_document_root_is_read() {
    let files = MemoryFiles::new(&[
        ("f", "DocumentRoot /srv\n<Directory /srv>\nAllowOverride All\n</Directory>\n"),
        ("/srv/.htaccess", "AuthType Basic\nAuthUserFile /u\nRequire valid-user\n"),
    ]);
    let config = import("f", &files).expect("import").config();
    assert!(config.contains("basic_auth = \"/u\""), "{config}");
}

#[test]
fn files_are_included_but_not_by_themselves() {
    let files = MemoryFiles::new(&[
        ("/e/a.conf", "IncludeOptional sites/*.conf\nIncludeOptional none.conf\n"),
        ("/e/sites/b.conf", "Define D /srv\nDocumentRoot ${D}\n"),
        ("/e/c.conf", "Include c.conf\n"),
    ]);
    let config = import("/e/a.conf", &files).expect("import").config();
    assert!(config.contains("files:/srv"), "{config}");
    for (file, expected) in [
        ("/e/c.conf", "/e/c.conf:1: `/e/c.conf` includes itself, or too many files do"),
        ("/e/d.conf", "/e/d.conf:1: `/e/d.conf`: there is no such file"),
    ] {
        assert_eq!(import(file, &files).expect_err(file).to_string(), expected);
    }
    for (text, expected) in [
        ("<Directory /a>\n", "f:1: `<directory>` is not closed"),
        ("</Directory>\n", "f:1: `</directory>` closes no section"),
        ("Include none\n", "f:1: `none`: there is no such file"),
    ] {
        let error = import("f", &MemoryFiles::new(&[("f", text)])).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }

    #[test]
    fn no_directive_causes_a_panic(
        lines in prop::collection::vec(("(Alias|ProxyPass|RewriteRule|RewriteCond|Redirect|RedirectMatch|\
            Require|Header|Options|CustomLog|ErrorDocument|DocumentRoot|<Files|<Location|</Files>)",
            "[a-c/$%^{}()\\\\.\\[\\] \"é|]{0,16}>?"), 0..10),
    ) {
        let lines: Vec<_> = lines.iter().map(|(name, rest)| format!("{name} {rest}")).collect();
        let text = format!("RewriteEngine On\n{}", lines.join("\n"));
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }
}
