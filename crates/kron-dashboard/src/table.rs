//! Tables as CSV, for spreadsheets.

use serde::Serialize;
use serde_json::Value;

/// Rows of a table, in these columns. A value that is no text or number is written as JSON.
pub(crate) fn csv(columns: &[&str], rows: &[impl Serialize]) -> String {
    let mut out = columns.join(",") + "\r\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        let cells: Vec<String> = columns.iter().map(|column| cell(&row[*column])).collect();
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Spreadsheets take what begins like this for a formula, whoever wrote it.
fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_in_a_cell_stays_in_it() {
        let rows =
            [json!({"a": "x,\"y\"\n", "b": 1, "c": null}), json!({"a": "=HYPERLINK(1)", "b": ["z"], "d": 2})];
        assert_eq!(
            csv(&["a", "b", "c"], &rows),
            "a,b,c\r\n\"x,\"\"y\"\"\n\",1,\r\n'=HYPERLINK(1),\"[\"\"z\"\"]\",\r\n"
        );
    }
}
