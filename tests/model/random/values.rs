//! Random JSON: few different values, so that patterns are met about as often as not.

use super::Random;
use crate::random_model::json::{object, text, Json};

#[derive(Clone, Copy)]
enum Kind {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

const NUMBERS: [&str; 6] = [
    "0",
    "1",
    "2",
    "-1.50",
    "12345678901234567890.123456789",
    "9007199254740993",
];
const TEXTS: [&str; 6] = ["", "x", "it's", "a \"quoted\" \\ one", "größer", "$1 %s"];
const KEYS: [&str; 4] = ["a", "b", "it's", "longKey"];

impl Random {
    pub fn value(&mut self) -> Json {
        self.value_of_depth(2)
    }

    fn value_of_depth(&mut self, depth: usize) -> Json {
        let nested = if depth > 0 { 30 } else { 0 };
        match self.weighted(&[
            (8, Kind::Null),
            (8, Kind::Bool),
            (20, Kind::Number),
            (12, Kind::Text),
            (nested / 2, Kind::Array),
            (nested, Kind::Object),
        ]) {
            Kind::Null => Json::Null,
            Kind::Bool => Json::Bool(self.chance(50)),
            Kind::Number => Json::Number(NUMBERS[self.below(NUMBERS.len())].to_string()),
            Kind::Text => text(TEXTS[self.below(TEXTS.len())]),
            Kind::Array => self.array(2, depth - 1),
            Kind::Object => self.object(depth - 1),
        }
    }

    fn array(&mut self, most: usize, depth: usize) -> Json {
        let count = self.below(most + 1);
        Json::Array((0..count).map(|_| self.value_of_depth(depth)).collect())
    }

    fn object(&mut self, depth: usize) -> Json {
        let keys = self.some_of(&KEYS, 40);
        let pairs: Vec<_> = keys
            .into_iter()
            .map(|key| (key.to_string(), self.value_of_depth(depth)))
            .collect();
        object(pairs)
    }

    /// An array to map over.
    pub fn elements(&mut self) -> Json {
        self.array(4, 1)
    }

    /// A pattern for the run's input.
    pub fn input_pattern(&mut self) -> Json {
        self.object(1)
    }

    /// A pattern for the outputs of dependencies, or of some other step.
    pub fn deps_pattern(&mut self, deps: &[String]) -> Json {
        if self.chance(8) {
            return object([("nobody".to_string(), Json::Null)]);
        }
        let mut of = self.some_of(deps, 40);
        if of.is_empty() && self.chance(80) {
            of.extend(self.pick(deps).cloned());
        }
        let pairs: Vec<_> = of
            .into_iter()
            .map(|dep| {
                let value = match self.below(4) {
                    0 => object([]),
                    1 => Json::Array(Vec::new()),
                    _ => self.value_of_depth(1),
                };
                (dep, value)
            })
            .collect();
        object(pairs)
    }
}
