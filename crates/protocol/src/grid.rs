//! A parser and evaluator for the grid expressions of spec comments, such as `cdiv(n, BLOCK)`.

/// The elements of a grid expression, for error messages.
const KNOWN: &str = "numbers, arguments, `+ - * // %`, `cdiv`, `min` and `max`";

/// The size of one dimension of a grid, as an expression of the launch's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridExpr {
    /// An integer literal.
    Number(i64),
    /// An argument of the launch, or a constant that an autotuner chooses.
    Name(String),
    /// A binary operator or function with its two operands.
    Of(GridOperator, Box<[Self; 2]>),
}

/// A binary operator or function on integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `//`
    Divide,
    /// `%`
    Remainder,
    /// `cdiv`: division, rounded up.
    DivideUp,
    /// `min`
    Least,
    /// `max`
    Greatest,
}

impl GridExpr {
    /// Parses an expression.
    ///
    /// # Errors
    /// Returns a sentence for the user when the text is no grid expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text.trim(), depth: 0 };
        let grid = parser.sum()?;
        if parser.rest.is_empty() { Ok(grid) } else { Err(parser.stuck()) }
    }

    /// The value of the expression. `of` gives the values of names. `None` if a name has no value, if a divisor is not
    /// positive, or on overflow.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let (operator, both) = match self {
            Self::Number(number) => return Some(*number),
            Self::Name(name) => return of(name),
            Self::Of(operator, both) => (operator, both),
        };
        let (a, b) = (both[0].value(of)?, both[1].value(of)?);
        let floor = |a: i64, b: i64| Some(a.checked_div_euclid(b)?).filter(|_| b > 0);
        match operator {
            GridOperator::Add => a.checked_add(b),
            GridOperator::Subtract => a.checked_sub(b),
            GridOperator::Multiply => a.checked_mul(b),
            GridOperator::Divide => floor(a, b),
            GridOperator::Remainder => a.checked_rem_euclid(b).filter(|_| b > 0),
            GridOperator::DivideUp => floor(a.checked_add(b)?.checked_sub(1)?, b),
            GridOperator::Least => Some(a.min(b)),
            GridOperator::Greatest => Some(a.max(b)),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn stuck(&self) -> String {
        format!("a grid is made of {KNOWN}, not of `{}`", self.rest)
    }

    fn sum(&mut self) -> Result<GridExpr, String> {
        let mut sum = self.product()?;
        loop {
            let operator = match () {
                () if self.take("+") => GridOperator::Add,
                () if self.take("-") => GridOperator::Subtract,
                () => return Ok(sum),
            };
            sum = GridExpr::Of(operator, Box::new([sum, self.product()?]));
        }
    }

    fn product(&mut self) -> Result<GridExpr, String> {
        let mut product = self.atom()?;
        loop {
            let operator = match () {
                () if self.take("*") => GridOperator::Multiply,
                () if self.take("//") => GridOperator::Divide,
                () if self.take("%") => GridOperator::Remainder,
                () => return Ok(product),
            };
            product = GridExpr::Of(operator, Box::new([product, self.atom()?]));
        }
    }

    fn atom(&mut self) -> Result<GridExpr, String> {
        const DEEPEST: usize = 32;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("a grid is simpler than this".to_owned());
        }
        if self.take("(") {
            let inner = self.sum()?;
            self.depth -= 1;
            return if self.take(")") { Ok(inner) } else { Err(self.stuck()) };
        }
        let end = self.rest.find(|c: char| c != '_' && c != '.' && !c.is_alphanumeric()).unwrap_or(self.rest.len());
        let word = self.rest[..end].to_owned();
        if word.is_empty() {
            return Err(self.stuck());
        }
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let operator = match word.as_str() {
            "cdiv" | "triton.cdiv" => Some(GridOperator::DivideUp),
            "min" => Some(GridOperator::Least),
            "max" => Some(GridOperator::Greatest),
            _ if word.contains('.') => return Err(self.stuck()),
            _ => None,
        };
        self.rest = self.rest[end..].trim_start();
        let grid = match operator {
            _ if is_number => GridExpr::Number(word.parse().map_err(|_| format!("`{word}` is not a number"))?),
            None => GridExpr::Name(word),
            Some(operator) => {
                let opened = self.take("(");
                let first = self.sum()?;
                let parted = self.take(",");
                let second = self.sum()?;
                if !(opened && parted && self.take(")")) {
                    return Err(format!("`{word}` takes two numbers: `{word}(n,BLOCK)`"));
                }
                GridExpr::Of(operator, Box::new([first, second]))
            }
        };
        self.depth -= 1;
        Ok(grid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_expressions_evaluate_over_arguments() {
        let of = |name: &str| match name {
            "n" => Some(4097),
            "BLOCK" => Some(1024),
            "zero" => Some(0),
            _ => None,
        };
        for (text, expected) in [
            ("7", Some(7)),
            ("cdiv(n, BLOCK)", Some(5)),
            ("triton.cdiv(n,BLOCK)*2 - 1", Some(9)),
            ("1 + 2 * (n - 97) // 1000", Some(9)),
            ("min(cdiv(n,BLOCK),3) % 2", Some(1)),
            ("max(zero,1)", Some(1)),
            ("n // zero", None),
            ("n % zero", None),
            ("cdiv(n,zero)", None),
            ("n * 9223372036854775807", None),
            ("cdiv(n,CHOSEN)", None),
        ] {
            assert_eq!(GridExpr::parse(text).unwrap().value(&of), expected, "{text}");
        }
        for text in ["", "n +", "cdiv(n)", "cdiv n,2", "x.shape", "f(n)", "n n", "(n", "99999999999999999999", "n / 2"]
        {
            assert!(GridExpr::parse(text).is_err(), "{text}");
        }
        assert!(GridExpr::parse(&"(".repeat(99)).unwrap_err().contains("simpler"));
    }
}
