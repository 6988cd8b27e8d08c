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
  const Array lengths = call.optional_in("key_lengths");
  options.key_lengths = lengths;
  dq.make_if_left_out(q);
  dk.make_if_left_out(k);
  dv.make_if_left_out(v);
  call.run([&](Context& context, Pick pick) {
    attention_backward(context, q, k, v, o, lse, dout, dq, dk, dv, options, pick);
  });
  return call.triple(dq, dk, dv);
}

PyMethodDef functions[] = {bound<"attention_backward", run_attention_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
