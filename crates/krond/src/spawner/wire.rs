//! What krond and its spawner say to each other.
//!
//! Both ways go frames, each a length and then JSON. krond cuts its stream of frames into packets as it likes; whoever
//! answers puts a whole frame into one packet, so that many can answer at once and none is cut in two.

use std::io;
use std::mem;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Launch, Stage, Ticket};

/// What krond asks.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Request {
    /// Bring a child to its gate.
    Launch(Box<Launch>),
    /// Open the gate.
    Release(Ticket),
    /// Close the gate for ever.
    Abort(Ticket),
    /// The same, and end who has never come to it.
    Kill(Ticket),
}

/// What it hears: from the spawner, or from a child that has not become a program yet.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Reply {
    /// A child waits at its gate.
    Ready { ticket: Ticket, pid: u32, start_ticks: u64 },
    /// The gates of these are open.
    Released { tickets: Vec<Ticket> },
    /// There will be no child.
    Failed { ticket: Ticket, stage: Stage, error: String },
}

/// A value as it is sent.
pub(crate) fn frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEAD];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - HEAD;
    if length > FRAME_MAX {
        let problem = format!("a launch of {length} bytes is too long; at most {FRAME_MAX} are sent");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// What has arrived, put together again.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Takes what has arrived.
    pub(crate) fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
    }

    /// Everything that is whole by now.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> io::Result<Vec<T>> {
        let mut values = Vec::new();
        let bytes = mem::take(&mut self.bytes);
        let mut rest = &bytes[..];
        while let Some((head, body)) = rest.split_first_chunk::<HEAD>() {
            let length = u32::from_le_bytes(*head) as usize;
            if length > FRAME_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
            }
            let Some((frame, after)) = body.split_at_checked(length) else { break };
            values.push(serde_json::from_slice(frame)?);
            rest = after;
        }
        self.bytes = rest.to_vec();
        Ok(values)
    }
}

/// The bytes of a length.
const HEAD: usize = 4;

/// The longest frame. A line of a krontab has 64 KiB, of which JSON makes six times as much at worst.
const FRAME_MAX: usize = 1 << 20;

/// The longest packet: far below what a socket takes at once, on any host.
pub(crate) const PACKET_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_however_they_are_cut() {
        let tickets = [1, u64::MAX, 77].map(Ticket);
        let sent: Vec<u8> = tickets.iter().flat_map(|ticket| frame(ticket).unwrap()).collect();
        for size in 1..=sent.len() {
            let mut frames = Frames::default();
            let mut arrived: Vec<Ticket> = Vec::new();
            for packet in sent.chunks(size) {
                frames.push(packet);
                arrived.extend(frames.take::<Ticket>().unwrap());
            }
            assert_eq!(arrived, tickets, "in packets of {size}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        assert!(frame(&"x".repeat(FRAME_MAX)).is_err());
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert!(frames.take::<Ticket>().is_err());
    }
}
