# Everything starts here. `make demo` and `make test` set up what they need.

PYTHON ?= python3
# The oldest compiler that will do.
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  := .venv-torch
WEFT   := $(BIN)/weft
# Not as one of make's jobs, whose number would be that of its threads.
ALONE  := env -u MAKEFLAGS
# One process per core; a file's tests in one of them, in the order of tests/conftest.py.
PYTEST := $(BIN)/pytest -q tests -n auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder --durations 10
NATIVE := python/weft/_native.abi3.so
PLUGIN := python/weft/libnccl-net-weft.so
PAGE   := out/web/index.html
WASM   := wasm32-unknown-unknown
has_wasm = test -d "$$(rustc --print target-libdir --target $(WASM))"
SOURCES := $(shell find crates Cargo.toml Cargo.lock -not -name '.*' -not -path '*/tests/*' -not -path 'crates/web/page*' -not -name '*.py')
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Where nothing is built a second time: neither what makes later builds short, nor lines for debuggers;
# the page is built in less time, and its engine is a tenth slower.
ifdef CI
export CARGO_INCREMENTAL := 0
export CARGO_PROFILE_WEB_CODEGEN_UNITS := 16
export CARGO_PROFILE_DEV_DEBUG := 0
export CARGO_PROFILE_DEV_STRIP := debuginfo
endif
# What a step says goes into a log, and to the terminal only if the step fails.
quietly = $(1) > $(VENV)/$(@F).log 2>&1 || { cat $(VENV)/$(@F).log >&2; exit 1; }
# Installs what an extra of pyproject.toml needs, or without a name what Weft itself does.
install = $(BIN)/pip install --disable-pip-version-check $$($(BIN)/python packaging/requirements.py $(1))
ETHEREAL := experiments/ethereal-2024

.PHONY: help demo all-schemes random-experiments ethereal-2025 ethereal-2025-as-coded ethereal-2024 \
	ethereal-2024-single-link study-2025 study-2025-as-coded study-2025-quick dnlb-2025 paralet-2024 \
	paper-000 paper-000-as-coded paper-001 paper-001-single-link paper-002 paper-002-as-coded \
	paper-002-quick paper-003 paper-004 \
	test check built linted docs test-programs soak prerequisites wheel release image bench bench-large bench-sockets beside build quick-core test-core compiled plugin web nccl-volume nccl-valgrind nccl-asan nccl-miri fuzz \
	roce-test gpu-test torch-test lint lint-rust lint-wasm lint-python advisories system-packages clean

help:  ## what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 30

demo: $(VENV)/quick  ## ECMP against spraying against Ethereal: tables, out/demo/report.html
	$(WEFT) demo -o out/demo

all-schemes: build  ## every scheme in every scenario: one table, one heat map (eleven minutes)
	$(WEFT) run experiments/all-schemes -o out/all-schemes

random-experiments: build  ## Twill beside Ethereal and ECMP in 2,000 random experiments (ten minutes)
	@mkdir -p out
	$(BIN)/python bench/random_experiments.py out/random-experiments.jsonl --cases 2000

ethereal-2025: build  ## all of Ethereal (2025), one seed (hours; figure 3 alone: minutes)
	$(WEFT) run experiments/ethereal-2025 -o out/ethereal-2025

ethereal-2025-as-coded: build  ## the same as the authors' code does it (hours)
	$(WEFT) run experiments/ethereal-2025/as-coded -o out/ethereal-2025-as-coded

