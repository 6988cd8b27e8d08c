// SPDX-License-Identifier: Apache-2.0
// Python binding of attention_backward.
#include "rung/ops/attention_backward/attention_backward.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_attention_backward(Call& call) {
  const Array q = call.in("q");
  const Array k = call.in("k");
  const Array v = call.in("v");
  const Array o = call.in("o");
  const Array lse = call.in("lse");
  const Array dout = call.in("dout");
  Array dq = call.out("dq");
  Array dk = call.out("dk");
  Array dv = call.out("dv");
  AttentionBackwardOptions options{
      .scale = call.real("scale"), .causal = call.flag(), .window = call.integer("window")};
  options.soft_cap = call.real("soft_cap");
  const Array lengths = call.optional_in("key_lengths");
  const Array query_offsets = call.optional_in("query_offsets");
  const Array key_offsets = call.optional_in("key_offsets");
  const Array slopes = call.optional_in("slopes");
  const Array bias = call.optional_in("bias");
  const bool has_sinks = call.peek() != Py_None;
  const Array sinks = call.optional_in("sinks");
  Array dsinks = call.out("dsinks");
  options.key_lengths = lengths;
  options.query_offsets = query_offsets;
  options.key_offsets = key_offsets;
  options.slopes = slopes;
  options.bias = bias;
  options.sinks = sinks;
  dq.make_if_left_out(q);
  dk.make_if_left_out(k);
  dv.make_if_left_out(v);
  if (has_sinks) dsinks.make_if_left_out(sinks);
  options.dsinks = dsinks;
  call.run([&](Context& context, Pick pick) {
    attention_backward(context, q, k, v, o, lse, dout, dq, dk, dv, options, pick);
  });
  return has_sinks ? call.quadruple(dq, dk, dv, dsinks) : call.triple(dq, dk, dv);
}

PyMethodDef functions[] = {bound<"attention_backward", run_attention_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
