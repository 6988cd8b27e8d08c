// SPDX-License-Identifier: Apache-2.0
// Python bindings of histogram.
#include "rung/ops/histogram/histogram.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

/// Returns the number of bins if `out` is not given: `bins`, or the number that edges enclose. bins
/// = 0 means not given.
std::int64_t bins_of(const Call& call, const Array& edges, std::int64_t bins) {
  if (!edges.given()) {
    if (bins <= 0) call.reject("bins is left out; give bins, edges or out");
    return bins;
  }
  const std::int64_t enclosed = edges.shape().rank == 1 ? edges.shape()[0] - 1 : 0;
  if (bins != 0 && bins != enclosed) {
    call.reject("bins is " + std::to_string(bins) + ", edges enclose " + std::to_string(enclosed));
  }
  return enclosed < 1 ? 1 : enclosed;  // the operator rejects such edges
}

PyObject* run_histogram(Call& call) {
  const Array x = call.in("x");
  Array counts = call.out("out");
  const int bins = call.integer("bins");
  HistogramOptions options{.low = call.real("low"), .high = call.real("high")};
  const Array edges = call.optional_in("edges");
  options.edges = edges;
  options.accumulate = call.flag();
  if (!counts.given()) {
    if (options.accumulate) call.reject("accumulate is given without out, to which it adds");
    counts.make_if_left_out(x, {bins_of(call, edges, bins)}, DType::i64);
  } else if (bins != 0 && (counts.shape().rank != 1 || counts.shape()[0] != bins)) {
    call.reject("bins is " + std::to_string(bins) + ", out has " + to_string(counts.shape()) +
                " elements");
  }
  call.run([&](Context& context, Pick pick) { histogram(context, x, counts, options, pick); });
  return counts.result();
}

PyMethodDef functions[] = {bound<"histogram", run_histogram>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
