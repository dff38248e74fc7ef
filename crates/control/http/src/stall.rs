//! A connection whose peer must read: writing fails after a time in which the peer accepted no byte.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

pub(crate) struct Stall<S> {
    inner: S,
    patience: Duration,
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Stall<S> {
    pub fn new(inner: S, patience: Duration) -> Self {
        Stall {
            inner,
            patience,
            waits: None,
        }
    }

    /// Returns the result of a write, or an error when the write has waited too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waits = None;
            return done;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waits.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.judge(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.judge(cx, done)
    }

    /// Without vectored writes, the server copies a body behind the headers in one step, however large it is.
    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(cx);
        self.judge(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.judge(cx, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    const PATIENCE: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn slices_are_written_together_and_a_peer_that_does_not_read_is_left() {
        let (ours, mut peer) = UnixStream::pair().unwrap();
        let mut stall = Stall::new(ours, PATIENCE);
        assert!(stall.is_write_vectored());
        let slices = [IoSlice::new(b"head"), IoSlice::new(b"body")];
        assert_eq!(stall.write_vectored(&slices).await.unwrap(), 8);
        let mut read = [0; 8];
        peer.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"headbody");
        let large = vec![7; 1 << 20];
        let error = loop {
            let slices = [IoSlice::new(b"head"), IoSlice::new(&large)];
            if let Err(error) = stall.write_vectored(&slices).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
