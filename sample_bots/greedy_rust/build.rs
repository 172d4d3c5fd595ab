//! Generates the messages and the client from the schema in `proto`. protox compiles the schema in
//! Rust, so `protoc` is not needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let schema = protox::compile(["linko/v1/play.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(schema)?;
    Ok(())
}
