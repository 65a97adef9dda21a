//! `-u`: become another user when started as root.

use std::fs;
use std::io;

use rustix::process::{Gid, Uid, getuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use super::StartError;

/// Gives up root for `name`. Does nothing for any other user, as in memcached.
///
/// Must run before threads are started: the calls are those of one thread, and later ones inherit.
pub(super) fn assume(name: &str) -> Result<(), StartError> {
    if !getuid().is_root() {
        return Ok(());
    }
    let failed = |source| StartError::User { user: name.to_owned(), source };
    let passwd = fs::read_to_string("/etc/passwd").map_err(failed)?;
    let (uid, gid) = find(&passwd, name).ok_or_else(|| StartError::NoUser(name.to_owned()))?;
    let gid = Gid::from_raw(gid);
    set_thread_groups(&[gid])
        .and_then(|()| set_thread_gid(gid))
        .and_then(|()| set_thread_uid(Uid::from_raw(uid)))
        .map_err(|error| failed(io::Error::from(error)))
}

/// User and group of `name` in the text of passwd(5).
fn find(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nnobody2:x:7:7::/:/x\nnobody:x:65534:65533:n:/:/x\n";
        assert_eq!(find(passwd, "nobody"), Some((65534, 65533)));
        assert_eq!(find(passwd, "nobod"), None);
    }
}
