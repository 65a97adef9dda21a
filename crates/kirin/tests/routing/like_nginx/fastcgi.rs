//! `fastcgi_pass` and `fastcgi://`, with Debian's php-fpm.

use super::pair::{Pair, alike, differs};

/// A script that shows its variables.
const SHOW: &str = "<?php header('Content-Type: text/plain; charset=utf-8');
foreach (['SCRIPT_NAME', 'PATH_INFO', 'QUERY_STRING', 'REQUEST_URI', 'REQUEST_METHOD'] as $name)
    echo $name, '=', $_SERVER[$name] ?? 'none', ' ';
echo 'body=', file_get_contents('php://input');";

/// A site with a front controller.
pub const PAIRS: &[Pair] = &[Pair {
    name: "scripts of php-fpm",
    nginx: r"server { listen {listen}; root {files}; index index.html index.php;
            location / { try_files $uri $uri/ /index.php$uri?$args; }
            location ~ [^/]\.php(/|$) {
                fastcgi_split_path_info ^(.+?\.php)(/.*)$;
                if (!-f $document_root$fastcgi_script_name) { return 404; }
                include /etc/nginx/fastcgi_params;
                fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_param HTTP_PROXY '';
                fastcgi_pass unix:{php}; } }",
    kirin: r#"
[[upstream]]
name = "php"
servers = ["fastcgi://unix:{php}"]
root = "{files}"
[[route]]
path = "/"
try = ["files:files", "proxy:php"]
"#,
    files: &[
        ("index.php", SHOW),
        ("show.php", SHOW),
        ("blog/index.php", SHOW),
        ("text.txt", "text"),
        ("upload.jpg", "<?php echo 'run';"),
        ("status.php", "<?php http_response_code(418); header('X-From: php'); echo 'teapot';"),
        ("moved.php", "<?php header('Location: /elsewhere');"),
        ("cookie.php", "<?php setcookie('a', 'b'); header('Cache-Control: no-store');"),
        ("old.php.bak", "source"),
    ],
    requests: &[
        alike("GET /"),
        alike("GET /show.php"),
        alike("GET /show.php?a=b"),
        alike("POST /show.php\n\nx=y"),
        alike("HEAD /show.php"),
        alike("GET /show.php/more/path"),
        alike("GET /blog/"),
        differs(
            "GET /blog",
            "301",
            "308",
            "Kirin uses 308 for a directory of scripts, because it keeps the method",
        ),
        alike("GET /pretty/address?q=1"),
        differs(
            "GET /none.php",
            "404; body: own text",
            "200; body: SCRIPT_NAME=/index.php PATH_INFO=/none.php QUERY_STRING= REQUEST_URI=/none.php REQUEST_METHOD=GET body=; x-powered-by: PHP/8.2.36",
            "a path that names no script belongs to the front controller",
        ),
        alike("GET /text.txt"),
        alike("GET /upload.jpg"),
        differs(
            "GET /upload.jpg/x.php",
            "404; body: own text",
            "200; body: SCRIPT_NAME=/index.php PATH_INFO=/upload.jpg/x.php QUERY_STRING= REQUEST_URI=/upload.jpg/x.php REQUEST_METHOD=GET body=; x-powered-by: PHP/8.2.36",
            "a path that names no script belongs to the front controller",
        ),
        alike("GET /status.php"),
        alike("GET /moved.php"),
        alike("GET /cookie.php"),
        differs(
            "GET /old.php.bak",
            "content-type: application/octet-stream",
            "content-type: application/x-trash",
            "Debian's list has a type for .bak",
        ),
        alike("GET /show%2Ephp"),
        alike("GET /SHOW.PHP"),
    ],
}];
