//! What is wrong with jobs: one line with the key that it is about, its line, and the mend.

use crate::common::{expanded, mistake};
use weft_experiment::{ShortKind, shorthand};

/// Sixteen hosts; the job is written after line 6.
const FABRIC: &str = r#"[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[balance]
scheme = "ecmp"
"#;

fn of(workload: &str) -> String {
    mistake(&format!("{FABRIC}{workload}"), &[])
}

/// Two jobs, the second of which takes what the first one leaves.
fn two(first: &str, second: &str) -> String {
    let job = |name, more| {
        format!("[workload.jobs.{name}]\ncollective = \"all-reduce\"\nsize = \"1MB\"\n{more}\n")
    };
    job("a", first) + &job("b", second)
}

#[test]
fn a_job_without_gpus_is_refused() {
    for (taken, left) in [(15, "1 GPU is"), (16, "0 GPUs are")] {
        assert_eq!(
            of(&two(&format!("ranks = {taken}"), "")),
            format!(
                "fig.toml: workload.jobs.b.ranks: {left} left for it, and a job takes 2; give the \
                 jobs before it fewer ranks, or use a larger fabric or placement_file"
            )
        );
    }
    assert_eq!(
        of(&two("ranks = 12", "ranks = 8")),
        "fig.toml: workload.jobs.b.ranks (line 15): 8 are more than the 4 GPUs that are free; use \
         fewer"
    );
    let places = std::env::temp_dir().join(format!("weft-places-{}.txt", std::process::id()));
    std::fs::write(&places, "# nobody\n").expect("a file");
    let line = of(&format!(
        "[workload]\ncollective = \"all-reduce\"\nsize = \"1MB\"\nplacement_file = {places:?}\n"
    ));
    assert!(line.starts_with("fig.toml: workload.placement_file (line 11): "), "{line}");
    assert!(line.ends_with(" lists no GPU; write the number of one for each rank"), "{line}");
    std::fs::remove_file(places).expect("it is there");
}

#[test]
fn the_key_is_the_one_to_mend() {
    let collective = "[workload]\ncollective = \"all-reduce\"\n";
    assert_eq!(
        of(&format!(
            "{collective}size = \"1MB\"\nalgorithm = \"recursive-doubling\"\nranks = 12\n"
        )),
        "fig.toml: workload.algorithm (line 11): \"recursive-doubling\" needs a power of two of \
         ranks, not 12; use \"ring\""
    );
    assert_eq!(
        of("[workload]\ncollective = \"reduce\"\nsize = \"1MB\"\nalgorithm = \"sharp\"\n"),
        "fig.toml: workload.algorithm (line 11): sharp cannot do reduce; use one of ring, double-binary-tree"
    );
    assert_eq!(
        of(&format!("{collective}size = \"99999999TB\"\n")),
        "fig.toml: workload.size (line 10): size \"99999999TB\" is too large; write one such as \
         \"64MB\""
    );
    assert_eq!(
        of(&format!("{collective}size = \"1MB\"\nstride = 17\n")),
        "fig.toml: workload.stride (line 11): 17 is more than the 16 ranks; use less"
    );
    let model = "[workload]\nmodel = \"gpt2-small\"\n";
    assert_eq!(
        of(&format!("{model}global_batch = 15\n")),
        "fig.toml: workload.global_batch (line 10): 15 samples cannot be cut into micro-batches of \
         1 for 16 data-parallel ranks; use a multiple of 16"
    );
    let line = of(&format!("{model}global_batch = 16\npeak = 312\n"));
    assert!(line.starts_with("fig.toml: workload.peak (line 11): a step of a layer "), "{line}");
    assert!(line.contains("use more, such as 312e12"), "{line}");
    let line = of(&format!(
        "{model}global_batch = 12\nranks = 12\nlayers = 1\nalgorithm = \"recursive-doubling\"\n"
    ));
    assert!(line.starts_with("fig.toml: workload.algorithm (line 13): \"recursive-"), "{line}");
    assert_eq!(
        of("[workload.jobs.a]\npattern = \"ring\"\nsize = \"1KB\"\n"),
        "fig.toml: workload.jobs.a.pattern (line 9): is no job: patterns have messages, but no \
         ranks; give collective, trace or model instead"
    );
}

