//! How ranks find each other: all connect to rank 0, which passes on what each has to say. Handles,
//! barriers and times go this way; what is measured does not.

use crate::BenchError;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// With the version of what is said here.
const MAGIC: &[u8; 8] = b"weftmt02";
/// More than a table of handles of 64 ranks has.
const LONGEST: usize = 1 << 24;

/// A rank's place among all.
#[derive(Debug)]
pub struct Meeting {
    rank: usize,
    ranks: usize,
    /// Of rank 0: all others, by rank less one; of others: rank 0.
    others: Vec<TcpStream>,
    address: IpAddr,
}

impl Meeting {
    /// Waits until all ranks are there.
    ///
    /// # Errors
    /// If the place is none, cannot be listened at, or somebody does not come in time.
    pub fn join(
        place: &str,
        rank: usize,
        ranks: usize,
        patience: Duration,
    ) -> Result<Meeting, BenchError> {
        let address = resolve(place)?;
        let until = Instant::now() + patience;
        if rank == 0 {
            let others = gather(address, ranks, until)?;
            return Ok(Meeting { rank, ranks, others, address: address.ip() });
        }
        let stream = reach(address, rank, until)?;
        let own = stream.local_addr().map_err(|error| BenchError::broken("--meet", &error))?;
        Ok(Meeting { rank, ranks, others: vec![stream], address: own.ip() })
    }

    /// The address from which this rank came.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Compares what ranks have to have alike, whatever each believes: options and their values, in one order.
    /// Rank 0 does, and tells all.
    ///
    /// # Errors
    /// The first option in which a rank differs from rank 0; if a rank is gone.
    pub fn agree(&mut self, own: &[(&str, String)]) -> Result<(), BenchError> {
        let line = |(option, value): &(&str, String)| format!("{option}\t{value}\n");
        let said: String = own.iter().map(line).collect();
        let verdict = if self.rank == 0 {
            let differs =
                (1..).zip(&self.hear()?).find_map(|(rank, other)| difference(&said, rank, other));
            let verdict = differs.unwrap_or_default();
            for (at, stream) in self.others.iter_mut().enumerate() {
                send(stream, verdict.as_bytes()).map_err(left(at + 1))?;
            }
            verdict
        } else {
            let stream = &mut self.others[0];
            send(stream, said.as_bytes()).map_err(left(0))?;
            String::from_utf8_lossy(&receive(stream).map_err(left(0))?).into_owned()
        };
        if verdict.is_empty() { Ok(()) } else { Err(BenchError::Input(verdict)) }
    }

    /// What every rank says, by rank.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn share(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, BenchError> {
        if self.rank == 0 {
            let mut all = self.hear()?;
            all.insert(0, own.to_vec());
            for (at, stream) in self.others.iter_mut().enumerate() {
                all.iter().try_for_each(|one| send(stream, one)).map_err(left(at + 1))?;
            }
            return Ok(all);
        }
        let stream = &mut self.others[0];
        send(stream, own).map_err(left(0))?;
        (0..self.ranks).map(|_| receive(stream)).collect::<Result<_, _>>().map_err(left(0))
    }

    /// What all others say to rank 0, by rank less one.
    fn hear(&mut self) -> Result<Vec<Vec<u8>>, BenchError> {
        let one = |(rank, stream)| receive(stream).map_err(left(rank));
        (1..).zip(&mut self.others).map(one).collect()
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn barrier(&mut self) -> Result<(), BenchError> {
        self.share(&[]).map(drop)
    }

    /// A number of every rank.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn numbers(&mut self, own: f64) -> Result<Vec<f64>, BenchError> {
        let all = self.share(&own.to_le_bytes())?;
        let number = |bytes: &Vec<u8>| {
            let bytes = bytes.as_slice().try_into();
            bytes.map(f64::from_le_bytes).map_err(|_| {
                BenchError::Broken(
                    "--meet: a rank sent no number; do all run the same command?".into(),
                )
            })
        };
        all.iter().map(number).collect()
    }
}

