// SPDX-License-Identifier: Apache-2.0
// Options of rung run without effect on the result are rejected, not ignored.
#include <gtest/gtest.h>

#include <algorithm>

#include "run_on_files.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung::test {
namespace {

class RunWithoutEffect : public RunGemm {
 protected:
  RunWithoutEffect() {
    save("picture.npy", DType::u8, {6, 5, 3});
    save("alpha.npy", DType::u8, {6, 5, 4});
    save("layer.npy", DType::f32, {1, 2, 6, 6});
    save("rows.npy", DType::f32, {4, 5});
    save("labels.npy", DType::i32, {4});
  }
  Ended on(const std::string& words) {
    return shell("cd " + folder + " && " RUNG_BINARY " run " + words + " -o out.npy");
  }
  /// Returns false if this build does not have the operator.
  static bool is_built(const std::string& words) {
    const std::string name = words.substr(0, words.find(' '));
    const std::vector<const AnyOperator*> all = operators();
    return std::any_of(all.begin(), all.end(),
                       [&](const AnyOperator* op) { return op->name() == name; });
  }
};

TEST_F(RunWithoutEffect, TheOptionIsNamedAndWhatItIsFor) {
  const struct {
    const char* words;
    const char* says;
  } cases[] = {
      {"image picture.npy --radius 3",
       "image: --radius is given and has no effect with --filter grey, the default; accepted: "
       "with --filter box, gaussian or unsharp\n"},
      {"image picture.npy --filter sobel --radius 3", "no effect with --filter sobel; accepted"},
      {"image picture.npy --filter box --sigma 1", "with --filter gaussian or unsharp\n"},
      {"image picture.npy --filter gaussian --amount 2", "accepted: with --filter unsharp\n"},
      {"image picture.npy --filter box --weights bt709", "--weights is given and has no effect"},
      {"image alpha.npy --filter box --opaque", "--opaque is given and has no effect"},
      {"pool layer.npy --valid", "with --kind max, the default; accepted: with --kind average or"},
      {"pool_backward layer.npy --kind l2 --valid", "--valid is given and has no effect"},
      {"loss rows.npy labels.npy --margin 2", "with --kind cross_entropy, the default; accepted"},
      {"loss rows.npy labels.npy --kind hinge --smoothing 0.1", "accepted: with --kind cross_"},
      {"loss rows.npy rows.npy --kind squared --axis 0", "--axis is given and has no effect"},
      {"optimizer rows.npy rows.npy --step 3", "with --kind sgd, the default; accepted: with"},
      {"optimizer rows.npy rows.npy --decoupled", "no effect without a weight decay"},
  };
  for (const auto& one : cases) {
    if (!is_built(one.words)) continue;
    const Ended ended = on(one.words);
    EXPECT_EQ(ended.code, 2) << one.words << ": " << ended.said;
    EXPECT_NE(ended.said.find(one.says), std::string::npos) << one.words << ": " << ended.said;
    EXPECT_FALSE(exists("out.npy")) << one.words;
  }
}

TEST_F(RunWithoutEffect, WhereItHasOneItIsTaken) {
  for (const char* words :
       {"image picture.npy --weights bt709", "image alpha.npy --opaque",
        "image picture.npy --filter box --radius 1",
        "image picture.npy --filter gaussian --radius 1 --sigma 2",
        "image picture.npy --filter unsharp --radius 1 --sigma 2 --amount 2",
        "pool layer.npy --kind average --valid",
        "loss rows.npy labels.npy --smoothing 0.1 --axis 1",
        "loss rows.npy labels.npy --kind hinge --margin 2",
        "optimizer rows.npy rows.npy --kind adam --step 3 --decay 0.1 --decoupled"}) {
    if (!is_built(words)) continue;
    const Ended ended = on(words);
    EXPECT_EQ(ended.code, 0) << words << ": " << ended.said;
  }
}

}  // namespace
}  // namespace rung::test
