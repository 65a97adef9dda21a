//! Debian's php-fpm as a server behind Kirin.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::{LeasedPort, Site, wait_for};

/// Returns the path of the program. Debian includes the version in its name.
fn php_fpm() -> std::path::PathBuf {
    let mut found: Vec<_> = std::fs::read_dir("/usr/sbin")
        .expect("/usr/sbin")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"))
        })
        .collect();
    found.sort();
    found.pop().expect("package php-fpm")
}

/// A php-fpm master with two processes. It ends when it is dropped.
pub struct PhpFpm {
    master: Child,
    /// The TCP address of the server.
    pub port: u16,
    _lease: LeasedPort,
}

impl PhpFpm {
    /// Serves scripts on the unix socket `php.sock` of the site, and on TCP.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub fn start(site: &Site) -> Self {
        let root = site.root().display();
        let lease = LeasedPort::lease();
        let port = lease.number();
        let configuration = format!(
            "[global]\nerror_log = {root}/fpm.log\ndaemonize = no\n\
             [www]\nlisten = {root}/php.sock\npm = static\npm.max_children = 2\n\
             php_admin_value[upload_tmp_dir] = {root}\nphp_admin_value[post_max_size] = 64M\n\
             php_admin_value[upload_max_filesize] = 64M\nphp_admin_flag[log_errors] = on\n\
             php_admin_flag[display_errors] = off\n\
             [tcp]\nlisten = 127.0.0.1:{port}\npm = static\npm.max_children = 2\n"
        );
        std::fs::write(site.path("fpm.conf"), configuration).expect("fpm.conf");
        // Without -n it reads the machine's php.ini. As root it needs -R.
        let mut child = Command::new(php_fpm())
            .args(["-n", "-R", "-F", "-y"])
            .arg(site.path("fpm.conf"))
            .stderr(Stdio::null())
            .spawn()
            .expect("php-fpm starts");
        wait_for("php-fpm to serve", || {
            let log = || std::fs::read_to_string(site.path("fpm.log")).unwrap_or_default();
            assert!(child.try_wait().expect("wait").is_none(), "php-fpm has ended: {}", log());
            UnixStream::connect(site.path("php.sock")).ok()
        });
        Self { master: child, port, _lease: lease }
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        // SIGTERM also ends its processes.
        let pid = rustix::process::Pid::from_child(&self.master);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.master.wait();
    }
}
