//! The nginx that serves all pairs.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use kirin_tests::{Site, wait_for};

/// The configuration around the pairs. The fields that both can be told to send alike are set here:
/// the charset, and redirects without the port.
const CONFIG: &str = r"
daemon off; master_process off; pid nginx.pid; error_log error.log error;
events {}
http {
    access_log off; include /etc/nginx/mime.types; default_type application/octet-stream;
    charset utf-8; charset_types text/plain text/css application/javascript application/json; port_in_redirect off;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    server_tokens off;
    PAIRS
}";

/// A running nginx. It is killed when it is dropped.
pub struct Nginx {
    process: Child,
    site: Site,
}

impl Nginx {
    /// Starts with the configurations of all pairs, and waits until it listens on all addresses.
    pub fn start(pairs: &str, addresses: impl Iterator<Item = SocketAddr>) -> Self {
        let site = Site::new().with("nginx.conf", CONFIG.replace("PAIRS", pairs));
        let process = Command::new("nginx")
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(site.root())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("nginx (Debian package nginx-light)");
        let mut nginx = Self { process, site };
        for address in addresses {
            wait_for("nginx", || {
                let ended = nginx.process.try_wait().expect("wait");
                assert!(ended.is_none(), "nginx ended: {}", nginx.errors());
                TcpStream::connect(address).ok()
            });
        }
        nginx
    }

    /// Returns its log.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.site.path("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
