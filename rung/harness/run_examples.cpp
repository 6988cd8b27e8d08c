// SPDX-License-Identifier: Apache-2.0
// The list of examples in this process.
#include "rung/harness/run_examples.hpp"

#include <algorithm>

namespace rung {
namespace {

constinit const RunExample* first_example = nullptr;

}  // namespace

RunExample::RunExample(std::string_view the_op, std::string_view the_words,
                       std::string_view the_comment)
    : op(the_op), words(the_words), comment(the_comment), next_(first_example) {
  first_example = this;
}

std::vector<const RunExample*> run_examples(std::string_view op) {
  std::vector<const RunExample*> found;
  for (const RunExample* one = first_example; one != nullptr; one = one->next_) {
    if (one->op == op) found.push_back(one);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace rung
