//! As much of HTTP as Prometheus needs: one short request, one answer, and the connection is closed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Longer requests are refused: Prometheus sends a few hundred bytes.
const LONGEST: usize = 8192;
/// Nobody gets longer than this to say or take something.
const PATIENCE: Duration = Duration::from_millis(500);
/// Callers served at a time; others wait in the queue of the system.
const AT_ONCE: usize = 4;

/// Answers whoever has called.
pub(crate) fn answer(port: &TcpListener, metrics: &dyn Fn() -> String) {
    for _ in 0..AT_ONCE {
        let Ok((caller, _)) = port.accept() else { return };
        // Callers that hang up hurt nobody.
        let _ = serve(caller, metrics);
    }
}

fn serve(mut caller: TcpStream, metrics: &dyn Fn() -> String) -> std::io::Result<()> {
    caller.set_nonblocking(false)?;
    caller.set_read_timeout(Some(PATIENCE))?;
    caller.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = caller.read(&mut part)?;
        if count == 0 || request.len() + count > LONGEST {
            return reply(&mut caller, "400 Bad Request", "a short GET of /metrics, please\n");
        }
        request.extend_from_slice(&part[..count]);
    }
    match request.split(|byte| *byte == b' ').take(2).collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics" | b"/"] => reply(&mut caller, "200 OK", &metrics()),
        _ => reply(&mut caller, "404 Not Found", "GET /metrics is all there is\n"),
    }
}

fn reply(caller: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = text.len();
    write!(
        caller,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}
