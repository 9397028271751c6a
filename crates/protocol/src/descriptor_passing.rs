//! Frames that carry a file descriptor, by which one process passes a socket to another.
#![expect(unsafe_code, reason = "descriptors travel in control messages, which only system calls know")]

use std::io::{self, Read, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use serde::{Serialize, de::DeserializeOwned};

use super::{read_frame, write_frame};

/// The size of the buffer for the control message of one descriptor, in `u64` words, which align it.
const CONTROL_WORDS: usize = 8;
/// The flags of `recvmsg`: programs that this process starts must not inherit a received descriptor.
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: i32 = libc::MSG_CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: i32 = 0;

/// Writes one frame; the descriptor is sent with its first byte.
///
/// # Errors
/// Returns an error when the stream cannot be written.
pub fn send_with(mut stream: &UnixStream, message: &impl Serialize, passed: BorrowedFd<'_>) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, message)?;
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: the message points to the buffers above, which outlive the call; the control message fits its buffer.
    let sent = unsafe {
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast(), passed.as_raw_fd());
        again(|| libc::sendmsg(stream.as_raw_fd(), &raw const header, 0))?
    };
    if sent != 1 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    stream.write_all(&frame[1..])
}

/// Reads one frame and the descriptor that was sent with it, if any; `None` at the end of the stream.
///
/// # Errors
/// Returns an error when the stream cannot be read, and [`io::ErrorKind::InvalidData`] when it holds no valid frame.
pub fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut first = [0_u8; 1];
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: first.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: the message points to the buffers above, which outlive the call; a descriptor that arrives is ours alone.
    let (count, passed) = unsafe {
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let count = again(|| libc::recvmsg(stream.as_raw_fd(), &raw mut header, RECEIVE_FLAGS))?;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        let is_ours =
            !message.is_null() && (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS;
        let fd = is_ours.then(|| ptr::read_unaligned::<RawFd>(libc::CMSG_DATA(message).cast()));
        (count, fd.map(|fd| OwnedFd::from_raw_fd(fd)))
    };
    if count == 0 {
        return Ok(None);
    }
    let frame = read_frame(&mut first.as_slice().chain(stream))?;
    Ok(frame.map(|frame| (frame, passed)))
}

fn again(mut call: impl FnMut() -> isize) -> io::Result<isize> {
    loop {
        match call() {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            count => return Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn each_descriptor_stays_with_its_frame() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut pairs = Vec::new();
        for number in 0..3_u32 {
            let (kept, passed) = UnixStream::pair().unwrap();
            write_frame(&mut here, &format!("plain {number}")).unwrap();
            send_with(&here, &format!("passed {number}"), passed.as_fd()).unwrap();
            pairs.push(kept);
        }
        drop(here);
        for (number, mut kept) in pairs.into_iter().enumerate() {
            let (text, none) = receive::<String>(&there).unwrap().unwrap();
            assert_eq!((text, none.is_none()), (format!("plain {number}"), true));
            let (text, passed) = receive::<String>(&there).unwrap().unwrap();
            assert_eq!(text, format!("passed {number}"));
            write_frame(&mut kept, &number).unwrap();
            assert_eq!(read_frame::<usize>(&mut UnixStream::from(passed.unwrap())).unwrap(), Some(number));
        }
        assert!(receive::<String>(&there).unwrap().is_none());
    }
}
