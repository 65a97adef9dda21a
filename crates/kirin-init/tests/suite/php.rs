//! Projects in PHP.

use crate::support::{Layout, check};

pub const LAYOUTS: [Layout; 6] = [
    Layout {
        name: "laravel_with_assets_by_vite",
        files: &[
            ("public/index.php", "<?php"),
            ("artisan", ""),
            ("public/storage/", "->../storage/app/public"),
            ("storage/app/public/", ""),
            ("public/uploads/", ""),
            ("package.json", r#"{"devDependencies": {"vite": "7"}}"#),
        ],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "public"
[[route]]
path = "/"
try = ["files:public", "proxy:php"]
[[route]]
path = "/storage"
try = ["files:public"]
follow_links = "owner"
[[route]]
path = "/uploads"
try = ["files:public"]
"#,
        report: "Found a PHP application:
  public/index.php is the front controller of Laravel
  artisan shows which software it is
Found too, and not used:
  package.json (line 1) needs Vite, which builds a site
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "symfony_with_uploads",
        files: &[("public/index.php", "<?php"), ("bin/console", ""), ("public/uploads/", "")],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "public"
[[route]]
path = "/"
try = ["files:public", "proxy:php"]
[[route]]
path = "/uploads"
try = ["files:public"]
"#,
        report: "Found a PHP application:
  public/index.php is the front controller of Symfony
  bin/console shows which software it is
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "wordpress_at_the_top",
        files: &[
            ("index.php", "<?php"),
            ("wp-load.php", "<?php"),
            ("wp-config.php", "<?php"),
            ("readme.html", "x"),
            (".htaccess", "RewriteEngine On\n"),
        ],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "."
[[route]]
path = "/"
try = ["files:.", "proxy:php"]
[[route]]
path = "/wp-content/uploads"
try = ["files:."]
[[route]]
path = "= /wp-content/debug.log"
deny = 404
[[route]]
path = "= /kirin.toml"
deny = 404
"#,
        report: "Found a PHP application:
  index.php is the front controller of WordPress
  wp-load.php shows which software it is
Found too, and not used:
  .htaccess has rules of Apache, which Kirin does not read
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "drupal_below_web",
        files: &[
            ("web/index.php", "<?php"),
            ("web/core/lib/Drupal.php", "<?php"),
            ("vendor/autoload.php", "<?php"),
        ],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "web"
[[route]]
path = "/"
try = ["files:web", "proxy:php"]
[[route]]
path = "/sites/default/files"
try = ["files:web"]
[[route]]
path = "/sites/default/files/styles"
try = ["files:web", "proxy:php"]
"#,
        report: "Found a PHP application:
  web/index.php is the front controller of Drupal
  web/core/lib/Drupal.php shows which software it is
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "nextcloud",
        files: &[("index.php", "<?php"), ("occ", ""), ("remote.php", "<?php")],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "."
[[route]]
path = "/"
try = ["files:.", "proxy:php"]
[[route]]
path = "/data"
deny = 404
[[route]]
path = "/config"
deny = 404
[[route]]
path = "/lib"
deny = 404
[[route]]
path = "/3rdparty"
deny = 404
[[route]]
path = "/templates"
deny = 404
[[route]]
path = "= /kirin.toml"
deny = 404
"#,
        report: "Found a PHP application:
  index.php is the front controller of Nextcloud
  occ shows which software it is
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "an_unknown_front_controller_at_the_top",
        files: &[
            ("index.php", "<?php"),
            ("vendor/autoload.php", "<?php"),
            ("composer.json", "{}"),
            ("uploads/", ""),
            ("index.html", "x"),
        ],
        settings: r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php-fpm.sock"]
root = "."
[[route]]
path = "/"
try = ["files:.", "proxy:php"]
[[route]]
path = "/uploads"
try = ["files:."]
[[route]]
path = "= /kirin.toml"
deny = 404
[[route]]
path = "/vendor"
deny = 404
[[route]]
path = "= /composer.json"
deny = 404
"#,
        report: "Found a PHP application:
  index.php is a front controller in PHP
Next:
  apt install php-fpm    # install what runs the scripts
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
];

#[test]
fn projects_in_php_get_php_fpm() {
    for layout in &LAYOUTS {
        check(layout);
    }
}
