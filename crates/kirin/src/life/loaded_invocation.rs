//! The file in which `Plack::Handler::Kirin` writes how the process was started that has become
//! this program. It has the working directory, the number of arguments, the arguments, and the
//! environment, each followed by NUL.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use kirin_config::Config;
use kirin_observe::served::Served;
use kirin_workers::ParentInvocation;

/// Reads the file. There is none if the same start would not lead to Kirin again.
pub fn read(path: &Path) -> Option<ParentInvocation> {
    let content = std::fs::read(path).ok()?;
    let read = parse(&content);
    if read.is_none() {
        tracing::warn!(path = %path.display(), "the command that started the application cannot be read; the application cannot be loaded again");
    }
    read
}

/// Returns what the program serves that has loaded the application.
pub fn served(invocation: Option<&ParentInvocation>, config: &Config) -> Served {
    let command = invocation.map(|invocation| {
        let words = [&invocation.program].into_iter().chain(&invocation.arguments);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    });
    let directory = match invocation {
        Some(invocation) => invocation.directory.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    Served::Program {
        directory,
        command: command.unwrap_or_else(|| "a program with Plack::Handler::Kirin".into()),
        addresses: config.listeners.iter().map(|listener| listener.address.to_string()).collect(),
    }
}

fn parse(content: &[u8]) -> Option<ParentInvocation> {
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let mut fields = content.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let directory = text(fields.next()?).into();
    let count: usize = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let mut arguments: Vec<OsString> = fields.by_ref().take(count).map(text).collect();
    if arguments.is_empty() || arguments.len() != count {
        return None;
    }
    let program = arguments.remove(0);
    let environment = fields.map(|field| {
        let equals = field.iter().position(|byte| *byte == b'=')?;
        Some((text(&field[..equals]), text(&field[equals + 1..])))
    });
    Some(ParentInvocation {
        directory,
        program,
        arguments,
        environment: environment.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_may_be_any_bytes_but_nul() {
        let read = parse(b"/srv/app\x003\0perl\0-e\0a\nb\xff\0A=1=2\0B=\0").unwrap();
        assert_eq!(read.directory, Path::new("/srv/app"));
        assert_eq!(read.program, "perl");
        assert_eq!(
            read.arguments,
            [OsString::from("-e"), OsString::from_vec(b"a\nb\xff".to_vec())]
        );
        assert_eq!(read.environment, [("A".into(), "1=2".into()), ("B".into(), "".into())]);
    }

    #[test]
    fn a_truncated_command_is_not_used() {
        let whole = b"/\x002\0perl\0x\0A=1\0";
        assert!(parse(whole).is_some());
        // At length 11 it is complete, with an empty environment.
        for length in [0, 1, 2, 3, 4, 6, 9, 10, 12, 13] {
            assert!(
                parse(&whole[..length]).is_none(),
                "{:?}",
                whole[..length].escape_ascii().to_string()
            );
        }
    }
}