ethereal-2024: build  ## all of Ethereal (2024), with the long all-to-all (10 minutes)
	$(WEFT) run $(ETHEREAL)/*.toml -o out/ethereal-2024

ethereal-2024-single-link: build  ## the same with one link a pair, the literal reading (10 minutes)
	$(WEFT) run $(ETHEREAL)/single-link/*.toml -o out/ethereal-2024-single-link

study-2025: build  ## all of McClure et al. (2025), ten seeds each (2 hours)
	$(WEFT) capacity experiments/study-2025/appendix-a.toml
	$(WEFT) run experiments/study-2025 -o out/study-2025

study-2025-as-coded: build  ## its figures as its simulator has them, three seeds each (70 minutes)
	$(WEFT) run experiments/study-2025/as-coded --seeds 3 -o out/study-2025-as-coded

study-2025-quick: build  ## the same with one seed and fewer rates (minutes)
	$(WEFT) capacity experiments/study-2025/appendix-a.toml
	$(WEFT) run experiments/study-2025 --quick -o out/study-2025-quick

dnlb-2025: build  ## all of DNLB (2025) (12 minutes)
	$(WEFT) run experiments/dnlb-2025 -o out/dnlb-2025

paralet-2024: build  ## figures 4 and 5 and equation 1 of ParaLet (2024) (8 minutes)
	$(WEFT) run experiments/paralet-2024 -o out/paralet-2024

# The names that these targets had.
paper-000: ethereal-2025
paper-000-as-coded: ethereal-2025-as-coded
paper-001: ethereal-2024
paper-001-single-link: ethereal-2024-single-link
paper-002: study-2025
paper-002-as-coded: study-2025-as-coded
paper-002-quick: study-2025-quick
paper-003: dnlb-2025
paper-004: paralet-2024

test: built  ## all tests
	$(BIN)/python tests/rust.py
	$(PYTEST)

check: linted built lint-wasm  ## the quick part: format, lints, unit tests
	$(BIN)/python tests/rust.py
	$(PYTEST) -m 'not slow'

# Two at once, since some wait for the network, or take one core; what uses one folder of cargo's, or installs
# packages, is one after the other.
built:
	@$(MAKE) --no-print-directory -j2 $(VENV)/tested

linted:
	@$(MAKE) --no-print-directory -j2 lint

test-programs: prerequisites
	@$(ALONE) cargo test --workspace --no-run --quiet

lint: lint-rust lint-python  ## format, and what compilers and checkers say of the code

lint-rust: prerequisites
	cargo fmt --all --check
	$(ALONE) cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(ALONE) RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	@if cargo deny --version > /dev/null 2>&1; then cargo deny check licenses bans sources; \
	else echo "cargo deny: skipped; cargo install --locked cargo-deny"; fi

# `make test` builds the page with the engine in it.
lint-wasm:
	@if $(has_wasm); then $(ALONE) cargo check -p weft-web --target $(WASM) --quiet; \
	else echo "wasm32: skipped; rustup target add $(WASM)"; fi

lint-python: $(VENV)/dev
	$(BIN)/ruff format --check python tests bench docs packaging crates/web
	$(BIN)/ruff check python tests bench docs packaging crates/web
	$(BIN)/mypy python bench tests/gpu
	@if test -x $(BIN)/hadolint; then $(BIN)/hadolint packaging/Containerfile; else echo "hadolint: skipped; it is for x86_64"; fi

advisories:  ## known faults of the crates that Weft uses (cargo install --locked cargo-deny; needs the network)
	cargo deny check advisories

# How many seconds each random test goes on for, and which cases it draws.
SOAK ?= 20
SEED ?= $(shell date +%s)
soak: build plugin  ## random tests for $(SOAK) s each, other cases every time (an hour); SOAK=, SEED=
	@$(MAKE) --no-print-directory $(VENV)/dev
	@echo "SEED=$(SEED): the same number draws the same cases"
	WEFT_SOAK=$(SOAK) WEFT_SEED=$(SEED) $(BIN)/python tests/rust.py
	@if cargo +nightly miri --version > /dev/null 2>&1; then $(MAKE) --no-print-directory nccl-miri; \
	else echo "Miri: skipped; rustup toolchain install nightly --component miri,rust-src"; fi

torch-test: build $(TORCH)/ready  ## PyTorch over weft and over Gloo: operations, PyTorch's own tests, training on a test bed (root; 1.3 GB)
	$(TORCH)/bin/python -m pytest -q tests/pytorch
	$(TORCH)/bin/python bench/torch_suite.py --keep
	$(TORCH)/bin/python bench/torch_speed.py --keep
	$(TORCH)/bin/python bench/ddp.py --keep

$(TORCH)/ready: tests/pytorch/environment.py $(VENV)/ready
	@echo "setting up PyTorch in $(TORCH) (some 600 MB to download) ..."
	$(BIN)/python tests/pytorch/environment.py $(TORCH) $$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')
	@touch $@

docs: build  ## the documentation site: out/docs/index.html, to read without a network
	@if $(has_wasm); then $(MAKE) --no-print-directory web; \
	else echo "without Weft in the browser on its first page; rustup target add $(WASM)"; fi
	@$(MAKE) --no-print-directory $(VENV)/dev
	@$(call quietly,NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict)
	@echo "open out/docs/index.html"

bench:  ## packet-hops per second on one core and two (4 minutes); the record goes to bench/records
	$(PYTHON) bench/record.py --keep

bench-sockets: build plugin  ## the NCCL plugin beside plain sockets over loopback (6 minutes); records as above
	$(BIN)/python bench/sockets.py --keep

bench-large: build  ## large collectives and training iterations: time and memory (25 minutes); records as above
	$(BIN)/python bench/large.py

beside: build  ## Weft beside other simulators on the same files: OTHERS="--htsim P --loggopsim P --astra-sim P --astra-sim-1 P --simai P --simai-simulator P --rounds N --folder D --keep --table F"
	$(BIN)/python bench/beside.py $(OTHERS)

# Processors that wheels are for.
PROCESSORS ?= x86_64 aarch64
wheel: $(VENV)/ready  ## wheels for any Linux: command, core, NCCL plugin; into dist/ (PROCESSORS="x86_64 aarch64")
	@$(BIN)/pip install --quiet --disable-pip-version-check ziglang cargo-zigbuild
	$(BIN)/python packaging/wheels.py dist $(PROCESSORS)

# The site has the page in it.
release: wheel web docs  ## all that a release has, into dist/: wheels, sources, site, page, bills of materials, check sums
	$(BIN)/python packaging/release.py dist

image:  ## a container with Weft (podman or docker)
	@tool=$$(command -v podman || command -v docker) \
		|| { echo "image: needs podman or docker: apt-get install podman"; exit 1; }; \
	$$tool info > /dev/null || { echo "image: $$tool does not run here, as it says above"; exit 1; }; \
	$$tool build -f packaging/Containerfile -t weft .

plugin: $(VENV)/plugin  ## NCCL's network plugin: python/weft/libnccl-net-weft.so

# After the core: two builds of one folder wait for each other.
$(VENV)/plugin: $(SOURCES) | build
	@echo "building the NCCL plugin (a few minutes the first time) ..."
	@$(ALONE) cargo build --release --quiet -p weft-nccl-plugin
	$(call put-plugin,release)
	@touch $@

# Another file, not other contents: somebody may be running the old one.
define put-plugin
	@cp $(TARGET)/$(1)/libnccl_net_weft.so $(PLUGIN).new && mv $(PLUGIN).new $(PLUGIN)
endef

web: $(PAGE)  ## the engine in a web page, one file that needs no server: out/web/index.html
	@ls -l $(PAGE) | awk '{ printf "%s: %.1f MB\n", $$NF, $$5 / 1e6 }'

$(PAGE): $(SOURCES) $(wildcard crates/web/page/* crates/web/*.py)
	@$(has_wasm) \
		|| { echo "Weft in the browser needs the target: rustup target add $(WASM)" >&2; exit 1; }
	@echo "building the engine for the browser (a few minutes the first time) ..."
	@cargo build --profile web --quiet -p weft-web --target $(WASM)
	@$(PYTHON) crates/web/bundle.py $(TARGET)/$(WASM)/web/weft_web.wasm $@

nccl-volume:  ## the plugin: 1 GiB in one message, a million messages of random sizes (some minutes)
	cargo test -p weft-nccl-plugin --test volume -- --ignored --nocapture --test-threads 1

$(TARGET)/nccl-driver: tests/nccl/driver.c
	@mkdir -p $(TARGET)
	cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g $< -o $@ -ldl

nccl-valgrind: plugin $(TARGET)/nccl-driver  ## the plugin, driven from C, under valgrind (some minutes)
	WEFT_IFNAME==lo valgrind --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
		$(TARGET)/nccl-driver $(PLUGIN) 1048576

gpu-test: plugin  ## real NCCL, up to four ranks on one GPU, through the plugin (needs a GPU, PyTorch in python3; GPU_DIRECT=1: and an RDMA NIC)
	PYTHONPATH=python $(PYTHON) tests/gpu/run.py $(PLUGIN) $(if $(GPU_DIRECT),--gpu-direct)

roce-test:  ## the RoCE back end over Soft-RoCE in an emulated machine (some minutes; needs QEMU)
	$(PYTHON) tests/roce/run.py

# Libraries that tests load stay loaded, which looks like a leak: leaks are for `nccl-valgrind`.
nccl-asan:  ## tests of lanes, groups and plugin with the address sanitizer (nightly compiler)
	RUSTFLAGS="-Zsanitizer=address -Clink-arg=-rdynamic" ASAN_OPTIONS=detect_leaks=0 \
		cargo +nightly test --quiet --target x86_64-unknown-linux-gnu --tests \
		-p weft-comm -p weft-group -p weft-nccl-plugin

# Files are for proptest, which notes there what failed.
nccl-miri:  ## halves of channels, and groups over them, under Miri (nightly compiler with miri; minutes)
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet -p weft-comm --test halves --test eager
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet -p weft-group --lib exchanged

fuzz:  ## ten minutes for each fuzz target (nightly compiler, cargo-fuzz)
	for target in handle wire peer connect stranger; do \
		cargo +nightly fuzz run --features plugin $$target -- -max_total_time=600 -print_final_stats=1 || exit 1; \
	done

# Builds the native core as a profile of Cargo.toml says; what it needs of Python comes meanwhile.
define core
	@$(MAKE) --no-print-directory -j2 $(VENV)/dependencies compiled PROFILE=$(1)
	@test -x $(WEFT) || { $(call quietly,$(BIN)/maturin develop --profile $(1)); }
endef

compiled:
	@$(call quietly,$(ALONE) $(BIN)/maturin develop --profile $(PROFILE) --skip-install)

$(VENV)/dependencies: pyproject.toml $(VENV)/ready
	@$(call quietly,$(call install,))
	@touch $@

build: $(VENV)/core  ## the virtual environment with the native core in it

$(VENV)/core: $(SOURCES) $(VENV)/ready
	@echo "building the native core (a few minutes the first time) ..."
	$(call core,release)
	@touch $@

# Demo and tests take what is there, or a core that is built in less time; `make build` replaces that.
$(VENV)/quick: $(SOURCES) $(VENV)/ready
	@if test -e $(VENV)/core; then $(MAKE) --no-print-directory build; \
	else rm -f $(VENV)/tested; $(MAKE) --no-print-directory quick-core; fi
	@touch $@

# Last, since what maturin sets in the environment has cargo build pyo3 anew before and after.
$(VENV)/tested: $(SOURCES) $(VENV)/dependencies | test-programs $(VENV)/dev
	@if test -e $(VENV)/core; then $(MAKE) --no-print-directory plugin; \
	else rm -f $(VENV)/quick; $(MAKE) --no-print-directory test-core; fi
	@touch $@

quick-core:
	@echo "building the native core, not yet at its fastest (one or two minutes) ..."
	$(call core,quick)

# From what the test programs are made of, assertions and all.
test-core:
	@echo "building the native core with the assertions of tests ..."
	@$(call quietly,$(ALONE) $(BIN)/maturin develop --profile dev)
	$(call put-plugin,debug/deps)

$(VENV)/dev: pyproject.toml $(VENV)/dependencies
	@echo "installing what checks, tests and the documentation need ..."
	@$(call quietly,$(call install,dev docs))
	@touch $@

prerequisites:
	@sh packaging/prerequisites.sh $(PYTHON) $(RUST_VERSION)

$(VENV)/ready: pyproject.toml | prerequisites
	@echo "setting up a Python environment in $(VENV) ..."
	@mkdir -p $(VENV)
	@$(call quietly,$(PYTHON) -m venv $(VENV))
	@$(call quietly,$(BIN)/pip install --disable-pip-version-check maturin)
	@# Without it the next build installs what pyproject.toml asks for.
	@rm -f $(WEFT)
	@touch $@

system-packages:  ## installs what some tests need (Debian): Chromium, iproute2, nftables, FRR, QEMU, sshd; asks for root
	apt-get update -qq && apt-get install -y -qq chromium iproute2 nftables frr
	apt-get install -y -qq --no-install-recommends qemu-system-x86 libibverbs-dev \
		openssh-server

clean:  ## forgets everything that was built
	rm -rf $(VENV) $(TORCH) $(NATIVE) $(PLUGIN) target out dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find python tests bench packaging crates -name __pycache__ -prune -exec rm -rf {} +
