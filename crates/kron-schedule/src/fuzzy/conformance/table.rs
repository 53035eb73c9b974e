//! The 56 tests, in the order and the words of the specification.

use super::Check::{Gives, Holds, Refuses};
use super::{Check, Test, scattering};

const fn test(id: &'static str, level: u8, title: &'static str, check: Check) -> Test {
    Test { id, title, level, check }
}

const DAILY: &str = "FUZZY:DAILY * * *";
const WEEKLY: &str = "FUZZY:WEEKLY * * *";

#[rustfmt::skip] // one test a paragraph
pub(super) const TESTS: [Test; 56] = [
    // 9.2.1
    test("T-SYNTAX-001", 1, "Parse `daily` to `FUZZY:DAILY * * *`", Gives(&[("daily", DAILY)])),
    test("T-SYNTAX-002", 1, "Parse `weekly` to `FUZZY:WEEKLY * * *`", Gives(&[("weekly", WEEKLY)])),
    test("T-SYNTAX-003", 1, "Parse `weekly on monday` to `FUZZY:WEEKLY:1 * * 1`", Gives(&[
        ("weekly on monday", "FUZZY:WEEKLY:1 * * 1"),
    ])),
    test("T-SYNTAX-004", 1, "Parse all weekday names correctly", Gives(&[
        ("weekly on sunday", "FUZZY:WEEKLY:0 * * 0"),
        ("weekly on monday", "FUZZY:WEEKLY:1 * * 1"),
        ("weekly on tuesday", "FUZZY:WEEKLY:2 * * 2"),
        ("weekly on wednesday", "FUZZY:WEEKLY:3 * * 3"),
        ("weekly on thursday", "FUZZY:WEEKLY:4 * * 4"),
        ("weekly on friday", "FUZZY:WEEKLY:5 * * 5"),
        ("weekly on saturday", "FUZZY:WEEKLY:6 * * 6"),
    ])),
    test("T-SYNTAX-005", 1, "Reject invalid schedule types", Refuses(&[
        ("monthly", "ERR-SYNTAX-001"),
        ("monthly on 15", "ERR-SYNTAX-001"),
        ("yearly", "ERR-SYNTAX-001"),
        ("0 9 * * *", "ERR-SYNTAX-001"),
        ("FUZZY:DAILY * * *", "ERR-SYNTAX-001"),
    ])),
    test("T-SYNTAX-006", 1, "Reject invalid weekday names", Refuses(&[
        ("weekly on mondey", "ERR-SYNTAX-003"),
        ("weekly on funday", "ERR-SYNTAX-003"),
        ("weekly on mon", "ERR-SYNTAX-003"),
    ])),
    test("T-SYNTAX-007", 1, "Parse case-insensitive tokens", Gives(&[
        ("DAILY", DAILY),
        ("Weekly ON Monday", "FUZZY:WEEKLY:1 * * 1"),
        ("daily Around NOON", "FUZZY:DAILY_AROUND:12:0 * * *"),
        ("daily around 3PM UTC-5", "FUZZY:DAILY_AROUND:20:0 * * *"),
        ("Bi-Weekly", "FUZZY:BI-WEEKLY * * *"),
        ("EVERY 2H", "FUZZY:HOURLY:2 * * *"),
    ])),
    // 9.2.2
    test("T-TIME-001", 2, "Parse 24-hour format `14:00`", Gives(&[
        ("daily around 14:00", "FUZZY:DAILY_AROUND:14:0 * * *"),
        ("daily around 00:00", "FUZZY:DAILY_AROUND:0:0 * * *"),
        ("daily around 23:59", "FUZZY:DAILY_AROUND:23:59 * * *"),
    ])),
    test("T-TIME-002", 2, "Parse 12-hour format `3pm`", Gives(&[
        ("daily around 3pm", "FUZZY:DAILY_AROUND:15:0 * * *"),
        ("daily around 3:30pm", "FUZZY:DAILY_AROUND:15:30 * * *"),
    ])),
    test("T-TIME-003", 2, "Parse 12-hour format `11am`", Gives(&[
        ("daily around 11am", "FUZZY:DAILY_AROUND:11:0 * * *"),
    ])),
    test("T-TIME-004", 2, "Parse keyword `midnight` as 00:00", Gives(&[
        ("daily around midnight", "FUZZY:DAILY_AROUND:0:0 * * *"),
    ])),
    test("T-TIME-005", 2, "Parse keyword `noon` as 12:00", Gives(&[
        ("daily around noon", "FUZZY:DAILY_AROUND:12:0 * * *"),
    ])),
    test("T-TIME-006", 2, "Convert `12am` to 00:00 (midnight)", Gives(&[
        ("daily around 12am", "FUZZY:DAILY_AROUND:0:0 * * *"),
    ])),
    test("T-TIME-007", 2, "Convert `12pm` to 12:00 (noon)", Gives(&[
        ("daily around 12pm", "FUZZY:DAILY_AROUND:12:0 * * *"),
    ])),
    test("T-TIME-008", 2, "Reject invalid hours (>23 or <0)", Refuses(&[
        ("daily around 24:00", "ERR-SYNTAX-002"),
        ("daily around 25:00", "ERR-SYNTAX-002"),
        ("daily around -1:00", "ERR-SYNTAX-002"),
        ("daily around 13pm", "ERR-SYNTAX-002"),
        ("daily around 0am", "ERR-SYNTAX-002"),
    ])),
    test("T-TIME-009", 2, "Reject invalid minutes (>59 or <0)", Refuses(&[
        ("daily around 14:60", "ERR-SYNTAX-002"),
        ("daily around 14:99", "ERR-SYNTAX-002"),
        ("daily around 14:-1", "ERR-SYNTAX-002"),
        ("daily around 3:60pm", "ERR-SYNTAX-002"),
    ])),
    test("T-TIME-010", 2, "Handle missing leading zeros (e.g., `9:30`)", Gives(&[
        ("daily around 9:30", "FUZZY:DAILY_AROUND:9:30 * * *"),
        ("daily around 09:30", "FUZZY:DAILY_AROUND:9:30 * * *"),
    ])),
    // 9.2.3
    test("T-CONSTRAINT-001", 2, "Parse `daily around 14:00`", Gives(&[
        ("daily around 14:00", "FUZZY:DAILY_AROUND:14:0 * * *"),
    ])),
    test("T-CONSTRAINT-002", 2, "Parse `daily between 9:00 and 17:00`", Gives(&[
        ("daily between 9:00 and 17:00", "FUZZY:DAILY_BETWEEN:9:0:17:0 * * *"),
    ])),
    test("T-CONSTRAINT-003", 2, "Parse `weekly on friday around 17:00`", Gives(&[
        ("weekly on friday around 17:00", "FUZZY:WEEKLY:5:AROUND:17:0 * * 5"),
        ("weekly on friday between 9:00 and 17:00", "FUZZY:WEEKLY:5:BETWEEN:9:0:17:0 * * 5"),
    ])),
    test("T-CONSTRAINT-004", 2, "Handle midnight-crossing ranges (`22:00 and 02:00`)", Gives(&[
        ("daily between 22:00 and 02:00", "FUZZY:DAILY_BETWEEN:22:0:2:0 * * *"),
    ])),
    test("T-CONSTRAINT-005", 2, "Reject `around` without time specification", Refuses(&[
        ("daily around", "ERR-SYNTAX-004"),
        ("weekly on friday around", "ERR-SYNTAX-004"),
    ])),
    test("T-CONSTRAINT-006", 2, "Reject `between` with only one time", Refuses(&[
        ("daily between 9:00", "ERR-SYNTAX-004"),
        ("daily between 9:00 and", "ERR-SYNTAX-004"),
        ("daily between and 17:00", "ERR-SYNTAX-004"),
    ])),
    test("T-CONSTRAINT-007", 2, "Reject `daily at <time>` syntax", Refuses(&[
        ("daily at 14:00", "ERR-SYNTAX-005"),
    ])),
    // 9.2.4
    test("T-TZ-001", 3, "Parse `utc+9` offset", Gives(&[
        ("daily around 14:00 utc+9", "FUZZY:DAILY_AROUND:5:0 * * *"),
    ])),
    test("T-TZ-002", 3, "Parse `utc-5` offset", Gives(&[
        ("weekly on monday around 3pm utc-5", "FUZZY:WEEKLY:1:AROUND:20:0 * * 1"),
    ])),
    test("T-TZ-003", 3, "Parse `utc+05:30` offset format", Gives(&[
        ("daily around 9:30am utc+05:30", "FUZZY:DAILY_AROUND:4:0 * * *"),
        ("daily around 10:00 utc-08:00", "FUZZY:DAILY_AROUND:18:0 * * *"),
    ])),
    test("T-TZ-004", 3, "Convert `14:00 utc+9` to `05:00` UTC", Gives(&[
        ("daily around 14:00 utc+9", "FUZZY:DAILY_AROUND:5:0 * * *"),
    ])),
    test("T-TZ-005", 3, "Convert `3pm utc-5` to `20:00` UTC", Gives(&[
        ("daily around 3pm utc-5", "FUZZY:DAILY_AROUND:20:0 * * *"),
    ])),
    test("T-TZ-006", 3, "Handle negative UTC conversion (wrap to previous day)", Gives(&[
        ("daily around 02:00 utc+9", "FUZZY:DAILY_AROUND:17:0 * * *"),
        ("weekly on monday around 02:00 utc+9", "FUZZY:WEEKLY:0:AROUND:17:0 * * 0"),
        ("weekly on sunday between 1am utc+9 and 5am utc+9", "FUZZY:WEEKLY:6:BETWEEN:16:0:20:0 * * 6"),
    ])),
    test("T-TZ-007", 3, "Handle >24:00 UTC conversion (wrap to next day)", Gives(&[
        ("daily around 23:00 utc-5", "FUZZY:DAILY_AROUND:4:0 * * *"),
        ("weekly on saturday around 23:00 utc-5", "FUZZY:WEEKLY:0:AROUND:4:0 * * 0"),
    ])),
    test("T-TZ-008", 3, "Reject invalid offsets (e.g., `utc+25`)", Refuses(&[
        ("daily around 14:00 utc+25", "ERR-TZ-001"),
        ("daily around 14:00 utc+15", "ERR-TZ-001"),
        ("daily around 14:00 utc+14:01", "ERR-TZ-001"),
        ("daily around 14:00 utc-12:01", "ERR-TZ-001"),
        ("daily around 14:00 utc+5:60", "ERR-TZ-001"),
    ])),
    // 9.2.5
    test("T-HOURLY-001", 2, "Parse `hourly` to `FUZZY:HOURLY * * *`", Gives(&[
        ("hourly", "FUZZY:HOURLY * * *"),
    ])),
    test("T-HOURLY-002", 2, "Parse `every 2h` to `FUZZY:HOURLY:2 * * *`", Gives(&[
        ("every 2h", "FUZZY:HOURLY:2 * * *"),
    ])),
    test("T-HOURLY-003", 2, "Parse `every 6 hours` to `FUZZY:HOURLY:6 * * *`", Gives(&[
        ("every 6 hours", "FUZZY:HOURLY:6 * * *"),
    ])),
    test("T-INTERVAL-001", 3, "Parse `every 5 minutes` to `*/5 * * * *`", Gives(&[
        ("every 5 minutes", "*/5 * * * *"),
    ])),
    test("T-INTERVAL-002", 3, "Parse `every 2 days` to `0 0 */2 * *`", Gives(&[
        ("every 2 days", "0 0 */2 * *"),
    ])),
    test("T-INTERVAL-003", 3, "Reject `every 3 minutes` (below 5-minute minimum)", Refuses(&[
        ("every 3 minutes", "ERR-INTERVAL-002"),
    ])),
    test("T-INTERVAL-004", 3, "Parse `bi-weekly` to `FUZZY:BI-WEEKLY * * *`", Gives(&[
        ("bi-weekly", "FUZZY:BI-WEEKLY * * *"),
    ])),
    test("T-INTERVAL-005", 3, "Parse `tri-weekly` to `FUZZY:TRI-WEEKLY * * *`", Gives(&[
        ("tri-weekly", "FUZZY:TRI-WEEKLY * * *"),
    ])),
    // 9.2.6
    test("T-SCATTER-001", 1, "Hash produces same output for same input", Holds(scattering::hash_is_deterministic)),
    test("T-SCATTER-002", 1, "Different inputs produce different outputs", Holds(scattering::hash_tells_apart)),
    test("T-SCATTER-003", 1, "Hash value is within modulo range (0 to modulo-1)",
        Holds(scattering::choice_is_within_modulo)),
    test("T-SCATTER-004", 1, "Daily schedule scatters across full 24-hour period",
        Holds(scattering::daily_covers_the_day)),
    test("T-SCATTER-005", 2, "Around schedule stays within ±60 minute window",
        Holds(scattering::around_stays_within_its_window)),
    test("T-SCATTER-006", 2, "Between schedule stays within specified range",
        Holds(scattering::between_stays_within_its_range)),
    test("T-SCATTER-007", 2, "Midnight-crossing range handles day wrap correctly",
        Holds(scattering::midnight_carries_the_day)),
    test("T-SCATTER-008", 2, "Hourly schedule produces minute 0-59", Holds(scattering::hourly_has_every_minute)),
    test("T-SCATTER-009", 1, "Weekly schedule selects valid day 0-6", Holds(scattering::weekly_has_every_day)),
    test("T-SCATTER-010", 1, "Same workflow gets same time across compilations",
        Holds(scattering::times_never_change)),
    // 9.2.7
    test("T-CRON-001", 1, "Generated cron has exactly 5 fields", Holds(scattering::five_fields)),
    test("T-CRON-002", 1, "Minute field is in range 0-59", Holds(scattering::minute_field)),
    test("T-CRON-003", 1, "Hour field is in range 0-23", Holds(scattering::hour_field)),
    test("T-CRON-004", 1, "Day-of-week field is in range 0-6 or `*`", Holds(scattering::weekday_field)),
    test("T-CRON-005", 1, "Month and day-of-month are valid", Holds(scattering::month_fields)),
    test("T-CRON-006", 3, "Interval expressions use valid `*/N` syntax", Holds(scattering::steps)),
];
