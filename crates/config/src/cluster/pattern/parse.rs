//! The expression between two braces, read by descent: sums of products of numbers and names.

use super::{Expression, Operator, Part};
use crate::cluster::quoted;

/// What stands between braces.
pub(super) fn read(text: &str, names: &[&str]) -> Result<Part, String> {
    let (inside, form) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
    let digits = match form.map(str::as_bytes) {
        None => 0,
        Some([b'0', digit @ b'1'..=b'9']) => usize::from(digit - b'0'),
        Some(_) => {
            let form = quoted(form.unwrap_or_default());
            return Err(format!(
                "{{{text}}} has the format {form}; use :02 for two digits, or none"
            ));
        }
    };
    let mut reading = Reading { text, names, tokens: tokens(text, inside)?, at: 0 };
    let expression = reading.sum()?;
    if reading.at < reading.tokens.len() {
        return Err(reading.no_expression());
    }
    Ok(Part::Number(expression, digits))
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(i64),
    Name(String),
    Operator(Operator),
    Open,
    Close,
}

/// The tokens of `inside`, which is a part of `text`.
fn tokens(text: &str, inside: &str) -> Result<Vec<Token>, String> {
    let more = || format!("{{{text}}} is more than whole numbers; use names and + - * // %");
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let mut tokens = Vec::new();
    let mut rest = inside.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => 2,
            '*' if rest.starts_with("**") => return Err(more()),
            c if is_name(&c) => rest.chars().take_while(is_name).count(),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        tokens.push(match word {
            "+" => Token::Operator(Operator::Add),
            "-" => Token::Operator(Operator::Subtract),
            "*" => Token::Operator(Operator::Multiply),
            "//" => Token::Operator(Operator::Divide),
            "%" => Token::Operator(Operator::Remainder),
            "(" => Token::Open,
            ")" => Token::Close,
            _ if first.is_ascii_digit() => Token::Number(word.parse().map_err(|_| more())?),
            _ if is_name(&first) => Token::Name(word.to_owned()),
            _ => return Err(more()),
        });
        rest = after.trim_start();
    }
    Ok(tokens)
}

/// Reads tokens, the weakest operators first.
struct Reading<'a> {
    text: &'a str,
    names: &'a [&'a str],
    tokens: Vec<Token>,
    at: usize,
}

impl Reading<'_> {
    fn sum(&mut self) -> Result<Expression, String> {
        self.chain(&[Operator::Add, Operator::Subtract], Reading::product)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let operators = [Operator::Multiply, Operator::Divide, Operator::Remainder];
        self.chain(&operators, Reading::single)
    }

    /// Some of `next` with these operators between them.
    fn chain(
        &mut self,
        operators: &[Operator],
        next: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut left = next(self)?;
        while let Some(Token::Operator(operator)) = self.tokens.get(self.at) {
            let operator = *operator;
            if !operators.contains(&operator) {
                break;
            }
            self.at += 1;
            left = Expression::Operation(Box::new((left, operator, next(self)?)));
        }
        Ok(left)
    }

    /// A number, a name, or something in brackets.
    fn single(&mut self) -> Result<Expression, String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(Expression::Number(number)),
            Some(Token::Name(name)) if self.names.contains(&name.as_str()) => {
                Ok(Expression::Name(name))
            }
            Some(Token::Name(name)) => {
                let (text, known) = (self.text, self.names.join(", "));
                let name = quoted(&name);
                Err(format!("{{{text}}} uses {name}; the names here are {known}"))
            }
            Some(Token::Open) => {
                let inside = self.sum()?;
                match self.tokens.get(self.at) {
                    Some(Token::Close) => self.at += 1,
                    _ => return Err(self.no_expression()),
                }
                Ok(inside)
            }
            _ => Err(self.no_expression()),
        }
    }

    fn no_expression(&self) -> String {
        let example = self.names.first().unwrap_or(&"1");
        format!("{{{}}} is no expression; write one as {{{example}+1}}", self.text)
    }
}
