// SPDX-License-Identifier: Apache-2.0
// A Verifier makes one problem in one variant and computes its reference, once; then it verifies
// any number of rungs on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rung/harness/any_operator.hpp"

namespace rung::workbench {

struct Verdict {
  enum class Kind { passed, failed, skipped };
  Kind kind = Kind::passed;
  std::string message;      // reason of a failure or skip
  bool mistrusted = false;  // passed, but all-zero results would pass as well
};

class Verifier {
 public:
  /// `device`: the rungs' device; the oracle always runs in host memory.
  Verifier(const AnyOperator& op, Problem problem, Variant variant, std::uint64_t seed,
           Device device);

  /// Runs a rung, or the public call if `rung` is null, on poisoned outputs and verifies
  ///   the numbers, against the reference;
  ///   that every element was written, and nothing else: canaries, padding, inputs;
  ///   with `twice`, that a second run, on a CPU with another number of threads, gives the same
  ///   bits (not required of peers and VaryingBits).
  /// An exception is a failure, unless the rung does not support the problem.
  Verdict verify(const RungInfo* rung, Context& context, bool twice);

  /// Returns the problem on the rungs' device, for timing.
  Instance& instance();

 private:
  Instance& host();
  void run_oracle();
  std::string run_and_compare(const RungInfo* rung, Context& context, bool twice);
  int other_threads(int threads) const;
  bool would_pass_zeros(const Tolerance& tolerance);
  Tolerance tolerance(const RungInfo* rung, const Context& context);
  std::vector<Tensor> outputs(Instance& instance) const;

  const AnyOperator& op_;
  Problem problem_;
  Variant variant_;
  std::uint64_t seed_;
  Device device_;
  std::unique_ptr<Instance> host_;  // null if identical to instance_
  std::unique_ptr<Instance> instance_;
  std::vector<Tensor> before_;  // outputs as after reset()
  Oracle oracle_;
  std::map<const RungInfo*, Tolerance> tolerances_;
  bool oracle_known_ = false;
};

}  // namespace rung::workbench
