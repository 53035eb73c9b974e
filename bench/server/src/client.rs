//! A client that costs next to nothing, so that the server is what is measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// One connection, kept open.
pub struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    pub fn new(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream), host: address.to_owned() }
    }

    pub fn post(&mut self, path: &str, body: &str) -> Vec<u8> {
        self.ask("POST", path, body)
    }

    pub fn get(&mut self, path: &str) -> Vec<u8> {
        self.ask("GET", path, "")
    }

    /// Asks, and insists on success.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, length) = self.head();
        let body = match length {
            Some(length) => {
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body).unwrap();
                body
            }
            None => self.chunks(),
        };
        assert!(status < 300, "{method} {path}: {status} {}", String::from_utf8_lossy(&body));
        body
    }

    fn head(&mut self) -> (u16, Option<usize>) {
        let status = self.line().split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let mut length = None;
        loop {
            let line = self.line().to_ascii_lowercase();
            if line.is_empty() {
                return (status, length);
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line(), 16).unwrap();
            let begin = body.len();
            body.resize(begin + length, 0);
            self.stream.read_exact(&mut body[begin..]).unwrap();
            self.line();
            if length == 0 {
                return body;
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.truncate(line.trim_end().len());
        line
    }

    /// Follows events; every line of data is handed over until it says stop.
    pub fn follow(mut self, path: &str, mut each: impl FnMut(&Value) -> bool) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", self.host);
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        self.head();
        loop {
            let line = self.line();
            if let Some(data) = line.strip_prefix("data:")
                && !each(&serde_json::from_str(data).unwrap())
            {
                return;
            }
        }
    }
}
