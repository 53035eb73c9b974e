//! Black-box tests over HTTP.
