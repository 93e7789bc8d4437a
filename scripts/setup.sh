# shellcheck shell=bash
# Sourced by serve and test, from the root of the checkout: finds or makes every tool, at its pinned version.
# What is already there costs nothing and is not mentioned. Tools live in a cache that all checkouts share.
# Written for the bash that macOS ships (3.2) as well.

TRUNK=0.21.14
# Older ones cannot read what today's compiler emits.
BINARYEN=132.0.0
# The command-line half of wasm-bindgen must equal the crate.
WASM_BINDGEN=$(awk '$0 == "name = \"wasm-bindgen\"" { getline; gsub(/"/, ""); print $3 }' Cargo.lock)
RUST=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
OLDEST_RUST=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
OLDEST_NODE=18

DEBIAN_RUST_PACKAGES="rustc-web cargo-web rust-web-src rust-web-llvm rust-web-clippy rustfmt-web lld-22"

CACHE=${HEADROOM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headroom}
TOOLS=$CACHE/tools
LOGS_OF_TOOLS=$CACHE/logs
DEBIAN_RUST=$CACHE/debian-rust

say() { printf 'headroom: %s\n' "$*" >&2; }
# One line for each part of the work that takes more than a moment, with the seconds since the start.
stage() { say "$(printf '%4d s ' "$SECONDS")" "$@"; }
stop() { say "$@"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# Whether version $1 is $2 or newer.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Runs a command whose many lines matter only where it fails: quietly NAME COMMAND...
quietly() {
  local log=$LOGS_OF_TOOLS/$1.log
  shift
  mkdir -p "$LOGS_OF_TOOLS"
  "$@" >"$log" 2>&1 && return
  tail -n 40 "$log" >&2
  return 1
}

# Work that nothing waits for yet runs beside the rest, as long as its process is listed here.
BESIDE=""
stop_beside() {
  # Numbers, not paths: word splitting is wanted.
  # shellcheck disable=SC2086
  [ -z "$BESIDE" ] || kill $BESIDE 2>/dev/null || true
}
trap stop_beside EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits for the work beside that is process $1, and says $2 if it failed; its output is the log $3.
await() {
  if ! wait "$1"; then
    [ ! -e "$LOGS_OF_TOOLS/$3.log" ] || tail -n 40 "$LOGS_OF_TOOLS/$3.log" >&2
    stop "$2"
  fi
  BESIDE=${BESIDE/ $1/}
}

# Installs Debian packages, or names them where that is not possible.
debian_packages() {
  has apt-get || stop "please install: $*"
  [ "$(id -u)" -eq 0 ] || has sudo || stop "please install these packages as root: $*"
  stage "installing $*"
  if [ -z "${APT_UPDATED:-}" ]; then
    as_root apt-get update -qq || stop "could not read the package lists; please install: $*"
    APT_UPDATED=yes
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    stop "could not install all of these packages; please install: $*"
}

# The first of these programs that exists.
first_of() {
  local it
  for it in "$@"; do
    if has "$it"; then command -v "$it"; return; fi
  done
  return 1
}

setup_system() {
  local missing=""
  if has node; then check_node; fi
  [ -d "$HOME/.cargo/bin" ] && PATH=$HOME/.cargo/bin:$PATH
  # All in one go is quicker.
  if has apt-get && ! has rustup && [ ! -x "$DEBIAN_RUST/cargo" ]; then missing=" $DEBIAN_RUST_PACKAGES"; fi
  has cc || missing="$missing gcc libc6-dev"
  has pkg-config || missing="$missing pkg-config"
  has git || missing="$missing git"
  if has apt-get && [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then missing="$missing ca-certificates"; fi
  # Names, not paths: word splitting is wanted.
  # shellcheck disable=SC2086
  [ -z "$missing" ] || debian_packages $missing
}

check_node() {
  local node
  node=$(node --version) || stop "please install Node.js $OLDEST_NODE or newer"
  at_least "${node#v}" "$OLDEST_NODE" || stop "node is ${node#v}; please install version $OLDEST_NODE or newer"
}

# Whether the rustup toolchain $1 has all that is needed.
toolchain_is_whole() {
  local root
  case $'\n'$(rustup toolchain list 2>/dev/null) in *$'\n'"$1"*) ;; *) return 1 ;; esac
  root=$(RUSTUP_TOOLCHAIN=$1 rustc --print sysroot 2>/dev/null) || return 1
  [ -x "$root/bin/cargo-clippy" ] && [ -x "$root/bin/rustfmt" ] && [ -d "$root/lib/rustlib/wasm32-unknown-unknown" ]
}

complete_toolchain() {
  toolchain_is_whole "$1" && return
  stage "installing Rust $1 with its WebAssembly target"
  rustup toolchain install "$1" --no-self-update --profile minimal --component clippy,rustfmt \
    --target wasm32-unknown-unknown >&2 && toolchain_is_whole "$1"
}

