//! A case that fails is made as small as it can be.

use weft_trial::proptest::prop_assert;

#[test]
fn the_smallest_failing_case_is_told() {
    let told = std::panic::catch_unwind(|| {
        weft_trial::run("sums", 256, (0u32..1000, 0u32..1000), |(a, b)| {
            prop_assert!(a + b < 700);
            Ok(())
        });
    });
    let told = told.expect_err("some sums are larger");
    let told = told.downcast_ref::<String>().expect("a formatted message");
    let found = told.split("the smallest case that was found: ").nth(1).expect("it is told");
    // Numbers stand on lines of their own.
    let numbers =
        found.lines().filter_map(|line| line.trim().trim_end_matches(',').parse::<u32>().ok());
    assert_eq!(numbers.sum::<u32>(), 700, "{found}");
}
