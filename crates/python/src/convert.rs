//! Rust columns to numpy arrays, without copies.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weft_experiment::{Cell, Column, Columns, Row, Series};

/// `{column: value}`.
pub(crate) fn row(py: Python<'_>, row: Row) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, cell) in row {
        match cell {
            Cell::U64(number) => dict.set_item(name, number)?,
            Cell::F64(number) => dict.set_item(name, number)?,
            Cell::Text(text) => dict.set_item(name, text)?,
        }
    }
    Ok(dict)
}

/// `{column: array}`, lists for text.
pub(crate) fn columns(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in columns {
        match column {
            Column::U32(values) => dict.set_item(name, values.into_pyarray(py))?,
            Column::U64(values) => dict.set_item(name, values.into_pyarray(py))?,
            Column::F64(values) => dict.set_item(name, values.into_pyarray(py))?,
            Column::Text(values) => dict.set_item(name, values)?,
        }
    }
    Ok(dict)
}

/// `{time_s, names, kinds, bytes}`.
pub(crate) fn series(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let bytes: Vec<_> = series.bytes.into_iter().map(|bytes| bytes.into_pyarray(py)).collect();
    let dict = PyDict::new(py);
    dict.set_item("time_s", series.time_s.into_pyarray(py))?;
    dict.set_item("names", series.names)?;
    dict.set_item("kinds", series.kinds)?;
    dict.set_item("bytes", bytes)?;
    Ok(dict)
}