fn left(rank: usize) -> impl Fn(std::io::Error) -> BenchError {
    move |error| BenchError::broken(&format!("rank {rank} has left"), &error)
}

/// Where what `rank` has said is not what rank 0 says of itself.
fn difference(own: &str, rank: usize, said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let (here, there) = own.lines().zip(said.lines()).find(|(here, there)| here != there)?;
    let (option, ours) = here.split_once('\t')?;
    let theirs = there.split_once('\t').map_or(there, |(_, value)| value);
    Some(format!(
        "{option}: rank 0 has {ours}, rank {rank} has {theirs}; give all ranks the same options"
    ))
}

fn resolve(place: &str) -> Result<SocketAddr, BenchError> {
    let named = place.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    if named.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        let what = format!("--meet {place}: use HOST:PORT, as 10.0.0.1:29500");
        return Err(BenchError::input(what));
    }
    let found = place.to_socket_addrs().and_then(|mut all| {
        all.next().ok_or_else(|| std::io::Error::other("the name has no address"))
    });
    found.map_err(|error| {
        BenchError::input(format!("--meet {place}: {error}; use the address of rank 0's host"))
    })
}

fn gather(address: SocketAddr, ranks: usize, until: Instant) -> Result<Vec<TcpStream>, BenchError> {
    let socket = TcpListener::bind(address)
        .map_err(|error| BenchError::input(format!("--meet {address}: {error}")))?;
    let broken = |error| BenchError::broken("--meet", &error);
    socket.set_nonblocking(true).map_err(broken)?;
    let mut here: Vec<Option<TcpStream>> = (1..ranks).map(|_| None).collect();
    let mut twice = String::new();
    while here.iter().any(Option::is_none) {
        match socket.accept() {
            Ok((stream, _)) => {
                // A stranger, or a rank twice, is left alone.
                let Some((rank, stream)) = welcome(stream) else { continue };
                match here.get_mut(rank.wrapping_sub(1)) {
                    Some(place @ None) => *place = Some(stream),
                    Some(_) => twice = format!("; rank {rank} has come twice"),
                    None => {}
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() > until {
                    let missing: Vec<_> = (1..ranks)
                        .filter(|rank| here[rank - 1].is_none())
                        .map(|rank| rank.to_string())
                        .collect();
                    return Err(BenchError::Late(format!(
                        "--meet {address}: ranks {} have not come{twice}",
                        missing.join(", ")
                    )));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(here.into_iter().flatten().collect())
}

/// Hears who it is. A stranger that says nothing holds the others up for a second at most.
fn welcome(mut stream: TcpStream) -> Option<(usize, TcpStream)> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut hello = [0; 12];
    stream.read_exact(&mut hello).ok()?;
    let (magic, rank) = hello.split_at(8);
    let rank = u32::from_le_bytes(rank.try_into().ok()?);
    stream.set_read_timeout(None).ok()?;
    stream.set_nodelay(true).ok()?;
    (magic == MAGIC).then_some((rank as usize, stream))
}

fn reach(address: SocketAddr, rank: usize, until: Instant) -> Result<TcpStream, BenchError> {
    loop {
        let attempt =
            TcpStream::connect_timeout(&address, Duration::from_secs(2)).and_then(|mut stream| {
                stream.set_nodelay(true)?;
                stream.write_all(MAGIC)?;
                stream.write_all(&u32::try_from(rank).unwrap_or(u32::MAX).to_le_bytes())?;
                Ok(stream)
            });
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > until => {
                return Err(BenchError::Late(format!(
                    "--meet {address}: rank 0 is not there: {error}"
                )));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    let mut whole = len.to_le_bytes().to_vec();
    whole.extend_from_slice(bytes);
    stream.write_all(&whole)
}

fn receive(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > LONGEST {
        return Err(std::io::Error::other("it says too much"));
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
