//! Compiles the logger: Rust cannot define functions of a variable number of arguments.

fn main() {
    println!("cargo:rerun-if-changed=src/logger.c");
    cc::Build::new()
        .file("src/logger.c")
        .std("c11")
        .warnings(true)
        .compile("weft_net_bench_logger");
}
