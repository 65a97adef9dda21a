//! The cookies of a visitor. It knows one site, and ignores paths and domains of `Set-Cookie`.
//! There is no I/O.

/// The names and values, in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Obeys one `Set-Cookie` field. `Max-Age=0` removes the cookie.
    pub fn set(&mut self, field: &str) {
        let mut parts = field.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        self.0.retain(|(known, _)| known != name);
        if !parts.any(|attribute| attribute.eq_ignore_ascii_case("Max-Age=0")) {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Returns whether there are no cookies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the cookies as `name=value; name=value`.
    pub fn write(&self, request: &mut Vec<u8>) {
        for (number, (name, value)) in self.0.iter().enumerate() {
            if number > 0 {
                request.extend_from_slice(b"; ");
            }
            request.extend_from_slice(name.as_bytes());
            request.push(b'=');
            request.extend_from_slice(value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cookies;

    fn text(cookies: &Cookies) -> String {
        let mut bytes = Vec::new();
        cookies.write(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_cookie_set_again_is_replaced_and_one_without_age_is_gone() {
        let mut cookies = Cookies::default();
        cookies.set("session=abc; Path=/; HttpOnly");
        cookies.set("hint=1; Max-Age=2592000");
        cookies.set("session=def; Path=/");
        assert_eq!(text(&cookies), "hint=1; session=def");
        cookies.set("session=; Path=/; max-age=0; HttpOnly");
        assert_eq!(text(&cookies), "hint=1");
    }
}
