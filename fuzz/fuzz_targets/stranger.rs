//! What whoever reaches the port may send: garbage, hellos with a wrong secret, and from somebody who
//! knows the secret frames that nobody asked for. The endpoint lives, and honest ends still talk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use socket2::{Domain, Socket, Type};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;
use weft_comm::handle::Parts;
use weft_comm::wire::{ChannelKey, HEADER, HELLO, Hello, NONCE};
use weft_comm::{Backend, Buffer, Checksum, Endpoint, EndpointConfig, Listener, RecvChannel, SendChannel};

struct Honest {
    endpoint: Endpoint,
    listener: Listener,
    parts: Parts,
    tried: u32,
}

thread_local! {
    static HONEST: RefCell<Honest> = RefCell::new(begin());
}

fn begin() -> Honest {
    let config = EndpointConfig {
        name: "fuzz".into(),
        address: Ipv4Addr::LOCALHOST,
        listen: 0..=0,
        dscp: 0,
        backend: Backend::Tcp,
        plan: None,
        connections: 2,
        path_time_out: Duration::from_secs(1),
        give_up: Duration::from_secs(5),
        checksum: Checksum::All,
        encrypt: false,
        job_key: Default::default(),
        line_bps: 0,
        plane: None,
    };
    let endpoint = Endpoint::open(config).expect("a port is free");
    let (listener, handle) = endpoint.listen().expect("it listens");
    let parts = Parts::decode(&handle).expect("it is ours");
    Honest { endpoint, listener, parts, tried: 0 }
}

fn channel(endpoint: &Endpoint) -> (SendChannel, RecvChannel) {
    let (listener, handle) = endpoint.listen().expect("it listens");
    let mut connecting = endpoint.connect(&handle).expect("it connects");
    let (mut send, mut receive) = (None, None);
    loop {
        if send.is_none() {
            send = connecting.try_finish().expect("nobody is in the way");
        }
        if receive.is_none() {
            receive = listener.try_accept().expect("nobody is in the way");
        }
        match (send, receive) {
            (Some(send), Some(receive)) => return (send, receive),
            missing => (send, receive) = missing,
        }
    }
}

impl Honest {
    fn transfer(&self) {
        let (send, receive) = channel(&self.endpoint);
        let out = [9_u8; 3000];
        let mut into = [0_u8; 3000];
        let buffer = Buffer { start: into.as_mut_ptr(), len: into.len(), tag: 0, region: None };
        // SAFETY: both are done before the buffers go.
        let (one, two) =
            unsafe { (receive.irecv(&[buffer]), send.isend(out.as_ptr(), out.len(), 0, None)) };
        for request in [one, two] {
            let request = request.expect("it is taken").expect("there is room");
            while request.test().expect("it goes well").is_none() {
                std::thread::yield_now();
            }
        }
        assert!(into == out);
    }

    /// Bytes with a right check sum at the end of each `size` of them.
    fn meant(bytes: &mut [u8], size: usize) {
        for part in bytes.chunks_exact_mut(size) {
            let check = crc32c::crc32c(&part[..size - 4]).to_be_bytes();
            part[size - 4..].copy_from_slice(&check);
        }
    }

    /// Says `bytes`, whose hello proves to know the secret, or not.
    fn call(&self, bytes: &mut [u8], proves: bool) -> std::io::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        // From one of many addresses, or ports would run out.
        let [_, a, b, c] = (self.tried & 0x00FF_FFFF).to_be_bytes();
        let from = SocketAddrV4::new(Ipv4Addr::new(127, a, b, c.max(2)), 0);
        socket.bind(&from.into())?;
        socket.connect(&self.parts.address.into())?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_millis(1)))?;
        if proves && let Some((hello, _)) = bytes.split_first_chunk_mut::<HELLO>() {
            let mut challenge = [0; HEADER + NONCE];
            stream.read_exact(&mut challenge)?;
            if let Ok(mut said) = Hello::decode(hello) {
                let key = ChannelKey::new(&[], &self.parts.secret);
                let nonce = challenge[HEADER..].try_into().expect("so long");
                said.prove(&key, nonce);
                *hello = said.encode();
            }
        }
        stream.write_all(bytes)?;
        let _ = stream.read(&mut [0; 256]);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    HONEST.with_borrow_mut(|honest| {
        let Some((how, data)) = data.split_first() else { return };
        let mut bytes = data.to_vec();
        let mut proves = false;
        if how & 1 == 1 && bytes.len() >= HELLO {
            // A hello for the listener, which the secret opens or does not.
            bytes[..8].copy_from_slice(b"weftlane");
            bytes[8..10].copy_from_slice(&weft_comm::handle::VERSION.to_be_bytes());
            bytes[10] = 0;
            bytes[16..20].copy_from_slice(&honest.parts.listener.to_be_bytes());
            if how & 2 == 2 {
                proves = true;
            }
            Honest::meant(&mut bytes[..HELLO], HELLO);
            if how & 4 == 4 {
                Honest::meant(&mut bytes[HELLO..], HEADER);
            }
        }
        // A full table of sockets is the fuzzer's own trouble.
        let _ = honest.call(&mut bytes, proves);
        while let Ok(Some(channel)) = honest.listener.try_accept() {
            drop(channel);
        }
        honest.tried += 1;
        if honest.tried % 256 == 0 {
            honest.transfer();
        }
    });
});
