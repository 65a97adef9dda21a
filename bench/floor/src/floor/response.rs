//! The fixed response. Every mode sends exactly these bytes.

/// Builds a complete 200 response that keeps the connection. It has the fields that any real server
/// sends too, so the kernel moves about as many bytes as it does for other servers.
pub fn with_body_of(body_bytes: usize) -> Vec<u8> {
    let mut response = format!(
        "HTTP/1.1 200 OK\r\n\
         Server: floor\r\n\
         Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
         Content-Type: text/html\r\n\
         Content-Length: {body_bytes}\r\n\
         Connection: keep-alive\r\n\r\n"
    )
    .into_bytes();
    response.resize(response.len() + body_bytes, b'x');
    response
}

#[cfg(test)]
mod tests {
    use super::with_body_of;

    #[test]
    fn the_announced_length_is_the_length_of_the_body() {
        for body_bytes in [0, 1, 11, 1024] {
            let response = with_body_of(body_bytes);
            let text = String::from_utf8(response).expect("ASCII");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
            assert!(head.contains(&format!("\r\nContent-Length: {body_bytes}\r\n")), "{head}");
            assert_eq!(body.len(), body_bytes);
        }
    }
}
