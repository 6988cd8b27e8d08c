// SPDX-License-Identifier: Apache-2.0
// Python binding of attention.
#include "rung/ops/attention/attention.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_attention(Call& call) {
  const Array q = call.in("q");
  const Array k = call.in("k");
  const Array v = call.in("v");
  Array o = call.out("out");
  AttentionOptions options{
      .scale = call.real("scale"), .causal = call.flag(), .window = call.integer("window")};
  options.soft_cap = call.real("soft_cap");
  const Array lengths = call.optional_in("key_lengths");
  const Array query_offsets = call.optional_in("query_offsets");
  const Array key_offsets = call.optional_in("key_offsets");
  const Array page_table = call.optional_in("page_table");
  const Array slopes = call.optional_in("slopes");
  const Array bias = call.optional_in("bias");
  const Array sinks = call.optional_in("sinks");
  const Array k_scales = call.optional_in("k_scales");
  const Array v_scales = call.optional_in("v_scales");
  Array lse = call.out("lse");
  const bool return_lse = call.flag();
  if (q.shape().rank == 4 && v.shape().rank == 4) {  // other ranks: rejected by the operator
    const Extents& shape = q.shape();
    o.make_if_left_out(q, {shape[0], shape[1], shape[2], v.shape()[3]}, q.dtype());
    if (return_lse) {
      lse.make_if_left_out(q, {shape[0], shape[1], shape[2]},
                           q.dtype() == DType::f64 ? DType::f64 : DType::f32);
    }
  } else {
    o.make_if_left_out(q);
  }
  options.key_lengths = lengths;
  options.query_offsets = query_offsets;
  options.key_offsets = key_offsets;
  options.page_table = page_table;
  options.slopes = slopes;
  options.bias = bias;
  options.sinks = sinks;
  options.k_scales = k_scales;
  options.v_scales = v_scales;
  options.lse = lse;
  call.run([&](Context& context, Pick pick) { attention(context, q, k, v, o, options, pick); });
  return return_lse ? call.pair(o, lse) : o.result();
}

PyMethodDef functions[] = {bound<"attention", run_attention>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
