//! Patterns for names and addresses: text with whole-number expressions, as
//! `10.{leaf}.0.{place+2}`.
//!
//! An expression has numbers, the names that its pattern may use, `+ - * // %` and brackets, and
//! nothing else; division and remainder round down. `{leaf:02}` pads with zeros. What is not like
//! this is refused when the pattern is read, with what may stand there.

mod parse;

use crate::cluster::quoted;
use std::fmt::Write as _;

/// Characters of a pattern: more is no name.
const LONGEST: usize = 200;

/// What is wrong with a pattern, and the mend behind a semicolon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// Names and what they stand for. The first one is told in errors.
pub type Values<'a> = [(&'a str, u32)];

/// A pattern that has been read; the same for any number of values.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    /// An expression, and to how many digits it is padded.
    Number(Expression, usize),
}

#[derive(Clone, Debug)]
enum Expression {
    Number(i64),
    Name(String),
    Operation(Box<(Expression, Operator, Expression)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Why there is no number.
enum Failed {
    Division,
    Size,
}

impl Pattern {
    /// The pattern in `text`, where `names` stand for numbers.
    ///
    /// # Errors
    /// If it is no pattern, or uses another name.
    pub fn read(text: &str, names: &[&str]) -> Result<Pattern, PatternError> {
        let wrong = |what: String| Err(PatternError(what));
        let length = text.chars().count();
        if length > LONGEST {
            return wrong(format!("has {length} characters; use {LONGEST} at most"));
        }
        let unclosed =
            || wrong(format!("{} has a bracket without its other half; close it", quoted(text)));
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (plain, inside) = rest.split_once('{').map_or((rest, None), |(a, b)| (a, Some(b)));
            if plain.contains('}') {
                return unclosed();
            }
            parts.push(Part::Plain(plain.to_owned()));
            let Some(inside) = inside else { break };
            match inside.split_once('}') {
                Some((inside, after)) if !inside.contains('{') => {
                    parts.push(parse::read(inside, names).map_err(PatternError)?);
                    rest = after;
                }
                _ => return unclosed(),
            }
        }
        Ok(Pattern { text: text.to_owned(), parts })
    }

    /// The text for these values.
    ///
    /// # Errors
    /// If something is divided by zero, or a number is below zero or too large to compute.
    ///
    /// # Panics
    /// If a name that it uses has no value.
    pub fn fill(&self, values: &Values<'_>) -> Result<String, PatternError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Plain(text) => out.push_str(text),
                Part::Number(expression, digits) => {
                    let number = self.number(expression, values)?;
                    let _ = write!(out, "{number:0digits$}");
                }
            }
        }
        Ok(out)
    }

    fn number(&self, expression: &Expression, values: &Values<'_>) -> Result<i64, PatternError> {
        let found = match values.first() {
            Some((name, number)) => format!(" for {name} {number}"),
            None => String::new(),
        };
        let what = match expression.value(values) {
            Ok(number) if number >= 0 => return Ok(number),
            Ok(number) => format!("gives {number}{found}; use 0 or more"),
            Err(Failed::Division) => format!("divides by zero{found}; mend the divisor"),
            Err(Failed::Size) => format!("is too large to compute{found}; use smaller numbers"),
        };
        Err(PatternError(format!("{} {what}", quoted(&self.text))))
    }
}

impl Expression {
    fn value(&self, values: &Values<'_>) -> Result<i64, Failed> {
        let (left, operator, right) = match self {
            Expression::Number(number) => return Ok(*number),
            Expression::Name(name) => {
                let found = values.iter().find(|(known, _)| known == name);
                return Ok(found.unwrap_or_else(|| panic!("{name} has a value")).1.into());
            }
            Expression::Operation(parts) => {
                (parts.0.value(values)?, parts.1, parts.2.value(values)?)
            }
        };
        let is_division = matches!(operator, Operator::Divide | Operator::Remainder);
        if is_division && right == 0 {
            return Err(Failed::Division);
        }
        // Rounded down, as people count; that differs from Rust's below zero.
        let under = |rest: i64| rest != 0 && (rest < 0) != (right < 0);
        let rest = || left.checked_rem(right);
        let found = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left
                .checked_div(right)
                .zip(rest())
                .map(|(whole, rest)| whole - i64::from(under(rest))),
            Operator::Remainder => rest().map(|rest| if under(rest) { rest + right } else { rest }),
        };
        found.ok_or(Failed::Size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_trial::prelude::*;

    trials! {
        fn a_pattern_is_read_or_refused(text in "[h{}leaf+*/%()0-9:. -]{0,40}") {
            match filled(&text) {
                Ok(name) => prop_assert_eq!(name.find(['{', '}']), None),
                Err(mend) => prop_assert!(mend.contains("; "), "{mend}"),
            }
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        let read = Pattern::read(text, &["leaf", "h"]).map_err(|error| error.0)?;
        read.fill(&[("leaf", 3), ("h", 7)]).map_err(|error| error.0)
    }

    #[test]
    fn expressions_are_computed_as_written() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("10.{leaf}.0.{h+2}", "10.3.0.9"),
            ("{leaf:02}-{h:04}", "03-0007"),
            ("{1+2*h}", "15"),
            ("{(1+2)*h}", "21"),
            ("{h-leaf-1}", "3"),
            ("{100//h//2}", "7"),
            ("{100%h}", "2"),
            // Rounded down below zero: -4 // 3 is -2, and -4 % 3 is 2.
            ("{(leaf-h)//3+2}", "0"),
            ("{(leaf-h)%3}", "2"),
            ("{ leaf }", "3"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, expected) in [
            ("{leaf", "a bracket without its other half"),
            ("leaf}", "a bracket without its other half"),
            ("{{leaf}}", "a bracket without its other half"),
            ("{}", "{} is no expression; write one as {leaf+1}"),
            ("{leaf+}", "is no expression"),
            ("{(leaf}", "is no expression"),
            ("{leaf h}", "is no expression"),
            ("{-leaf}", "is no expression"),
            ("{leaf**2}", "is more than whole numbers"),
            ("{leaf/2}", "is more than whole numbers"),
            ("{open('x')}", "is more than whole numbers"),
            ("{1.5}", "is more than whole numbers"),
            ("{spine}", "uses 'spine'; the names here are leaf, h"),
            ("{leaf:2}", "has the format '2'; use :02"),
            ("{leaf//(h-7)}", "divides by zero for leaf 3; mend"),
            ("{leaf-h}", "gives -4 for leaf 3; use 0 or more"),
            ("{9000000000*9000000000}", "too large to compute for leaf 3"),
            ("{99999999999999999999}", "is more than whole numbers"),
        ] {
            let error = filled(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
            assert!(error.contains("; "), "{text}: {error}");
        }
        assert!(filled(&"x".repeat(201)).is_err());
    }
}
