//! Types that cross the pipe between the server and its workers.
