//! A client of HTTP/3: the program h3_client.py, which takes commands as JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::python;

/// A running client. It has one connection at a time.
pub struct Http3Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A response as far as it has arrived.
#[derive(Debug)]
pub struct Http3Reply(pub Value);

impl Http3Client {
    /// Starts a client that has no connection yet.
    pub fn start() -> Self {
        let mut command = python("h3_client.py");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output }
    }

    /// Gives a command, of which the program's `Commands` has a method. Returns the answer, or the
    /// error.
    pub fn try_ask(&mut self, command: &Value) -> Result<Value, String> {
        self.tell(command);
        self.answer()
    }

    /// Gives a command that must succeed. Returns the answer.
    pub fn ask(&mut self, command: &Value) -> Value {
        self.try_ask(command).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Gives a command whose answer is taken later.
    pub fn tell(&mut self, command: &Value) {
        writeln!(self.input, "{command}").expect("the client takes commands");
    }

    /// Returns the answer of a command.
    pub fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer of the client");
        let answer: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the client said {line:?}: {error}"));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }

    /// Sends a request and returns its response.
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Http3Reply {
        let command = json!({ "do": "ask", "method": method, "path": path, "fields": fields });
        Http3Reply(self.ask(&command))
    }

    /// Sends a GET and returns its response.
    pub fn get(&mut self, path: &str) -> Http3Reply {
        self.request("GET", path, &[])
    }

    /// Sends a request by the command `request`, with these further members. Returns its stream.
    pub fn begin(&mut self, path: &str, members: Value) -> u64 {
        let mut command = members;
        command["do"] = "request".into();
        command["path"] = path.into();
        self.ask(&command)["stream"].as_u64().expect("a stream")
    }

    /// Waits for the ends of these streams, and returns their responses.
    pub fn finish(&mut self, streams: &[u64]) -> Vec<Http3Reply> {
        let mut answer = self.ask(&json!({ "do": "finish", "streams": streams }));
        let Value::Array(responses) = answer["responses"].take() else { panic!("{answer}") };
        responses.into_iter().map(Http3Reply).collect()
    }

    /// Waits until the server has ended the connection. Returns how.
    pub fn wait_closed(&mut self) -> Value {
        self.ask(&json!({ "do": "wait_closed" }))["closed"].take()
    }
}

impl Drop for Http3Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Http3Reply {
    /// Returns the status, or 0 if none has come.
    pub fn status(&self) -> u64 {
        self.0["status"].as_u64().unwrap_or(0)
    }

    /// Returns the body as text, as far as the client keeps it.
    pub fn text(&self) -> &str {
        self.0["text"].as_str().expect("a text")
    }

    /// Returns the number of bytes of the body.
    pub fn length(&self) -> u64 {
        self.0["length"].as_u64().expect("a length")
    }

    /// Returns the SHA-256 of the body, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        self.0["sha256"].as_str().expect("a hash")
    }

    /// Returns the value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.0["fields"].as_array()?;
        fields.iter().find(|field| field[0] == name)?[1].as_str()
    }

    /// Returns whether the whole response has come.
    pub fn is_complete(&self) -> bool {
        self.0["complete"] == true
    }
}
