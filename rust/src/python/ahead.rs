//! Decode the next rows of a file while Python consumes those before.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::mpsc::{Receiver, sync_channel};

use super::threads::spawn;
use crate::data_file::read::{DataFileReader, Found};
use crate::error::{Error, Result};

/// The batches of a reader. They are decoded ahead once the consumer has taken more than one.
pub struct ReadAhead {
    state: State,
    ready: VecDeque<Found>,
    is_first: bool,
}

enum State {
    Waiting(Box<DataFileReader>),
    /// In the process of this number.
    Running(u32, Receiver<Outcome>),
    Ended,
}

/// The reader and its next batches, or a panic.
type Outcome = std::result::Result<(Box<DataFileReader>, Next), Box<dyn Any + Send>>;

type Next = Option<Result<VecDeque<Found>>>;

impl ReadAhead {
    pub fn new(reader: DataFileReader) -> Self {
        ReadAhead { state: State::Waiting(Box::new(reader)), ready: VecDeque::new(), is_first: true }
    }

    /// Read the next batches on the kernel's threads, unless this has begun.
    fn begin(&mut self) -> Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Ended) {
            State::Waiting(mut reader) => {
                let (sender, receiver) = sync_channel(1);
                spawn(move || {
                    let outcome = catch_unwind(AssertUnwindSafe(|| {
                        let batches = reader.next_batches();
                        (reader, batches)
                    }));
                    // Without a receiver nobody needs the batches.
                    drop(sender.send(outcome));
                })?;
                State::Running(process::id(), receiver)
            }
            state => state,
        };
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        self.begin()?;
        let State::Running(process, receiver) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(());
        };
        if process != process::id() {
            return Err(Error::data_file("cannot continue a read in a forked process: start it again"));
        }
        match receiver.recv() {
            Ok(Ok((reader, Some(batches)))) => {
                self.ready = batches?;
                self.state = State::Waiting(reader);
                Ok(())
            }
            Ok(Ok((_, None))) => Ok(()),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(Error::data_file("the threads of the kernel have ended")),
        }
    }
}

impl Iterator for ReadAhead {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !matches!(self.state, State::Ended) {
            if let Err(error) = self.wait() {
                return Some(Err(error));
            }
        }
        let batch = self.ready.pop_front()?;
        if !std::mem::take(&mut self.is_first)
            && let Err(error) = self.begin()
        {
            return Some(Err(error));
        }
        Some(Ok(batch))
    }
}
