//! The smallest case that still shows a disagreement: what a person wants to see first.

use jiff::Timestamp;

use crate::compare::{check, floor};
use crate::generator::Case;

/// Makes the case simpler, one step at a time, as long as the answers still differ.
pub(crate) fn shrink(mut case: Case<'_>) -> Case<'_> {
    while let Some(simpler) = simpler(&case).into_iter().find(|simpler| check(simpler).is_err()) {
        case = simpler;
    }
    case
}

/// The case with one thing simpler: a field, or the start. Each is shorter or earlier in the list
/// of spellings than before, so that shrinking ends.
fn simpler<'z>(case: &Case<'z>) -> Vec<Case<'z>> {
    let fields: Vec<&str> = case.text.split_whitespace().collect();
    let mut simpler = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let items = field.split(',').filter(|item| item.len() < field.len());
        let plain = ["*", "0", "1"].into_iter().take_while(|plain| plain != field);
        for replacement in plain.chain(items) {
            let mut fields = fields.clone();
            fields[i] = replacement;
            simpler.push(Case { text: fields.join(" "), ..case.clone() });
        }
    }
    let whole = Timestamp::from_second(floor(case.start)).expect("an earlier instant");
    if whole < case.start {
        simpler.push(Case { start: whole, ..case.clone() });
    }
    // A simpler expression must be an expression: `0` is no day.
    simpler.retain(|case| kron_schedule::Expr::parse(&case.text, case.dialect).is_ok());
    simpler
}
