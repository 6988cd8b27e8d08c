// SPDX-License-Identifier: Apache-2.0
// gemm / simt packed
//
// Idea     copy an operand once to a layout that simt_top fetches 16 bytes at a time: steps of k of
//          contiguous rows or columns that begin at multiples of 128 bytes.
// Changes  against simt_top: unaligned rows, or k contiguous in both operands, no longer cost a
//          copy instruction per element and tile.
// Cost     the copy: an operand is read and written once, n^2 work against n^3.
// Limits   products large enough to amortize the copy; up to 1 GiB of workspace.
// Source   Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", 2008: packing.
#include "rung/ops/gemm/cuda/detail/pack.hpp"
#include "rung/ops/gemm/cuda/detail/simt_top.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

/// Operands to copy: those with access `any` or `along_outer`, and B if k is contiguous in B and
/// A's access is not wide.
struct Packs {
  bool a, b;
};
bool by_elements(TileAccess access) {
  return access == TileAccess::any || access == TileAccess::along_outer;
}
Packs packs(const Product32& p) {
  const TileAccess a = access_of(p.a, 1, 2);
  const TileAccess b = access_of(p.b, 2, 1);
  return {by_elements(a),
          by_elements(b) || (b == TileAccess::along_depth && a != TileAccess::wide)};
}

/// Returns the matrices to copy: a matrix that the batch shares is copied once.
std::int64_t matrices_of(const View<const float, 3>& operand) {
  return operand.strides[0] == 0 ? 1 : operand.shape[0];
}
std::int64_t bytes_of(const View<const float, 3>& operand, int outer, int depth) {
  return matrices_of(operand) * operand.shape[depth] * packed_pitch<float>(operand.shape[outer]) *
         std::int64_t{sizeof(float)};
}

/// Copies an operand to `to`, lines along `outer`, and replaces the operand by the copy, extended
/// to whole zero-padded lines.
void pack_operand(Context& context, View<const float, 3>& operand, int outer, int depth,
                  float* to) {
  View<const float, 3> from = operand;
  from.shape[0] = matrices_of(operand);
  from.shape[1] = operand.shape[depth];
  from.shape[2] = operand.shape[outer];
  from.strides[1] = operand.strides[depth];
  from.strides[2] = operand.strides[outer];
  const View<const float, 3> packed = pack(context, from, to);
  operand.data = packed.data;
  if (operand.strides[0] != 0) operand.strides[0] = packed.strides[0];
  operand.strides[depth] = packed.strides[1];
  operand.strides[outer] = 1;
  operand.shape[outer] = packed.strides[1];
}

std::int64_t copied_bytes(const Product32& p) {
  const Packs which = packs(p);
  return (which.a ? bytes_of(p.a, 1, 2) : 0) + (which.b ? bytes_of(p.b, 2, 1) : 0);
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support short_strides = require_short_strides(args, context); !short_strides) {
    return short_strides;
  }
  constexpr std::int64_t longest = std::int64_t{1} << 22;  // extent per launch, and longest stride
  if (args.m() > longest || args.n() > longest) {
    return unsupported("more than 4194304 rows or columns");
  }
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const Packs which = packs(p);
  if (!which.a && !which.b) return unsupported("simt_top's copies take A and B as they are");
  return copied_bytes(p) <= most_packed_bytes ? supported
                                              : unsupported("copies of more than 1 GiB");
}

Work work(const Gemm::Args& args, const Context& context) {
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const Packs which = packs(p);
  Work work = simt_top_work(args, context);
  work.launches = 1 + (which.a ? 1 : 0) + (which.b ? 1 : 0);
  work.bytes = work.bytes + 2 * static_cast<double>(copied_bytes(p));
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  Product32 p = with_contiguous_c(product<float, float>(args));
  const TileChoice choice = simt_top_choice(args, context);
  const Packs which = packs(p);
  const std::int64_t a_bytes = which.a ? bytes_of(p.a, 1, 2) : 0;
  auto* const memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(larger<std::int64_t>(copied_bytes(p), 1))));
  if (which.a) pack_operand(context, p.a, 1, 2, memory);
  if (which.b) pack_operand(context, p.b, 2, 1, memory + a_bytes / std::int64_t{sizeof(float)});
  run_simt_top(context, p, choice);
}

const Rung<Gemm> self{{.name = "simt_packed",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = 128, .columns = 256},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
