//! Text as strings, as dictionaries of strings, and as views.

use std::sync::Arc;

use _native::data_file::text::{as_dictionary, is_other_form, with_views};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field};

const TEXTS: [Option<&str>; 4] = [Some("a"), None, Some("a text of more than twelve bytes"), Some("a")];

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn strings() -> ArrayRef {
    Arc::new(StringArray::from(TEXTS.to_vec()))
}

fn rows(column: &ArrayRef) -> Vec<Option<String>> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(owned).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(owned).collect(),
        _ => {
            let typed = column.as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
            typed.into_iter().map(owned).collect()
        }
    }
}

fn expected() -> Vec<Option<String>> {
    TEXTS.iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn strings_become_a_dictionary() {
    let made = as_dictionary(strings()).unwrap();
    assert_eq!(made.data_type(), &dictionary());
    assert_eq!(rows(&made), expected());
    let known: ArrayRef = Arc::new(TEXTS.into_iter().collect::<DictionaryArray<Int32Type>>());
    assert!(Arc::ptr_eq(&as_dictionary(known.clone()).unwrap(), &known));
}

#[test]
fn dictionaries_and_views_are_other_forms() {
    let forms = [DataType::Utf8View, dictionary(), DataType::Utf8, DataType::Binary];
    assert_eq!(forms.map(|form| is_other_form(&form)), [true, true, false, false]);
}

#[test]
fn only_the_requested_columns_become_views() {
    let small: ArrayRef = Arc::new(TEXTS.into_iter().collect::<DictionaryArray<Int32Type>>());
    // A dictionary of more values than there are rows.
    let values = StringArray::from(vec!["x", "a", "y", "z", "a text of more than twelve bytes"]);
    let keys = Int32Array::from(vec![Some(1), None, Some(4), Some(1)]);
    let large: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
    let view: ArrayRef = Arc::new(StringViewArray::from(TEXTS.to_vec()));
    let batch = RecordBatch::try_from_iter_with_nullable(
        [("s", strings()), ("d", small), ("l", large), ("v", view), ("o", strings())]
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let form = |name: &str, data_type| Field::new(name, data_type, true);
    let requested = ["s", "d", "l", "v", "o"]
        .map(|name| form(name, if name == "o" { DataType::Utf8 } else { DataType::Utf8View }));
    let shown = with_views(batch.clone(), &requested).unwrap();
    assert_eq!(
        shown.schema().fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>(),
        requested
    );
    for column in shown.columns() {
        assert_eq!(rows(column), expected());
    }
    let plain = ["s", "d", "l", "v", "o"].map(|name| form(name, DataType::Utf8));
    assert_eq!(with_views(batch.clone(), &plain).unwrap(), batch);
}