# The pinned toolchain; else rustup's default where it is new enough. A choice that cost a failed download is
# remembered, so that the next run does not try again.
rust_from_rustup() {
  has rustup || return 1
  local note=$CACHE/instead-of-rust-$RUST other version
  if [ ! -e "$note" ] && complete_toolchain "$RUST"; then
    export RUSTUP_TOOLCHAIN=$RUST
    return
  fi
  other=$(cd / && env -u RUSTUP_TOOLCHAIN rustup default 2>/dev/null | cut -d ' ' -f 1)
  [ -n "$other" ] || return 1
  version=$(RUSTUP_TOOLCHAIN=$other rustc --version | cut -d ' ' -f 2)
  at_least "$version" "$OLDEST_RUST" || return 1
  if ! toolchain_is_whole "$other"; then
    [ ! -e "$note" ] || return 1
    RUSTUP_TOOLCHAIN=$other rustup target add wasm32-unknown-unknown >&2 || { remember "$note" debian; return 1; }
    RUSTUP_TOOLCHAIN=$other rustup component add clippy rustfmt >&2 || { remember "$note" debian; return 1; }
  fi
  [ -e "$note" ] || say "Rust $RUST could not be had; using $other ($version)"
  remember "$note" "$other"
  export RUSTUP_TOOLCHAIN=$other
}

remember() { mkdir -p "$CACHE" && printf '%s\n' "$2" >"$1"; }

