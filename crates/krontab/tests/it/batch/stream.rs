//! The lines themselves, whatever they ask.

use std::cell::RefCell;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::rc::Rc;

use krontab::batch::{LINE_BYTES_MAX, run};
use serde_json::{Value, json};

use super::{ZONES, answers, answers_of_bytes};

#[test]
fn what_is_no_request_is_answered_too() {
    for (line, id, code, message) in [
        ("{", json!(null), "bad-json", "EOF while parsing an object at column 1"),
        ("{\"id\":1,\"op\":}", json!(null), "bad-json", "expected value at column 14"),
        ("[1,", json!(null), "bad-json", "EOF while parsing a value at column 3"),
        ("{} {}", json!(null), "bad-json", "trailing characters at column 4"),
        (" [1]", json!(null), "bad-request", "expected an object, but found an array"),
        ("7", json!(null), "bad-request", "expected an object, but found a number"),
        ("null", json!(null), "bad-request", "expected an object, but found null"),
        ("{}", json!(null), "bad-request", "missing member `op`"),
        ("{\"id\":[1,{\"a\":2}]}", json!([1, {"a": 2}]), "bad-request", "missing member `op`"),
        ("{\"op\":5,\"id\":5}", json!(5), "bad-request", "expected a string, but found a number"),
        (
            "{\"op\":\"prse\",\"id\":\"x\"}",
            json!("x"),
            "unknown-op",
            "expected `parse`, `next`, `prev`, `decide`, `evaluate`, `fuzzy`, `scatter` or `lint`, but found `prse`; did you mean `parse`?",
        ),
        (
            "{\"id\":1,\"op\":\"lint\",\"text\":\"\",\"text\":\"\"}",
            json!(1),
            "bad-request",
            "expected each member once, but found it twice",
        ),
        (
            "{\"id\":1,\"op\":\"lint\",\"id\":2}",
            json!(1),
            "bad-request",
            "expected each member once, but found it twice",
        ),
        // Half a surrogate pair is no text.
        (
            "{\"id\":1,\"op\":\"lint\",\"text\":\"\\ud800\"}",
            json!(1),
            "bad-json",
            "unexpected end of hex escape at column 8",
        ),
    ] {
        let answer = answers(line).remove(0);
        assert_eq!(answer["id"], id, "{line}");
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert_eq!(answer["error"]["message"], message, "{line}");
    }
    let many: Vec<String> = (0..100).map(|n| format!("\"m{n}\":{n}")).collect();
    let answer = answers(&format!("{{{},\"id\":3}}", many.join(","))).remove(0);
    assert_eq!(answer["id"], 3);
    assert_eq!(answer["error"]["message"], "expected at most 64 members, but found more");
}

#[test]
fn an_id_comes_back_as_it_was_sent() {
    for id in [
        "1.0",
        "1e400",
        "-0",
        "\"\\u00e9\\ud83d\\ude00\"",
        "{\"b\":1,\"a\":[]}",
        "[ ]",
        "true",
        "null",
        "12345678901234567890123",
    ] {
        let mut output = Vec::new();
        run(format!("{{\"id\":{id},\"op\":\"lint\",\"text\":\"\"}}").as_bytes(), &mut output, &ZONES)
            .unwrap();
        let expected = format!("{{\"id\":{id},\"ok\":true,\"result\":{{\"jobs\":[],\"warnings\":[]}}}}\n");
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }
    // But for a carriage return, at which some readers would end the line.
    assert_eq!(answers("{\"id\":[1,\r2]}")[0]["id"], json!([1, 2]));
}

