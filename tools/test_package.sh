#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages, installs them in a fresh system of this machine's release, and uses them there: the
# program, its peers, the simulated GPU, programs built by CMake and pkg-config, removal. Needs root, debootstrap, and
# what rung is built with. Mounts are in a namespace of their own and end with it.
# Commands in single quotes are for the shell of the new system; so are the fields of apt's format.
# shellcheck disable=SC2016
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tools/test_package.sh [--operators LIST] [--packages FOLDER] [--root FOLDER]

  --operators LIST   build these alone, as in "gemm;reduce" (both are used; default: all)
  --packages FOLDER  test the packages in this folder instead of building any
  --root FOLDER      make the system here and keep it; one that is there already is used again
TEXT
}

source_root="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)"
operators='' packages='' root=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --operators | --packages | --root)
      if [[ $# -lt 2 ]]; then
        printf 'test_package.sh: %s needs a value\n' "$1" >&2
        exit 2
      fi
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'test_package.sh: %s\n' "$*" >&2
  exit 1
}
if [[ $EUID -ne 0 ]]; then fail 'chroot and debootstrap need root'; fi
if [[ -z ${RUNG_PACKAGE_TEST_INSIDE:-} ]]; then
  command -v debootstrap >/dev/null || fail 'debootstrap is not installed (apt-get install debootstrap)'
  if [[ -z $packages ]]; then
    build="$source_root/build/package"
    say "building in $build"
    cmake -S "$source_root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
      -DRUNG_CUDA=OFF -DRUNG_TESTS=OFF -DRUNG_STATIC=ON "-DRUNG_OPERATORS=$operators" >/dev/null
    cmake --build "$build"
    packages="$build/packages"
    rm -f "$packages"/*.deb
    (cd "$build" && cpack >/dev/null)
  fi
  packages="$(readlink -f "$packages")"
  compgen -G "$packages/rung_*.deb" >/dev/null || fail "there is no package rung in $packages"
  if [[ -z $root ]]; then
    root="$(mktemp -d)"
    chmod 755 "$root" # apt's own user reads there
    trap 'rm -rf --one-file-system "$root"' EXIT
  fi
  if [[ ! -x $root/usr/bin/apt-get ]]; then
    # The release and the mirror that this machine's own apt has.
    read -r release mirror < <(apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(COMPONENT)' \
      'Created-By: Packages' | awk '$3 == "main" && $1 !~ /[-\/]/ {print $1, $2; exit}')
    if [[ -z ${mirror:-} ]]; then fail 'apt has no package lists; run apt-get update'; fi
    say "debootstrap $release"
    debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" 2>&1 ||
      { tail -n 5 "$root.log" >&2 && fail 'debootstrap failed'; }
    rm -f "$root.log"
  fi
  # Not exec: the folder is to be removed.
  RUNG_PACKAGE_TEST_INSIDE=yes unshare --mount "$BASH" "${BASH_SOURCE[0]}" --packages "$packages" --root "$root"
  exit
fi

# --- within the namespace -----------------------------------------------------------------------------

mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
rm -rf "$root/packages" "$root/test" "$root/root/.cache"
mkdir -p "$root/packages" "$root/test"
cp "$packages"/*.deb "$root/packages"
cp -r "$source_root/tests/install/small" "$root/test"
cp -r "$source_root/tests/emulate/programs" "$root/test"

inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive sh -ec "$1"
}
# expect TEXT COMMAND: the command succeeds, and what it prints has a line that matches.
expect() {
  local output started=$EPOCHREALTIME
  say "$2"
  output="$(inside "$2" 2>&1)" || { printf '%s\n' "$output" >&2 && fail "failed: $2"; }
  grep -qE -- "$1" <<<"$output" || { printf '%s\n' "$output" >&2 && fail "prints no '$1': $2"; }
  printf '   %s\n' "$(grep -m 1 -E -- "$1" <<<"$output")"
  awk "BEGIN {printf \"   %.2f s\n\", $EPOCHREALTIME - $started}"
}

say 'apt-get update'
inside 'apt-get update -qq'
purge='apt-get purge -y -qq rung rung-doc librung-dev librung0 >/dev/null 2>&1'
inside "$purge || true"
# Without recommendations first: what is needed is what is declared.
expect 'Setting up rung ' 'apt-get install -y --no-install-recommends /packages/librung0_*.deb /packages/rung_*.deb'
expect '^gemm ' 'rung list'
expect 'naive_ijk +010_' 'rung list gemm'
# The first call measures the machine, too; the next does not.
for call in first second; do
  say "the $call call"
  expect 'best +[0-9.]+ [num]s' 'rung bench gemm "f32 64x64x64" --backend cpu --rungs naive_ijk,best --pairs 3'
done
expect 'not installed whole' 'rung emulate /test/programs/transpose.cu || true'
# apt considers recommendations only of what is not installed yet.
inside "$purge"
expect 'Setting up librung-dev ' 'apt-get install -y /packages/*.deb'
expect '^ii +g\+\+ ' 'dpkg -l g++'
for peer in OpenBLAS BLIS oneDNN Eigen; do
  expect "$peer [0-9]" 'rung bench gemm "f32 64x64x64" --backend cpu --pairs 3'
done
expect 'conflict' 'rung explain gemm/shared_tile_transposed'
# The lines are those of the debug information in the package of the program.
expect ' 16[.]5 .* sum [+]= tiles' 'rung explain gemm/shared_tile_transposed --annotate'
expect '^ran$' 'rung emulate /test/programs/transpose.cu && echo ran'
# Headers of libraries that rung has not are refused by name, among the system's own, too.
expect 'includes cudnn[.]h, of cuDNN' 'touch /usr/include/cudnn.h; echo "#include <cudnn.h>" >/test/dnn.cu
  ! rung emulate /test/dnn.cu 2>&1; rm /usr/include/cudnn.h'
expect 'rung' 'zcat /usr/share/man/man1/rung.1.gz'
expect 'librung[.]so' 'ldconfig -p'
expect '^no path$' 'readelf -d /usr/bin/rung /usr/lib/*/librung*.so.0 | grep -E "RPATH|RUNPATH" || echo no path'

say 'apt-get install cmake make pkg-config'
inside 'apt-get install -y -qq --no-install-recommends cmake make pkg-config >/dev/null 2>&1'
cat >"$root/test/build.sh" <<'SH'
cmake -S /test/small -B "/test/$1" -DCOMPONENTS="$1" -DLINK="$2" >/dev/null
cmake --build "/test/$1" >/dev/null
"/test/$1/app"
SH
cat >"$root/test/pkg_config.sh" <<'SH'
c++ -std=c++20 /test/small/app.cpp -o /test/app $(pkg-config --cflags --libs "$1")
/test/app
SH
expect '^6 15$' 'sh -e /test/build.sh reduce rung::rung'
expect '^6 15$' 'sh -e /test/pkg_config.sh rung'
if [[ -f $(compgen -G "$root/usr/lib/*/librung.a") ]]; then
  expect '^6 15$' 'sh -e /test/build.sh static rung::static'
  expect '^6 15$' 'sh -e /test/pkg_config.sh rung-static'
fi

inside "$purge"
expect '^nothing left$' 'find / -xdev -path /proc -prune -o -path /packages -prune -o -path /test -prune \
    -o -path /var/lib/apt -prune -o -path /root -prune -o -name "*rung*" -print | grep . || echo nothing left'
say 'all passed'
