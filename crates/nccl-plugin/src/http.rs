//! As much of HTTP as Prometheus and `weft top` need: one short request, one answer, and the connection is closed.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longer requests are refused: Prometheus sends a few hundred bytes.
const LONGEST: usize = 8192;
/// Nobody gets longer than this to ask and to take the answer: the end of a job may wait for it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Callers served at a time; others wait in the queue of the system.
const AT_ONCE: usize = 4;

/// What is served, made when somebody asks for it.
pub(crate) struct Pages<'a> {
    /// At `/metrics`, for Prometheus.
    pub(crate) metrics: &'a dyn Fn() -> String,
    /// At `/statistics.json`, as in the file of `WEFT_STATS`.
    pub(crate) json: &'a dyn Fn() -> String,
}

/// Answers whoever has called. It takes no more than twice [`PATIENCE`].
pub(crate) fn answer(port: &TcpListener, pages: &Pages<'_>) {
    let begun = Instant::now();
    for _ in 0..AT_ONCE {
        if begun.elapsed() >= PATIENCE {
            return;
        }
        let Ok((caller, _)) = port.accept() else { return };
        // Callers that hang up hurt nobody.
        let _ = serve(caller, pages);
    }
}

/// A caller who must be done by some time.
struct Caller {
    socket: TcpStream,
    until: Instant,
}

impl Caller {
    fn left(&self) -> std::io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Caller {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(into)
    }
}

impl Write for Caller {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(from)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn serve(socket: TcpStream, pages: &Pages<'_>) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    let mut caller = Caller { socket, until: Instant::now() + PATIENCE };
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = caller.read(&mut part)?;
        if count == 0 || request.len() + count > LONGEST {
            let page = Page::wrong("400 Bad Request", "a short GET of /metrics, please\n");
            return page.send(&mut caller, true);
        }
        request.extend_from_slice(&part[..count]);
    }
    // What is asked for after a `?`, as `params` of a scrape configuration, changes nothing.
    let words = request.split(|byte| b" ?".contains(byte)).take(2).collect::<Vec<_>>();
    let page = match words[..] {
        [b"GET" | b"HEAD", b"/metrics" | b"/"] => Page::ok(METRICS, (pages.metrics)()),
        [b"GET" | b"HEAD", b"/statistics.json"] => Page::ok("application/json", (pages.json)()),
        _ => Page::wrong("404 Not Found", "there are /metrics and /statistics.json\n"),
    };
    // Load balancers, and `curl -I`, ask for no more than the head.
    page.send(&mut caller, words.first() != Some(&b"HEAD".as_slice()))
}

/// The type of what Prometheus reads.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer.
struct Page {
    status: &'static str,
    kind: &'static str,
    text: String,
}

impl Page {
    fn ok(kind: &'static str, text: String) -> Page {
        Page { status: "200 OK", kind, text }
    }
    fn wrong(status: &'static str, text: &str) -> Page {
        Page { status, kind: "text/plain; charset=utf-8", text: text.into() }
    }
    fn send(&self, caller: &mut Caller, whole: bool) -> std::io::Result<()> {
        let Page { status, kind, text } = self;
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        caller.write_all(head.as_bytes())?;
        caller.write_all(if whole { text.as_bytes() } else { b"" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// More than any answer may take.
    const LATE: Duration = Duration::from_secs(2);

    fn port() -> (TcpListener, SocketAddr) {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = port.local_addr().expect("it has one");
        (port, address)
    }

    /// How long it takes to answer somebody who does `call` every 50 ms until they are shut out.
    fn time(
        text: String,
        mut call: impl FnMut(&mut TcpStream) -> std::io::Result<()> + Send + 'static,
    ) -> Duration {
        let (port, address) = port();
        let mut caller = TcpStream::connect(address).expect("it listens");
        port.set_nonblocking(true).expect("it can be");
        let slow = std::thread::spawn(move || {
            let begun = Instant::now();
            while begun.elapsed() < 2 * LATE && call(&mut caller).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let page = || text.clone();
        answer(&port, &Pages { metrics: &page, json: &page });
        let taken = begun.elapsed();
        slow.join().expect("no panic");
        taken
    }

    #[test]
    fn who_asks_slowly_is_left() {
        let taken = time(String::new(), |caller| caller.write_all(b"x"));
        assert!(taken < LATE, "{taken:?}");
    }

    #[test]
    fn who_takes_the_answer_slowly_is_left() {
        let mut asked = false;
        let taken = time("x".repeat(64 << 20), move |caller| {
            if !asked {
                asked = true;
                caller.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            }
            caller.read_exact(&mut [0; 100_000])
        });
        assert!(taken < LATE, "{taken:?}");
    }

    /// RFC 9110, section 9.3.2: the same head, and nothing behind it.
    #[test]
    fn who_asks_for_the_head_gets_the_head() {
        let ask = |how: &str| {
            let (port, address) = port();
            let mut caller = TcpStream::connect(address).expect("it listens");
            port.set_nonblocking(true).expect("it can be");
            write!(caller, "{how} /metrics HTTP/1.1\r\n\r\n").expect("it takes that");
            let page = || "weft_up 1\n".to_owned();
            answer(&port, &Pages { metrics: &page, json: &page });
            let mut text = String::new();
            caller.read_to_string(&mut text).expect("it answers, and closes");
            text
        };
        let (head, whole) = (ask("HEAD"), ask("GET"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(whole, head + "weft_up 1\n");
    }
}
