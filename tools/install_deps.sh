#!/usr/bin/env bash
# Installs the system packages that the build needs, on Debian 12 or a relative of it. Does nothing,
# and asks nothing of the network, when all of them are there.
#
# usage: tools/install_deps.sh [--dev] [--list]
#   --dev   also what the checks of .ci/run need: clang, clang-format and the sanitizer runtime
#   --list  print the package names, one a line, and stop
set -euo pipefail

# docs/building.md says what each is for.
packages=(
  ccache
  cmake
  g++
  git
  libcli11-dev
  libedit-dev
  libfmt-dev
  libgmock-dev
  libgtest-dev
  libhwy-dev
  libpcre2-dev
  libutf8proc-dev
  mold
  ninja-build
  nlohmann-json3-dev
  pkg-config
)
dev_packages=(
  clang
  clang-format-14
  libclang-rt-14-dev
  python3
)

list_only=false
for option in "$@"; do
  case "$option" in
    --dev) packages+=("${dev_packages[@]}") ;;
    --list) list_only=true ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "install_deps: unknown option '$option'; expected --dev or --list" >&2; exit 2 ;;
  esac
done
if $list_only; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install_deps: this machine has no apt-get; install the equivalents of these Debian" \
    "packages by hand: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: these packages are missing, and installing them needs root or sudo:" \
      "${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install_deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120)
# A failed update is not the end: the lists that are there may be good enough.
"${apt[@]}" update || echo "install_deps: apt-get update failed; trying with the present lists" >&2
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "install_deps: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
