// SPDX-License-Identifier: Apache-2.0
// scan / simd
//
// Idea     a vector of 16 numbers is scanned in its register in four steps, each of which adds to
//          every lane the one that lies 1, 2, 4, 8 before. Four vectors do so in parallel; the
//          running value then goes through the four by a single addition. It is kept as a sum of
//          blocks of 4 KiB and one within the block, so that rounding errors do not pile up.
// Changes  against serial: the chain of dependent additions has one link in 64 elements, not one
//          in each. Large results are written with non-temporal stores, so that memory is not read
//          first for what is about to be replaced.
// Cost     per vector of 16 floats: 5 permutations and 8 additions; each element read and written
//          once. Log-many operations per element, and still faster by the width of the vector.
// Limits   one thread. Elements that are not adjacent are gathered into a buffer first.
//          Products of 8- and 64-bit integers, and CPUs without AVX2: a plain loop.
// Source   W. Hillis & G. Steele, Data Parallel Algorithms, CACM 1986; W. Zhang, Y. Wang & K.
//          Ross, Parallel Prefix Sum with SIMD, ADMS 2020.
#include "rung/ops/scan/cpu/detail/chunks.hpp"

namespace rung {
namespace {
using namespace scan_cpu;

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const Chunks chunks(args, context, 1, 0);
  Carry carry;
  for (std::int64_t item = 0; item < chunks.items(); ++item) {
    if (chunks.is_first(item)) carry = chunks.identity();
    carry = chunks.scan(item, carry, !chunks.is_last(item), 0);
  }
  chunks.finish();
}

double estimate(const Scan::Args& args, const Context&) { return chunk_seconds(args, 1); }

const Rung<Scan> self{
    {.name = "simd", .step = 20, .after = "serial", .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
