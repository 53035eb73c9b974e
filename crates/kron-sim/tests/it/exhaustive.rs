use kron_sim::sweep;

#[test]
fn every_fault_at_every_point_of_two_periods() {
    let sweep = sweep();
    println!("{} histories over {:?} points", sweep.histories, sweep.points);
    assert!(sweep.violation.is_none(), "{:?}", sweep.violation);
    assert!(sweep.points.iter().all(|points| *points >= 30), "{:?}", sweep.points);
}
