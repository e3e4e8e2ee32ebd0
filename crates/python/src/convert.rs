//! Rust columns to numpy arrays, without copies.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weft_experiment::capacity::{Answer, Bottleneck, Capacity, Verdict};
use weft_experiment::{Cell, Column, Columns, Row, Series};

/// `{column: value}`; None where the run does not tell.
pub(crate) fn row(py: Python<'_>, row: Row) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, cell) in row {
        match cell {
            Cell::U64(number) => dict.set_item(name, number)?,
            Cell::F64(number) => dict.set_item(name, number)?,
            Cell::Text(text) => dict.set_item(name, text)?,
            Cell::Unknown => dict.set_item(name, py.None())?,
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

/// `{answer, factor, limit, at_s, bottleneck, times, inequality}`, all but the last two of the
/// worst time.
pub(crate) fn capacity<'py>(py: Python<'py>, found: &Capacity) -> PyResult<Bound<'py, PyDict>> {
    let worst = found.worst();
    let dict = verdict(py, worst.at.as_secs_f64(), &worst.verdict)?;
    let words = found.bottleneck.as_deref();
    let known = words.zip(worst.verdict.bottleneck.as_ref());
    let known = known.map(|(words, one)| bottleneck(py, words, one)).transpose()?;
    dict.set_item("bottleneck", known)?;
    let times = found.moments.iter();
    let times = times.map(|one| verdict(py, one.at.as_secs_f64(), &one.verdict));
    dict.set_item("times", times.collect::<PyResult<Vec<_>>>()?)?;
    let inequality = found.inequality.map(|one| {
        let both = PyDict::new(py);
        both.set_item("with_part_lost", one.with_part_lost)?;
        both.set_item("with_part_kept", one.with_part_kept)?;
        PyResult::Ok(both)
    });
    dict.set_item("inequality", inequality.transpose()?)?;
    Ok(dict)
}

/// `{at_s, answer, factor, limit}`
fn verdict<'py>(py: Python<'py>, at: f64, found: &Verdict) -> PyResult<Bound<'py, PyDict>> {
    let answer = match found.answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Borderline => "borderline",
    };
    let dict = PyDict::new(py);
    dict.set_item("at_s", at)?;
    dict.set_item("answer", answer)?;
    dict.set_item("factor", found.factor)?;
    dict.set_item("limit", found.limit)?;
    Ok(dict)
}

/// `{words, capacity_bps, demand_bps, links: [{name, capacity_bps, weight}]}`
fn bottleneck<'py>(
    py: Python<'py>,
    words: &str,
    found: &Bottleneck,
) -> PyResult<Bound<'py, PyDict>> {
    let mut links = Vec::new();
    for link in &found.links {
        let dict = PyDict::new(py);
        dict.set_item("name", &link.name)?;
        dict.set_item("capacity_bps", link.capacity)?;
        dict.set_item("weight", link.weight)?;
        links.push(dict);
    }
    let dict = PyDict::new(py);
    dict.set_item("words", words)?;
    dict.set_item("capacity_bps", found.capacity)?;
    dict.set_item("demand_bps", found.demand)?;
    dict.set_item("links", links)?;
    Ok(dict)
}
