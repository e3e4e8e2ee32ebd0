//! Flow tables: what the columns mean, and where errors point.

use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Time};
use weft_workload::{Dependency, Message, When, Workload, read_csv};

fn read(text: &str) -> Workload {
    let workload = read_csv("flows.csv", text).unwrap();
    workload.validate().unwrap();
    workload
}
fn refusal(text: &str) -> String {
    let line = read_csv("flows.csv", text).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn columns_come_in_any_order_with_units_quotes_and_waits() {
    let workload = read(
        "\u{feff}# three flows\n id, size ,dst,src,after,start\n\n\
         a,4096,1,0,,\n\
         \"b, or so\",\"16KB\",2,1,a,1.5us\n  \n# last\n\
         c,1MiB,9,2,\"a:sent; b, or so:received\",0\n",
    );
    assert_eq!(workload.hosts(), 10);
    let expected = [(0, 1, 4096, 0), (1, 2, 16_000, 1500), (2, 9, 1 << 20, 0)];
    for (message, (src, dst, bytes, ns)) in workload.messages().iter().zip(expected) {
        let expected = Message { src: HostId(src), dst: HostId(dst), bytes, start: Time::ns(ns) };
        assert_eq!(*message, expected);
    }
    let on = |id, when| Dependency { on: MessageId(id), when };
    assert_eq!(workload.dependencies(MessageId(0)), []);
    assert_eq!(workload.dependencies(MessageId(1)), [on(0, When::Received)]);
    assert_eq!(workload.dependencies(MessageId(2)), [on(0, When::Sent), on(1, When::Received)]);
}

#[test]
fn a_row_may_wait_for_a_later_one() {
    let workload = read("src,dst,size,id,after\r\n0,1,5,x,y\r\n1,0,5,y,\r\n");
    assert_eq!(workload.dependencies(MessageId(0))[0].on, MessageId(1));
}

#[test]
fn errors_point_at_file_line_and_column() {
    let header = "src,dst,size,start,id,after";
    let cases = [
        ("0,1,5,5,,", "start: time \"5\" has no unit: write \"5ns\""),
        ("0,1,5,1 parsec,,", "start: time \"1 parsec\" has an unknown unit"),
        ("0,1,,0,,", "size: \"\" is not a size"),
        ("0,1,0,0,,", "size: sends nothing"),
        ("0,1,0KB,0,,", "size: sends nothing"),
        ("0,1,1.5B,0,,", "size: size \"1.5B\" is finer"),
        ("0,1,99999999999999999999,0,,", "size: \"99999999999999999999\" is too large"),
        ("zero,1,5,0,,", "src: \"zero\" is not a host"),
        ("0,-1,5,0,,", "dst: \"-1\" is not a host"),
        ("0,,5,0,,", "dst: \"\" is not a host"),
        ("0,4294967295,5,0,,", "dst: host 4294967295 does not exist"),
        ("3,3,5,0,,", "dst: host 3 sends to itself"),
        ("0,1,5,0", "4 values for 6 columns"),
        ("0,1,5,0,,,", "7 values for 6 columns"),
        ("0,1,5,0,first,", "id: \"first\" is already used on line 5"),
        ("0,1,5,0,a:b,", "id: \"a:b\" has a ';' or ':'"),
        ("0,1,5,0,,nobody", "after: no row has the id \"nobody\""),
        ("0,1,5,0,,first:done", "after: unknown end \"done\"; use sent or received"),
        ("0,1,5,0,me,me", "after: this flow can never start, since line 8 waits for line 8"),
        ("0,1,18446744073709551615,0,,", "size: all sizes together exceed 2^64 bytes"),
    ];
    for (row, what) in cases {
        // Comments and empty lines must not shift the numbers.
        let text = format!("# made by hand\n\n{header}\n# a\n0,1,5,0,first,\n\n# b\n{row}\n");
        let error = refusal(&text);
        assert!(error.starts_with("flows.csv:8: "), "{error}");
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn headers_are_checked() {
    let cases = [
        ("", 1, "there are no flows"),
        ("src,dst,size\n", 2, "there are no flows"),
        ("src,dst\n0,1\n", 1, "no column \"size\""),
        ("src,dst,size,colour\n", 1, "unknown column \"colour\""),
        ("src;dst;size\n0;1;5\n", 1, "unknown column \"src;dst;size\""),
        ("src,dst,size,src\n", 1, "column \"src\" stands twice"),
        ("0,1,5\n", 1, "the first line names the columns"),
    ];
    for (text, line, what) in cases {
        let error = refusal(text);
        assert!(error.starts_with(&format!("flows.csv:{line}: ")), "{error}");
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn flows_that_wait_in_a_circle_are_refused_by_line() {
    let error = refusal("src,dst,size,id,after\n0,1,5,a,c\n0,1,5,b,a\n0,1,5,c,b\n");
    assert_eq!(
        error,
        "flows.csv:2: after: this flow can never start, since line 2 waits for line 4, line 4 for \
         line 3, line 3 for line 2; remove one of these dependencies"
    );
}

trials! {
    /// A table written from flows reads back as these flows.
    fn what_is_written_is_read(
        flows in prop::collection::vec((0u32..500, 1u32..500, 1u64..1 << 40, 0u64..1 << 40), 1..50),
    ) {
        let mut text = String::from("src,dst,size,start\n");
        for (src, ahead, bytes, start) in &flows {
            text += &format!("{src},{},{bytes},{}\n", src + ahead, Time::ps(*start));
        }
        let workload = read(&text);
        prop_assert_eq!(workload.messages().len(), flows.len());
        for (message, (src, ahead, bytes, start)) in workload.messages().iter().zip(&flows) {
            let expected = Message {
                src: HostId(*src), dst: HostId(src + ahead), bytes: *bytes, start: Time::ps(*start),
            };
            prop_assert_eq!(*message, expected);
        }
    }

    /// Whatever the text, both readers answer, in one line.
    fn readers_never_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "Nodes", "Connections", "Triggers", "trigger", "id", "start", "size", "oneshot",
                "barrier", "count", "send_done_trigger", "0->1", "1->0", "->", "1", "2", "src",
                "dst", ",", "\"", "#", "\n", "\n", "\r\n", " ", " ", " ", "1KB", "1us",
            ]),
            0..60,
        ),
    ) {
        let text = words.concat();
        for answer in [weft_workload::read_cm("x", &text), read_csv("x", &text)] {
            match answer {
                Ok(workload) => prop_assert!(workload.validate().is_ok()),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