#[test]
fn sequences_have_to_be_cut() {
    let model =
        |more: &str| of(&format!("[workload]\nmodel = \"llama2-7b\"\nglobal_batch = 16\n{more}\n"));
    assert_eq!(
        model("context = 16\nsequence = 40"),
        "fig.toml: workload.context (line 11): a sequence of 40 cannot be cut among 16 ranks; use a divisor"
    );
    assert_eq!(
        model("attention = \"ring\""),
        "fig.toml: workload.attention (line 11): does nothing here; remove it"
    );
    let line = model("context = 3");
    assert!(line.contains("16 data-parallel ranks cannot be cut into 3"), "{line}");
}

#[test]
fn experts_have_to_fit() {
    let moe = |more: &str| of(&format!("[workload]\ncollective = \"moe-dispatch\"\n{more}\n"));
    assert_eq!(
        moe("experts = 40"),
        "fig.toml: workload.experts (line 10): 40 cannot lie equally many on 16 ranks; use a multiple of 16"
    );
    assert_eq!(
        moe("gpus_per_node = 3"),
        "fig.toml: workload.gpus_per_node (line 10): 16 ranks do not fill nodes of 3; use a divisor"
    );
    assert_eq!(
        moe("mode = \"low-latency\"\nchunks = 4"),
        "fig.toml: workload.chunks (line 11): does nothing here; remove it"
    );
    assert_eq!(
        moe("shares = \"1 two\""),
        "fig.toml: workload.shares (line 10): \"two\" is not a number; write one such as 1.0"
    );
    let most = ["1e308"; 16].join(" ");
    let line = moe(&format!("experts = 16\ntop_k = 2\nshares = \"{most}\""));
    assert!(
        line.contains("shares (line 12): add up to inf; give numbers of which the sum"),
        "{line}"
    );
    assert_eq!(
        moe("size = \"1MB\"").split(';').next(),
        Some("fig.toml: workload.size (line 10): unknown key")
    );
    let model =
        of("[workload]\nmodel = \"gpt2-small\"\nglobal_batch = 16\nexpert_mode = \"normal\"\n");
    let expected = "the model has no experts; give it some, or remove it";
    assert_eq!(model, format!("fig.toml: workload.expert_mode (line 11): {expected}"));
}

#[test]
fn what_has_no_effect_is_said() {
    let broadcast = "[workload]\ncollective = \"broadcast\"\nsize = \"1MB\"\n\
                     algorithm = \"double-binary-tree\"\n";
    assert_eq!(
        of(&format!("{broadcast}trees = 2\n")),
        "fig.toml: workload.trees (line 12): means nothing to the broadcast of \
         \"double-binary-tree\"; remove it"
    );
    let ring = "[workload]\ncollective = \"all-reduce\"\nsize = \"1MB\"\nalgorithm = \"ring\"\n";
    assert_eq!(
        of(&format!("{ring}chunks = 2\n")),
        "fig.toml: workload.chunks (line 12): belongs to algorithm = \"double-binary-tree\", not \
         \"ring\"; remove it"
    );
    let servers = "[fabric.server]\ngpus = 8\nnics = 4\n";
    let warnings = |workload: &str| {
        expanded(&format!("{FABRIC}{servers}[workload]\n{workload}"), &[]).warnings
    };
    let [warning] = &warnings("pattern = \"ring\"\nsize = \"1KB\"\n")[..] else { panic!() };
    assert!(warning.starts_with("fabric.server has no effect on patterns"), "{warning}");
    assert_eq!(warnings("collective = \"reduce\"\nsize = \"1KB\"\n"), [""; 0]);
}

#[test]
fn short_forms_say_each_key_once() {
    let of = |text: &str| shorthand(ShortKind::Workload, text).expect_err("wrong").to_string();
    assert_eq!(of("all-reduce:size=1MB,size=2MB"), "size: is there twice; remove one");
    // Names and keys that two things share are listed once.
    for text in ["xyzzyxyzzy", "all-reduce:xyzzyxyzzy=1"] {
        let line = of(text);
        let known: Vec<&str> =
            line.split_once("use one of ").expect("which").1.split(", ").collect();
        for name in &known {
            assert_eq!(known.iter().filter(|other| *other == name).count(), 1, "{name}: {line}");
        }
    }
    let folder = std::env::temp_dir();
    let line = of(&folder.to_string_lossy());
    assert_eq!(line, format!("{} is a directory; name a file in it", folder.display()));
}
