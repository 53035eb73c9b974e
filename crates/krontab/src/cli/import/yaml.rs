//! YAML, and so JSON, as a tree with the line of every node.
//!
//! Manifests need neither anchors nor tags, and an alias can make a small file a large tree: both are
//! refused.

use saphyr_parser::{Event, Parser};

/// A node, and the line it begins on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// The deepest that nodes are nested. A `CronJob`'s containers are eight deep.
const DEPTH_MAX: usize = 64;

/// The most nodes of a file.
const NODES_MAX: usize = 200_000;

/// The documents of a file.
pub(crate) fn documents(text: &str) -> Result<Vec<Node>, String> {
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = error.marker();
            format!("line {}, column {}: it is no YAML: {}", place.line(), place.col() + 1, error.info())
        })?;
        let line = span.start.line();
        let done = match event {
            Event::Scalar(text, ..) => Some(Node { line, value: Value::Text(text.into_owned()) }),
            Event::SequenceStart(..) => {
                open.push(Open { line, parts: Parts::List(Vec::new()) });
                None
            }
            Event::MappingStart(..) => {
                open.push(Open { line, parts: Parts::Map(Vec::new(), None) });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(Open::close),
            Event::Alias(_) => {
                return Err(format!("line {line}: an alias is not read; write out what it stands for"));
            }
            _ => None,
        };
        nodes += 1;
        if nodes > NODES_MAX {
            return Err(format!("line {line}: expected at most {NODES_MAX} nodes in a file; divide it"));
        }
        if open.len() > DEPTH_MAX {
            return Err(format!("line {line}: expected at most {DEPTH_MAX} nodes in each other"));
        }
        let Some(node) = done else { continue };
        match open.last_mut() {
            Some(parent) => parent.add(node)?,
            None => documents.push(node),
        }
    }
    Ok(documents)
}

/// A list or a map that is not complete yet.
struct Open {
    line: usize,
    parts: Parts,
}

enum Parts {
    List(Vec<Node>),
    /// With the key whose value comes next.
    Map(Vec<(String, Node)>, Option<String>),
}

impl Open {
    fn add(&mut self, node: Node) -> Result<(), String> {
        match &mut self.parts {
            Parts::List(items) => items.push(node),
            Parts::Map(pairs, key) => match key.take() {
                Some(key) => pairs.push((key, node)),
                None => match node.value {
                    Value::Text(text) => *key = Some(text),
                    _ => return Err(format!("line {}: expected a text for a key", node.line)),
                },
            },
        }
        Ok(())
    }

    fn close(self) -> Node {
        let value = match self.parts {
            Parts::List(items) => Value::List(items),
            Parts::Map(pairs, _) => Value::Map(pairs),
        };
        Node { line: self.line, value }
    }
}

impl Node {
    /// What is under these keys, one in the other.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| match &node.value {
            Value::Map(pairs) => pairs.iter().find(|(known, _)| known == key).map(|(_, node)| node),
            _ => None,
        })
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The texts of a list.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.list().iter().filter_map(Node::text).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_trees_with_lines() {
        let found = documents("a: 1\nb:\n  - x\n  - {c: \"d\"}\n---\n{\"e\": [1, 2]}\n").unwrap();
        assert_eq!(found.len(), 2);
        let b = found[0].at(&["b"]).unwrap();
        assert_eq!((b.line, b.texts()), (3, vec!["x".to_owned()]));
        assert_eq!(b.list()[1].at(&["c"]).and_then(Node::text), Some("d"));
        assert_eq!(found[1].at(&["e"]).unwrap().texts(), ["1", "2"]);
    }

    #[test]
    fn what_could_grow_is_refused() {
        assert!(documents("a: &x [1]\nb: *x\n").unwrap_err().contains("line 2: an alias is not read"));
        assert!(documents(&"[".repeat(100)).unwrap_err().contains("at most 64 nodes in each other"));
        assert!(documents("a: [").unwrap_err().contains("it is no YAML"));
        assert!(documents("").unwrap().is_empty());
    }
}