# Debian's compiler for browsers is recent even in an old release. It has no WebAssembly standard library, so cargo
# builds that from its sources with each target directory.
rust_from_debian() {
  local bin=$DEBIAN_RUST it host
  if [ ! -x "$bin/cargo" ] || [ ! -x /usr/bin/cargo-clippy ]; then
    has apt-get || return 1
    # Names, not paths: word splitting is wanted.
    # shellcheck disable=SC2086
    debian_packages $DEBIAN_RUST_PACKAGES
    at_least "$(/usr/bin/rustc --version | cut -d ' ' -f 2)" "$OLDEST_RUST" || return 1
    mkdir -p "$bin"
    for it in cargo rustc rustdoc rustfmt cargo-fmt cargo-clippy clippy-driver; do ln -sf "/usr/bin/$it" "$bin/$it"; done
  fi
  # As rustup's compiler does by itself: the linker that is in the package for WebAssembly is the faster one here too.
  ln -sf /usr/bin/ld.lld-22 "$bin/ld.lld"
  host=$(/usr/bin/rustc --version --verbose | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
  export "CARGO_TARGET_${host}_RUSTFLAGS=-Clink-arg=-fuse-ld=lld"
  # Another cargo on the path would bring its own compiler.
  export PATH=$bin:$PATH RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo
  BUILD_STD=yes
}

setup_rust() {
  BUILD_STD=
  rust_from_rustup || rust_from_debian ||
    stop "please install Rust $RUST with rustup, with clippy, rustfmt and the target wasm32-unknown-unknown"
}

# Runs a build for WebAssembly.
for_wasm() {
  if [ -n "$BUILD_STD" ]; then
    RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort "$@"
  else
    "$@"
  fi
}

# What Trunk brings to make files smaller and to unpack its own downloads, neither of which it does here. It has no
# switch to leave them out, and they are two fifths of its build: scripts/trunk has empty crates in their places.
without() {
  local name
  for name in "$@"; do printf '%s\n' --config "patch.crates-io.$name.path='$PWD/scripts/trunk/$name'"; done
}

# A program from the crate registry: tool NAME VERSION BINARY [OPTION...]
tool() {
  local name=$1 version=$2 binary=$3
  local home=$TOOLS/$name-$version
  shift 3
  if [ ! -x "$home/bin/$binary" ]; then
    stage "building $name $version, once"
    # These run for seconds, so a quick build beats a fast program: nothing is optimised. Of each dependency the newest
    # version that this compiler takes, so that two tools share what they both need. Outside the checkout its settings
    # do not apply.
    (cd / && CARGO_TARGET_DIR=$CACHE/build CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS=fallback \
      CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_LTO=off \
      CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_STRIP=true \
      quietly "$name" cargo install --root "$home" --version "$version" "$@" "$name") || return 1
    [ -x "$home/bin/$binary" ] || stop "$name $version came without $binary"
  fi
  PATH=$home/bin:$PATH
}

setup_trunk() {
  local options=() it
  while IFS= read -r it; do options+=("$it"); done < <(without lightningcss minify-html minify-js oxipng zip)
  tool trunk "$TRUNK" trunk --no-default-features "${options[@]}" && return
  stage "that did not work; building Trunk whole, as its authors locked it"
  tool trunk "$TRUNK" trunk --no-default-features --locked || stop "could not build Trunk $TRUNK"
}

setup_wasm_bindgen() {
  # Its features are ways to encrypt, and it talks to this machine alone. Its lock file names versions that a registry
  # may have withdrawn; the version of the tool itself is what matters.
  tool wasm-bindgen-cli "$WASM_BINDGEN" wasm-bindgen-test-runner --no-default-features \
    --bin wasm-bindgen --bin wasm-bindgen-test-runner || stop "could not build wasm-bindgen $WASM_BINDGEN"
}

BINARYEN_HOME=$TOOLS/binaryen-$BINARYEN

fetch_binaryen() {
  if ! has node || ! has npm; then debian_packages nodejs npm; fi
  check_node
  stage "fetching binaryen $BINARYEN"
  mkdir -p "$BINARYEN_HOME"
  npm install --prefix "$BINARYEN_HOME" --no-audit --no-fund --loglevel=error "binaryen@$BINARYEN" >"$LOGS_OF_TOOLS/binaryen.log" 2>&1
}

# The module of a release page, as Trunk will ask cargo for it: Trunk then finds it made.
compile_page() {
  [ -z "$BUILD_STD" ] || export RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort
  # In place of this shell, so that whoever ends this process ends cargo.
  exec cargo build --locked --release --target wasm32-unknown-unknown --bin headroom-web >"$LOGS_OF_TOOLS/page.log" 2>&1
}

# All that building and serving the page takes.
setup_page() {
  setup_system
  setup_rust
  mkdir -p "$LOGS_OF_TOOLS"
  local binaryen="" page=""
  if [ ! -x "$BINARYEN_HOME/node_modules/.bin/wasm-opt" ]; then
    fetch_binaryen &
    binaryen=$!
    BESIDE="$BESIDE $binaryen"
  fi
  # One compiler at a time rarely keeps two cores busy: the page's module needs no tool, so it is made beside them.
  if [ ! -x "$TOOLS/wasm-bindgen-cli-$WASM_BINDGEN/bin/wasm-bindgen-test-runner" ] && ! page_is_built; then
    stage "compiling the page's module, beside what follows"
    compile_page &
    page=$!
    BESIDE="$BESIDE $page"
  fi
  setup_trunk
  setup_wasm_bindgen
  # What the two have in common was built once, and is not needed again.
  rm -rf "$CACHE/build"
  [ -z "$binaryen" ] || await "$binaryen" "could not fetch binaryen $BINARYEN from npm" binaryen
  [ -z "$page" ] || await "$page" "the page could not be compiled" page
  check_node
  PATH=$BINARYEN_HOME/node_modules/.bin:$PATH
  export PATH
}

# And all that testing it takes.
setup_tests() {
  setup_page
  local missing=""
  first_of chromium chromium-browser google-chrome >/dev/null || missing="$missing chromium"
  first_of chromedriver >/dev/null || missing="$missing chromium-driver"
  first_of firefox-esr firefox >/dev/null || missing="$missing firefox-esr"
  # What is exported is checked, and run by the tools that it is for.
  has shellcheck || missing="$missing shellcheck"
  has python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
  has npm || missing="$missing npm"
  # Names, not paths: word splitting is wanted.
  # shellcheck disable=SC2086
  [ -z "$missing" ] || debian_packages $missing
  CHROMIUM=$(first_of chromium chromium-browser google-chrome)
  FIREFOX=$(first_of firefox-esr firefox)
  CHROMEDRIVER=$(first_of chromedriver)
  export CHROMIUM FIREFOX CHROMEDRIVER
  local kept=tests/e2e/node_modules/.package-lock.json
  if [ ! -e "$kept" ] || [ tests/e2e/package-lock.json -nt "$kept" ]; then
    stage "fetching the packages of the browser tests"
    npm ci --prefix tests/e2e --no-audit --no-fund --loglevel=error >&2 || stop "could not fetch the packages of tests/e2e from npm"
    touch "$kept"
  fi
}

# What the page is made from, as one hash.
page_inputs() {
  local files="Cargo.toml Cargo.lock build.rs docs/accuracy.md rust-toolchain.toml Trunk.toml index.html scripts/precache.mjs scripts/rehearse.mjs scripts/split.mjs scripts/later.js scripts/setup.sh"
  # Names, not paths: word splitting is wanted.
  # shellcheck disable=SC2086
  find $files build crates src catalog style public -type f -print0 | LC_ALL=C sort -z | xargs -0 git hash-object |
    git hash-object --stdin
}

PAGE_STAMP=target/page.stamp

# Whether dist/ holds what the page's inputs make.
page_is_built() { [ -e dist/index.html ] && [ "$(cat "$PAGE_STAMP" 2>/dev/null)" = "$(page_inputs)" ]; }

# Builds the release page into dist/, unless that is what it holds.
build_page() {
  if page_is_built; then return; fi
  local inputs
  inputs=$(page_inputs)
  stage "building the page"
  mkdir -p target
  rm -f "$PAGE_STAMP"
  TRUNK_SKIP_VERSION_CHECK=true quietly trunk-build for_wasm trunk build --release || stop "the page could not be built"
  printf '%s\n' "$inputs" >"$PAGE_STAMP"
}
