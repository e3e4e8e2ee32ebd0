//! What a connection brings, put where it belongs.
//!
//! The rest of a body is read straight into its memory. Headers, small bodies and what comes with
//! them go over a small buffer, since a system call a message would cost more than a copy. Between long bodies
//! a header is read alone, and nothing is copied.

use crate::memory::Span;
use crate::wire::{HEADER, Header, Kind, MOST_BODY, WireError, check_sum};

/// Bytes that are read at once beyond a body.
const STAGE: usize = 16 << 10;
/// Behind the rest of a body that is longer, only the next header is read, since what follows is
/// likely as long, and would be copied.
const LONG: usize = 8 << 10;

/// What frames are for.
pub trait Sink {
    /// A data frame begins: where its body belongs, with room for all of it; [`Span::EMPTY`]: nowhere, it has
    /// come before.
    ///
    /// # Errors
    /// If it belongs nowhere.
    fn begin(&mut self, header: &Header) -> Result<Span, WireError>;
    /// Whether a data frame that is about to begin may stay where it is, in the memory of the system: nobody has room
    /// for it yet, or waits for what is behind it.
    fn may_stay(&self, _: &Header) -> bool {
        false
    }
    /// A frame is here, all of it, and its check sum is right. The body is empty if it is data.
    ///
    /// # Errors
    /// If it makes no sense.
    fn end(&mut self, header: &Header, body: &[u8]) -> Result<(), WireError>;
}

/// The reading end of a connection.
#[derive(Debug)]
pub struct Inflow {
    stage: Box<[u8; STAGE]>,
    /// What of it was read and not looked at.
    from: usize,
    to: usize,
    open: Option<Open>,
    /// The last body was long.
    long: bool,
    /// The next frame stays where it is for now ([`Sink::may_stay`]).
    stays: bool,
    /// What is here of a body that is no payload.
    here: Box<[u8; MOST_BODY]>,
}

/// A frame that is not here to the end.
#[derive(Debug)]
struct Open {
    header: Header,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// All of it, and what is missing.
    There { all: Span, rest: Span },
    /// It belongs nowhere: so much is still to be thrown away.
    Nowhere { left: usize },
    /// So much of it is here.
    Here { have: usize },
}

impl Default for Inflow {
    fn default() -> Self {
        let (stage, here) = (Box::new([0; STAGE]), Box::new([0; MOST_BODY]));
        Inflow { stage, from: 0, to: 0, open: None, long: false, stays: false, here }
    }
}

impl Inflow {
    /// Whether the rest of a body is to come.
    pub(crate) fn is_in_body(&self) -> bool {
        self.open.is_some()
    }

    /// Whether nothing is read before a long frame that stays where it is: [`Inflow::advance`] asks again.
    pub fn stays(&self) -> bool {
        self.stays
    }

    /// The body that has begun belongs nowhere any more: another lane has brought it.
    pub fn divert(&mut self) {
        if let Some(Open { body, .. }) = &mut self.open
            && let Body::There { rest, .. } = body
        {
            *body = Body::Nowhere { left: rest.len() };
        }
    }

    /// Where to read to: first all of the one, then the other.
    pub fn room(&mut self) -> (Span, &mut [u8]) {
        let rest = match &self.open {
            Some(Open { body: Body::There { rest, .. }, .. }) => *rest,
            _ => Span::EMPTY,
        };
        // All that was staged has been looked at but for a subflow of a header or small body.
        self.stage.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        let end = match &self.open {
            None if self.long && self.to < HEADER => HEADER,
            Some(_) if rest.len() > LONG => self.to + HEADER,
            _ => STAGE,
        };
        (rest, &mut self.stage[self.to..end])
    }

    /// So many bytes were read to where [`Inflow::room`] said.
    ///
    /// # Errors
    /// If they are nothing that a peer may say. The connection is of no use then.
    ///
    /// # Safety
    /// The memory that `sink` gives is there, and nobody else's, until its frame has ended.
    #[expect(unsafe_code, reason = "payload is put where it belongs")]
    pub unsafe fn advance(&mut self, count: usize, sink: &mut impl Sink) -> Result<(), WireError> {
        let mut staged = count;
        if let Some(Open { body: Body::There { rest, .. }, .. }) = &mut self.open {
            let direct = count.min(rest.len());
            *rest = rest.part(direct, rest.len() - direct);
            staged -= direct;
        }
        self.to += staged;
        loop {
            let Some(open) = &mut self.open else {
                let Some(bytes) = self.stage[self.from..self.to].first_chunk::<HEADER>() else {
                    return Ok(());
                };
                let header = Header::decode(bytes)?;
                self.long = header.len as usize > LONG;
                self.stays = self.long && header.kind == Kind::Data && sink.may_stay(&header);
                if self.stays {
                    return Ok(());
                }
                self.from += HEADER;
                let body = if header.kind == Kind::Data {
                    let all = sink.begin(&header)?;
                    match header.len as usize {
                        left if all.len() < left => Body::Nowhere { left },
                        _ => Body::There { all, rest: all },
                    }
                } else {
                    Body::Here { have: 0 }
                };
                self.open = Some(Open { header, body });
                continue;
            };
            let len = open.header.len as usize;
            let ready = &self.stage[self.from..self.to];
            match &mut open.body {
                Body::There { all, rest } => {
                    let take = ready.len().min(rest.len());
                    // SAFETY: as the caller says.
                    *rest = unsafe { rest.fill(&ready[..take]) };
                    self.from += take;
                    if !rest.is_empty() {
                        return Ok(());
                    }
                    // SAFETY: as the caller says, and all of it has been written.
                    let good = !open.header.checked || check(&open.header, unsafe { all.bytes() });
                    if !good {
                        return Err(WireError::Damaged);
                    }
                    sink.end(&open.header, &[])?;
                }
                Body::Nowhere { left } => {
                    let take = ready.len().min(*left);
                    *left -= take;
                    self.from += take;
                    if *left > 0 {
                        return Ok(());
                    }
                    sink.end(&open.header, &[])?;
                }
                Body::Here { have } => {
                    let take = ready.len().min(len - *have);
                    self.here[*have..*have + take].copy_from_slice(&ready[..take]);
                    *have += take;
                    self.from += take;
                    if *have < len {
                        return Ok(());
                    }
                    if open.header.checked && !check(&open.header, &self.here[..len]) {
                        return Err(WireError::Damaged);
                    }
                    sink.end(&open.header, &self.here[..len])?;
                }
            }
            self.open = None;
        }
    }
}

/// Whether a body has the check sum that its header says.
pub(crate) fn check(header: &Header, body: &[u8]) -> bool {
    check_sum(body) == header.check
}
