//! What a user is told where there is no logger of NCCL's: by processes of their own.

mod common;

use std::process::Command;
use weft_nccl_abi::Version;
use weft_net_bench::table::Plugin;

/// Makes [`begin`] of a process begin.
const CHILD: &str = "TOLD_BEGIN";

/// In other processes: uses the plugin as far as a listener.
#[test]
fn begin() {
    let Ok(name) = std::env::var(CHILD) else { return };
    let version = Version::ALL.into_iter().find(|version| version.name() == name);
    let version = version.expect("it is a version");
    let plugin = Plugin::load(&common::library(), version).expect("the version is there");
    let Ok(net) = plugin.init(None) else { return };
    net.listen(0).expect("TCP is allowed");
}

/// Lines of the plugin in a process with these variables.
fn told(variables: &[(&str, &str)]) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "begin", "--nocapture"]).env(CHILD, "v12").env("WEFT_IFNAME", "=lo");
    command.envs(variables.iter().copied());
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text.lines().filter(|line| line.starts_with("Weft: ")).map(str::to_owned).collect()
}

/// A device that no machine has, and what to do then.
const NO_DEVICE: [(&str, &str); 3] =
    [("WEFT_BACKEND", "roce"), ("WEFT_RDMA_DEVICE", "none_0"), ("WEFT_ALLOW_TCP", "1")];

#[test]
fn doing_without_rdma_is_told() {
    let lines = told(&NO_DEVICE);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("TCP"), "{lines:?}");
}

#[test]
fn misspelt_variables_are_told() {
    let lines = told(&[("WEFT_CONFG", "cluster.toml")]);
    assert_eq!(lines, ["Weft: WEFT_CONFG: no such variable; did you mean WEFT_CONFIG?"]);
}

#[test]
fn who_asks_for_errors_gets_no_warnings() {
    let mut variables = NO_DEVICE.to_vec();
    variables.extend([("WEFT_CONFG", "cluster.toml"), ("WEFT_LOG", "error")]);
    assert_eq!(told(&variables), Vec::<String>::new());
    // But errors.
    let lines = told(&[("WEFT_LOG", "error"), ("WEFT_SEED", "-1")]);
    assert!(lines.len() == 1 && lines[0].contains("WEFT_SEED"), "{lines:?}");
}

/// Versions 8 to 10 are not told that it is over, nor are others by every application; and all may
/// have been used for less than a second.
#[test]
fn statistics_are_written_whatever_the_version() {
    for version in Version::ALL {
        let name = format!("weft-told-{}-{}.json", std::process::id(), version.name());
        let file = std::env::temp_dir().join(name);
        told(&[(CHILD, version.name()), ("WEFT_STATS", file.to_str().expect("text"))]);
        let text = std::fs::read_to_string(&file).expect("it is there");
        std::fs::remove_file(&file).expect("it is ours");
        assert!(text.contains("\"device\":\"lo\""), "{}: {text}", version.name());
    }
}