#[test]
fn lines_may_end_in_any_way_and_be_empty() {
    let lint = "{\"id\":1,\"op\":\"lint\",\"text\":\"\"}";
    assert_eq!(answers("").len(), 0);
    assert_eq!(answers("\n\r\n \t\n").len(), 0);
    assert_eq!(answers(&format!("{lint}\r\n\n{lint}\n  {lint}  ")).len(), 3);
    assert!(answers(&format!("{lint}\r\n\n{lint}\n  {lint}  ")).iter().all(|answer| answer["ok"] == true));
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_their_line() {
    let found = answers_of_bytes(b"{\"id\":1}\n{\"id\":\"\xFF\"}\n{\"id\":2}\n");
    assert_eq!(found.len(), 3);
    assert_eq!(found[1]["error"]["code"], "bad-utf8");
    assert_eq!(found[1]["error"]["span"]["start"], 7);
    assert_eq!(found[1]["id"], json!(null));
    assert_eq!(found[2]["id"], 2);
}

#[test]
fn a_line_has_a_longest_length() {
    let lint = "{\"id\":1,\"op\":\"lint\",\"text\":\"\"}";
    let padded = |length: usize| format!("{lint}{}", " ".repeat(length - lint.len()));
    for capacity in [100, 8 << 10, 4 << 20] {
        let input = [&padded(LINE_BYTES_MAX), &padded(LINE_BYTES_MAX + 1), &padded(3 * LINE_BYTES_MAX), lint]
            .map(String::from)
            .join("\n");
        let mut output = Vec::new();
        run(BufReader::with_capacity(capacity, input.as_bytes()), &mut output, &ZONES).unwrap();
        let found: Vec<Value> = String::from_utf8(output)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            found.iter().map(|answer| answer["ok"] == true).collect::<Vec<_>>(),
            [true, false, false, true]
        );
        assert_eq!(found[1]["id"], json!(null));
        assert_eq!(found[1]["error"]["code"], "line-too-long");
        assert_eq!(found[1]["error"]["message"], "expected a line of at most 1048576 bytes, but found more");
    }
}

/// A peer that asks one thing at a time, and only when it has its answer.
#[test]
fn who_waits_for_an_answer_gets_it() {
    #[derive(Clone, Default)]
    struct Wire {
        written: Rc<RefCell<Vec<u8>>>,
        flushed: Rc<RefCell<usize>>,
    }
    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            *self.flushed.borrow_mut() = self.written.borrow().iter().filter(|byte| **byte == b'\n').count();
            Ok(())
        }
    }
    struct Peer {
        wire: Wire,
        asked: usize,
    }
    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(*self.wire.flushed.borrow(), self.asked, "a question is without its answer");
            if self.asked == 5 {
                return Ok(0);
            }
            self.asked += 1;
            let line = b"{\"op\":\"lint\",\"text\":\"\"}\n";
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }
    let wire = Wire::default();
    run(BufReader::new(Peer { wire: wire.clone(), asked: 0 }), wire.clone(), &ZONES).unwrap();
    assert_eq!(*wire.flushed.borrow(), 5);
}

#[test]
fn a_peer_that_has_gone_ends_it_quietly_and_other_trouble_does_not() {
    struct Broken(ErrorKind);
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(run(&b"{}\n"[..], Broken(ErrorKind::BrokenPipe), &ZONES).is_ok());
    let full = run(&b"{}\n"[..], Broken(ErrorKind::StorageFull), &ZONES);
    assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);

    struct Failing(u32);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(ErrorKind::Interrupted.into()),
                2 => {
                    buffer[..3].copy_from_slice(b"{}\n");
                    Ok(3)
                }
                _ => Err(ErrorKind::TimedOut.into()),
            }
        }
    }
    let mut output = Vec::new();
    let failed = run(BufReader::new(Failing(0)), &mut output, &ZONES);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 1, "what was asked has its answer");
}

#[test]
fn an_id_that_could_not_be_read_back_is_refused() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let lint = |id: &str| format!("{{\"id\":{id},\"op\":\"lint\",\"text\":\"\"}}");
    for id in
        [nested(64), "\"[[\\\"{{\"".into(), "\"\\ud83d\\ude00\\ud83d\\ude00\"".into(), "\"\\\\ud800\"".into()]
    {
        let answer = answers(&lint(&id)).remove(0);
        assert_eq!(
            (&answer["ok"], &answer["id"]),
            (&json!(true), &serde_json::from_str(&id).unwrap()),
            "{id}"
        );
    }
    for (id, message) in [
        (nested(65), "expected an id of at most 64 levels, but found more"),
        (format!("{{\"a\":{}}}", nested(64)), "expected an id of at most 64 levels, but found more"),
        ("\"\\ud800\"".into(), "expected an id that is text, but found half of a surrogate pair"),
        ("\"\\uD800x\"".into(), "expected an id that is text, but found half of a surrogate pair"),
        (
            "\"\\ud800\\ud800\\udc00\"".into(),
            "expected an id that is text, but found half of a surrogate pair",
        ),
        ("\"\\ud800\\n\"".into(), "expected an id that is text, but found half of a surrogate pair"),
        ("{\"\\udc00\":1}".into(), "expected an id that is text, but found half of a surrogate pair"),
    ] {
        let answer = answers(&lint(&id)).remove(0);
        assert_eq!(answer["id"], Value::Null, "{id}");
        assert_eq!(
            answer["error"],
            json!({"code": "bad-request", "field": "id", "message": message}),
            "{id}"
        );
    }
}
