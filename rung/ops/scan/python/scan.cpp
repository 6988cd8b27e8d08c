// SPDX-License-Identifier: Apache-2.0
// Python bindings of scan.
#include "rung/ops/scan/scan.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view operation_names[] = {"sum", "product", "min", "max"};

PyObject* run_scan(Call& call) {
  const auto operation = call.word<ScanOperation>("operation", operation_names);
  const Array x = call.in("x");
  Array y = call.out("out");
  ScanOptions options{.operation = operation,
                      .axis = call.integer("axis"),
                      .exclusive = call.flag(),
                      .reverse = call.flag()};
  const Array offsets = call.optional_in("offsets");
  options.offsets = offsets;
  y.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) { scan(context, x, y, options, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"scan", run_scan>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
