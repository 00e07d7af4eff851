//! Conditions on projections, by which rows are dropped before their other values are extracted.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_schema::DataType;

use super::members::Members;
use crate::error::Result;
use crate::value::column::is_text_dictionary;

/// Rows for which a condition is not true are dropped. It is ignored where the values have another type than its own.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The position of the projection that it tests.
    pub projection: usize,
    pub test: Test,
}

#[derive(Debug, Clone)]
pub enum Test {
    IsNotNull,
    /// The comparison with one of these values, which are not null.
    Any(Operator, ArrayRef),
    /// Equality with one of these values.
    In(Members),
}

/// The number of values from which a set is faster than a comparison with each.
const FEWEST_MEMBERS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Test {
    /// Return the comparison with any of some values, which are not null.
    pub fn any(operator: Operator, operands: ArrayRef) -> Self {
        let is_set = operator == Operator::Equal && operands.len() >= FEWEST_MEMBERS;
        match is_set.then(|| Members::of(&operands)).flatten() {
            Some(members) => Test::In(members),
            None => Test::Any(operator, operands),
        }
    }

    /// Whether it tests for equality. Few row groups that bounds keep lack values for the other operators.
    pub fn is_equality(&self) -> bool {
        matches!(self, Test::In(_) | Test::Any(Operator::Equal, _))
    }

    /// Return the rows for which the test is true, or `None` if it does not apply to values of this type.
    pub fn matching(&self, values: &ArrayRef) -> Result<Option<BooleanBuffer>> {
        let data_type = match self {
            Test::IsNotNull => return Ok(Some(valid_rows(values))),
            Test::Any(_, operands) => operands.data_type(),
            Test::In(members) => &members.data_type,
        };
        if let Some(dictionary) = values.as_any_dictionary_opt()
            && is_text_dictionary(values.data_type())
        {
            let Some(found) = self.matching(dictionary.values())? else { return Ok(None) };
            let found = BooleanArray::new(found, None);
            let keys = values.as_dictionary::<Int32Type>().keys();
            return Ok(Some(true_rows(arrow_select::take::take(&found, keys, None)?.as_boolean())));
        }
        if values.data_type() != data_type || !has_one_order(data_type) {
            return Ok(None);
        }
        Ok(Some(match self {
            Test::IsNotNull => valid_rows(values),
            Test::Any(operator, operands) => operator.compare_with_any(values, operands)?,
            Test::In(members) => &members.contain(values) & &valid_rows(values),
        }))
    }
}

impl Operator {
    fn compare_with_any(self, values: &ArrayRef, operands: &ArrayRef) -> Result<BooleanBuffer> {
        let mut matching = BooleanBuffer::new_unset(values.len());
        for index in 0..operands.len() {
            let found = self.compare(values, operands.slice(index, 1))?;
            matching = &matching | &true_rows(&found);
        }
        Ok(matching)
    }

    fn compare(self, values: &ArrayRef, operand: ArrayRef) -> Result<BooleanArray> {
        let operand = Scalar::new(operand);
        Ok(match self {
            Operator::Equal => cmp::eq(values, &operand),
            Operator::NotEqual => cmp::neq(values, &operand),
            Operator::Less => cmp::lt(values, &operand),
            Operator::LessOrEqual => cmp::lt_eq(values, &operand),
            Operator::Greater => cmp::gt(values, &operand),
            Operator::GreaterOrEqual => cmp::gt_eq(values, &operand),
        }?)
    }
}

/// Whether SQL and Arrow order values of a type alike: Arrow distinguishes floats that are equal in SQL.
fn has_one_order(data_type: &DataType) -> bool {
    !data_type.is_floating() && !data_type.is_nested()
}

fn valid_rows(values: &ArrayRef) -> BooleanBuffer {
    match values.logical_nulls() {
        Some(nulls) => nulls.into_inner(),
        None => BooleanBuffer::new_set(values.len()),
    }
}

fn true_rows(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) => mask.values() & nulls.inner(),
        None => mask.values().clone(),
    }
}
